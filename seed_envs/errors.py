"""Every error this package raises, in one flat hierarchy.

Each class also inherits the standard class it replaces, so ``except ValueError`` keeps working. Messages say what was
expected, what came, and what to run. The module raises nothing itself and knows no environment.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

import gymnasium as gym


class SeedEnvsError(Exception):
    """Base class of all errors of ``seed_envs``."""


# -- tasks and options ------------------------------------------------------------------------------------------------


class UnknownTask(SeedEnvsError, ValueError):
    """A task id that no manifest or generator of the environment knows."""


class UnknownSplit(SeedEnvsError, ValueError):
    """A split name the environment does not have."""


class UnknownOption(SeedEnvsError, ValueError):
    """A constructor argument or a key of ``reset(options=...)``, or its value, that the environment does not have."""


class UnknownProfile(SeedEnvsError, ValueError):
    """A profile name the environment does not have."""


class UnknownEnvironment(SeedEnvsError, ValueError):
    """An id that is not in the registration table."""


class NameTaken(SeedEnvsError, ValueError):
    """Two rows of one table want the same name."""


class UnboundedSplit(SeedEnvsError, ValueError):
    """A procedural split has no finite list of tasks to iterate over."""


class NoTaskMatches(SeedEnvsError, ValueError):
    """The filters of ``reset(options=...)`` leave no task."""


# -- data and packages ------------------------------------------------------------------------------------------------


class DataMissing(SeedEnvsError, FileNotFoundError):
    """Data that has to be fetched or named first; the message holds the command."""


class DataInvalid(SeedEnvsError, ValueError):
    """A data file that breaks its format; the message names the file and the place."""


class RunLocked(SeedEnvsError, RuntimeError):
    """Another process is writing to the run's file."""


class DependencyMissing(SeedEnvsError, gym.error.DependencyNotInstalled):
    """An optional package is not installed; the message holds the pip command."""


# -- environment ------------------------------------------------------------------------------------------------------


class EpisodeEnded(SeedEnvsError, gym.error.ResetNeeded):
    """``step`` after the episode ended: call ``reset`` first."""


class InvalidState(SeedEnvsError, ValueError):
    """``set_state`` got something that is not a state of this environment."""


class InvalidStep(SeedEnvsError, ValueError):
    """An environment returned what no step may hold: a reward or score that is not finite, or an unknown reason."""


class RetrievalError(SeedEnvsError, RuntimeError):
    """A retriever could not answer; the episode is truncated, never scored."""


class OracleUnavailable(SeedEnvsError, RuntimeError):
    """The oracle has no action for this state (for example a dead end)."""


class BaselineUnavailable(SeedEnvsError, NotImplementedError):
    """The environment has no rule-based or random player."""


# -- policy -----------------------------------------------------------------------------------------------------------


class PolicyError(SeedEnvsError, RuntimeError):
    """A policy returned something that is not a list of replies, one per request."""


# -- endpoints --------------------------------------------------------------------------------------------------------


class PreflightFailed(SeedEnvsError, RuntimeError):
    """A run that cannot succeed as it was asked for, found before its first episode; the message says what helps."""


class EndpointError(SeedEnvsError, RuntimeError):
    """A chat endpoint gave no usable answer."""


class EndpointPassing(EndpointError):
    """A failure that another attempt may mend.

    Attributes:
        wait: Seconds that the endpoint asked for, or None.
    """

    def __init__(self, message: str, wait: float | None = None) -> None:
        super().__init__(message)
        self.wait = wait


class EndpointFailed(EndpointError):
    """An endpoint gave no usable answer in any attempt."""


class EndpointRefused(EndpointError):
    """An endpoint said no in a way that another attempt would not change.

    Attributes:
        hopeless: Whether every further request would meet the same refusal.
        body: What the server said.
    """

    def __init__(self, message: str, hopeless: bool = False, body: str = "") -> None:
        super().__init__(message)
        self.hopeless = hopeless
        self.body = body


class ContextOverflow(EndpointError):
    """A prompt does not fit the model."""


def close_matches(value: object, known: Iterable[str], limit: int = 3) -> str:
    """A ready sentence with the closest known names, whatever their case.

    Args:
        value: What the user wrote.
        known: The accepted names.
        limit: How many suggestions at most.

    Returns:
        ``" Did you mean 'a' or 'b'?"``, or the empty string when nothing is close.
    """
    names = {name.lower(): name for name in known}
    found = [names[close] for close in difflib.get_close_matches(str(value).lower(), names, n=limit, cutoff=0.5)]
    return f" Did you mean {' or '.join(repr(name) for name in found)}?" if found else ""


def require(module: str, extra: str, why: str) -> None:
    """Check that an optional package can be imported.

    Args:
        module: Import name of the package.
        extra: The extra of this distribution that installs it.
        why: What needs it, in a few words ("the Lucene search engine").

    Raises:
        DependencyMissing: When it is not installed.
    """
    import importlib.util

    if importlib.util.find_spec(module) is None:
        raise DependencyMissing(
            f"{why} needs the package {module!r}, which is not installed. Run: pip install 'seed-envs[{extra}]'"
        )
