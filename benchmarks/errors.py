"""What can go wrong between an agent and a number, by the boundary where it happens.

These are errors of the user's request or of a run folder; faults inside an episode never become exceptions, they are
recorded with the episode.
"""

from __future__ import annotations

from seed_envs.errors import RunLocked as RunLocked
from seed_envs.errors import SeedEnvsError


class UnknownSuite(SeedEnvsError, ValueError):
    """A suite name that is not in the table."""


class UnknownAgent(SeedEnvsError, ValueError):
    """An agent that cannot be read."""


class ConfigInvalid(SeedEnvsError, ValueError):
    """Options that contradict each other, or a configuration file with an unknown key."""


class RunFolderInvalid(SeedEnvsError, ValueError):
    """A folder that holds no run, or another run than expected."""


class RecordsInvalid(SeedEnvsError, ValueError):
    """A line of an episode file that is no record; the message names file and line."""


class MergeConflict(SeedEnvsError, ValueError):
    """Runs that cannot be joined: not the same plan, or two different outcomes of one episode."""


class RunsDiffer(SeedEnvsError, ValueError):
    """Two runs that must not be compared: not the same tasks."""
