"""Suites: which tasks of which environment, as rows of a table.

A suite names an environment id, a split, a profile and how many tasks the split must list. The ids themselves are the
environment's hashed manifests; no task is listed here. Environments of other packages are evaluated through a suite
file (:func:`load_suite`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import gymnasium as gym

from seed_envs.errors import DataInvalid, UnboundedSplit, close_matches
from seed_envs.profiles import Profile, get_profile
from seed_envs.registration import load_attribute
from seed_envs.tasks import Manifest

from .errors import ConfigInvalid, UnknownSuite


@dataclass(frozen=True)
class Suite:
    """A panel of tasks.

    Attributes:
        name: ``family/panel``.
        env_id: Gymnasium id; ``module:id`` imports the module first.
        split: Split whose tasks are played, in listed order.
        tasks: How many there must be (None: not fixed).
        profile: Default profile.
        env_kwargs: Constructor arguments of the environment.
        profiles: ``module:attribute`` of the profile table, for environments outside the registration table.
        prefix: Only ids that begin with this belong to the suite.
        about: One line for the listing.
    """

    name: str
    env_id: str
    split: str
    tasks: int | None = None
    profile: str = "paper"
    env_kwargs: Mapping[str, Any] = field(default_factory=dict)
    profiles: str = ""
    prefix: str = ""
    about: str = ""

    def to_json(self) -> dict[str, Any]:
        """A JSON-ready dictionary."""
        return {**asdict(self), "env_kwargs": dict(self.env_kwargs)}

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Suite:
        """The inverse of :meth:`to_json`.

        Raises:
            ConfigInvalid: For unknown or missing keys.
        """
        known = [item.name for item in fields(cls)]
        for key in record:
            if key not in known:
                raise ConfigInvalid(f"suite: unknown key {key!r}; expected {known}.{close_matches(key, known)}")
        missing = [key for key in ("name", "env_id", "split") if key not in record]
        if missing:
            raise ConfigInvalid(f"suite: the keys {missing} are missing")
        return cls(**record)

    def find_profile(self, name: str | None = None) -> Profile:
        """The named profile, or the suite's own."""
        if not self.profiles:
            return get_profile(self.env_id, name or self.profile)
        table: Mapping[str, Profile] = load_attribute(self.profiles)
        chosen = name or self.profile
        if chosen not in table:
            raise ConfigInvalid(
                f"profile {chosen!r} is unknown for {self.env_id}; it has {sorted(table)}."
                f"{close_matches(chosen, table)}"
            )
        return table[chosen]

    def load_tasks(self, profile: str | None = None, env_kwargs: Mapping[str, Any] | None = None) -> Manifest:
        """The tasks in listed order, each once.

        Args:
            profile: Profile name, whose constructor arguments count too.
            env_kwargs: Further constructor arguments, e.g. a data folder.

        Raises:
            DataMissing: When the environment's data is not there; the message holds the command.
            DataInvalid: When the number of tasks is not the suite's, or one is listed twice.
            ConfigInvalid: When the split is procedural and has no list.
        """
        arguments = {**self.find_profile(profile).env_kwargs, **self.env_kwargs, **(env_kwargs or {})}
        env = gym.make(self.env_id, split=self.split, **arguments)
        try:
            listed = env.unwrapped.task_ids(self.split)  # type: ignore[attr-defined]
        except UnboundedSplit as error:
            raise ConfigInvalid(f"suite {self.name!r}: {error}") from error
        finally:
            env.close()
        ids = tuple(task_id for task_id in listed if task_id.startswith(self.prefix))
        if self.tasks is not None and len(ids) != self.tasks:
            raise DataInvalid(f"suite {self.name!r} has {self.tasks} tasks, but {self.env_id} lists {len(ids)}")
        return Manifest(self.name, ids)


SUITES: tuple[Suite, ...] = ()


def find_suite(name: str) -> Suite:
    """Look a suite up by name, or read it from a JSON file.

    Raises:
        UnknownSuite: With close matches.
    """
    for suite in SUITES:
        if suite.name == name:
            return suite
    if name.endswith(".json"):
        return load_suite(Path(name))
    known = [suite.name for suite in SUITES]
    raise UnknownSuite(
        f"suite {name!r} is unknown.{close_matches(name, known)} `seed-bench ls` lists all; "
        "a suite of your own is a .json file."
    )


def load_suite(path: Path) -> Suite:
    """Read a suite file: the fields of :class:`Suite` as one JSON object.

    Raises:
        UnknownSuite: When there is no such file.
        ConfigInvalid: When it is not a suite.
    """
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise UnknownSuite(f"suite file {path} does not exist") from error
    except ValueError as error:
        raise ConfigInvalid(f"suite file {path}: {error}") from error
    if not isinstance(record, dict):
        raise ConfigInvalid(f"suite file {path}: expected one JSON object with the keys of a suite")
    return Suite.from_json(record)
