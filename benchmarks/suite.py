"""``Suite``: which tasks of which environment, with which prompt.

A suite names an environment id, a split, a profile and how many tasks there must be. The ids themselves are the
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

from seed_envs.base import SeedEnv
from seed_envs.data import data_dir
from seed_envs.errors import DataInvalid, DataMissing, UnboundedSplit, UnknownOption, close_matches
from seed_envs.profiles import Profile, get_profile, profile_table
from seed_envs.registration import load_attribute, make
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
        first: Only this many tasks from the top of the list (None: all).
        data: Constructor arguments that are files: argument to path below ``$SEED_DATA_DIR``.
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
    first: int | None = None
    data: Mapping[str, str] = field(default_factory=dict)
    about: str = ""

    def __post_init__(self) -> None:
        for name in ("name", "env_id", "split", "profile", "profiles", "prefix", "about"):
            self._check(name, isinstance(getattr(self, name), str), "text")
        for name in ("env_kwargs", "data"):
            self._check(name, isinstance(getattr(self, name), Mapping), "a mapping")
        for name in ("tasks", "first"):
            value = getattr(self, name)
            self._check(name, value is None or (type(value) is int and value > 0), "a whole number above 0")

    def _check(self, name: str, holds: bool, expected: str) -> None:
        if not holds:
            raise ConfigInvalid(f"suite {self.name!r}: {name}={getattr(self, name)!r}; expected {expected}")

    def to_json(self) -> dict[str, Any]:
        """A JSON-ready dictionary."""
        return {**asdict(self), "env_kwargs": dict(self.env_kwargs), "data": dict(self.data)}

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Suite:
        """The inverse of :meth:`to_json`.

        Raises:
            ConfigInvalid: For unknown or missing keys, and for values of the wrong kind.
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
        table = self.profile_table()
        chosen = name or self.profile
        if chosen not in table:
            raise ConfigInvalid(
                f"profile {chosen!r} is unknown for {self.env_id}; it has {sorted(table)}."
                f"{close_matches(chosen, table)}"
            )
        return table[chosen]

    def profile_table(self) -> Mapping[str, Profile]:
        """All profiles of the environment by name."""
        if not self.profiles:
            return profile_table(self.env_id)
        try:
            table: Mapping[str, Profile] = load_attribute(self.profiles)
        except (AttributeError, ValueError) as error:
            raise ConfigInvalid(f"suite {self.name!r}, profiles {self.profiles!r}: {error}") from error
        if not isinstance(table, Mapping) or not all(isinstance(found, Profile) for found in table.values()):
            raise ConfigInvalid(f"suite {self.name!r}: {self.profiles!r} is no table of profiles by name")
        return table

    def arguments(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Constructor arguments of the environment beside the profile's.

        Args:
            given: The user's; they win.

        Raises:
            DataMissing: When a file of ``data`` is not there; the message says how to name it.
        """
        files = {key: str(_find_file(path, key)) for key, path in self.data.items() if key not in given}
        return {"split": self.split, **self.env_kwargs, **files, **given}

    def load_tasks(self, profile: str | None = None, env_kwargs: Mapping[str, Any] | None = None) -> Manifest:
        """The tasks in listed order, each once.

        Args:
            profile: Profile name, whose constructor arguments count too.
            env_kwargs: Further constructor arguments, e.g. a data folder.

        Raises:
            DataMissing: When the environment's data is not there; the message holds the command.
            DataInvalid: When the number of tasks is not the suite's, or one is listed twice.
            ConfigInvalid: When the split is procedural and has no list, or the environment lacks an argument.
        """
        profile_kwargs = self.find_profile(profile).env_kwargs
        env = self._make({**profile_kwargs, **self.arguments(env_kwargs or {})})
        try:
            listed = env.unwrapped.task_ids(self.split)  # type: ignore[attr-defined]
            if isinstance(env.unwrapped, SeedEnv):
                env.unwrapped.require_data(self.split)
        except UnboundedSplit as error:
            raise ConfigInvalid(f"suite {self.name!r}: {error}") from error
        finally:
            env.close()
        ids = tuple(task_id for task_id in listed if task_id.startswith(self.prefix))[: self.first]
        if self.tasks is not None and len(ids) != self.tasks:
            raise DataInvalid(f"suite {self.name!r} has {self.tasks} tasks, but {self.env_id} lists {len(ids)}")
        return Manifest(self.name, ids)

    def _make(self, arguments: dict[str, Any]) -> gym.Env[Any, Any]:
        try:
            return make(self.env_id, **arguments)
        except UnknownOption as error:
            raise ConfigInvalid(f"suite {self.name!r}: {error}") from error


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


def _find_file(path: str, argument: str) -> Path:
    folder, _, name = path.partition("/")
    hint = (
        f"set $SEED_DATA_DIR to the folder that holds {path} (Search-R1 publishes its questions as parquet and its "
        f"passages as wiki-18.jsonl), or name the file with --env-arg {argument}=PATH"
    )
    try:
        found = data_dir(folder) / name
    except DataMissing as error:
        raise DataMissing(f"{error} In short: {hint}.") from error
    if not found.is_file():
        raise DataMissing(f"{found} does not exist; {hint}")
    return found
