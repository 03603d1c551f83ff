"""The one table of environments, open to other packages (:func:`register`, entry points of ``seed_envs.environments``).

Importing ``seed_envs`` registers its own rows with Gymnasium; a row that joins the table is registered as it joins.
"""

from __future__ import annotations

import importlib
import inspect
import re
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import WrapperSpec, load_env_creator

from seed_envs.errors import DependencyMissing, UnknownEnvironment, UnknownOption, close_matches
from seed_envs.plugins import OpenTable


@dataclass(frozen=True)
class EnvRow:
    """One environment id.

    Attributes:
        id: Gymnasium id.
        entry_point: ``module:class``, imported when the environment is made.
        max_episode_steps: Default step limit; None takes the environment's own ``turn_limit``, which may depend on its
            arguments, or none where its protocol ends episodes.
        kwargs: Default constructor arguments.
        tools: ``module:attribute`` of the tools (see ``seed_envs.tools``); ``""`` for the single tool ``act``.
        profiles: ``module:attribute`` of the profile table.
        annotator: ``module:attribute`` of the rule-based hindsight-skill writer; ``""`` where there is none.
        needs_browser: The environment drives a real browser.
    """

    id: str
    entry_point: str
    max_episode_steps: int | None
    profiles: str
    annotator: str = ""
    kwargs: dict[str, Any] = field(default_factory=dict)
    needs_browser: bool = False
    tools: str = ""

    def __post_init__(self) -> None:
        for name in ("entry_point", "profiles", *filter(self.__dict__.get, ("annotator", "tools"))):
            if not re.fullmatch(r"[\w.]+:\w+", getattr(self, name)):
                raise ValueError(f"{self.id}: {name}={getattr(self, name)!r}; expected 'module:attribute'")


def _row(id: str, entry_point: str, limit: int | None, profiles: str = "PROFILES", **extra: Any) -> EnvRow:
    package = entry_point.rpartition(".")[0]
    return EnvRow(id, entry_point, limit, f"{package}.prompts:{profiles}", f"{package}.annotator:annotate", **extra)


ENVIRONMENTS: tuple[EnvRow, ...] = (
    _row("seed/ALFWorld-v0", "seed_envs.alfworld.env:ALFWorldEnv", 50),
    _row("seed/WebShop-v0", "seed_envs.webshop.env:WebShopEnv", 15, tools="seed_envs.webshop.prompts:TOOLS"),
    _row(
        "seed/WebShop-Fixed-v0",
        "seed_envs.webshop.env:WebShopEnv",
        15,
        kwargs={"mode": "fixed"},
        tools="seed_envs.webshop.prompts:TOOLS",
    ),
    _row(
        "seed/WebShopBrowser-v0",
        "seed_envs.webshop.browser:WebShopBrowserEnv",
        15,
        needs_browser=True,
        tools="seed_envs.webshop.prompts:TOOLS",
    ),
    _row("seed/SearchQA-v0", "seed_envs.search_qa.env:SearchQAEnv", None, tools="seed_envs.search_qa.prompts:TOOLS"),
    _row("seed/Sokoban-v0", "seed_envs.vision.sokoban.env:SokobanEnv", None),
    _row("seed/EZPoints-v0", "seed_envs.vision.ezpoints.env:EZPointsEnv", 8),
    _row("seed/Points24-v0", "seed_envs.vision.ezpoints.points24:Points24Env", 20, profiles="POINTS24_PROFILES"),
)


_LIMIT = WrapperSpec("LimitReason", "seed_envs.wrappers.limits:LimitReason", {})
_OWN_LIMIT = WrapperSpec("TurnLimit", f"{__name__}:limit_turns", {})


def _register_with_gymnasium(row: EnvRow) -> None:
    if row.id not in gym.registry:
        # Gymnasium's passive checker fails in every step once its first reset was refused (a wrong task id); this
        # project's tests run the full checker instead.
        gym.register(
            row.id,
            entry_point=row.entry_point,
            max_episode_steps=row.max_episode_steps,
            disable_env_checker=True,
            additional_wrappers=(_LIMIT,) if row.max_episode_steps else (_OWN_LIMIT, _LIMIT),
            kwargs=dict(row.kwargs),
        )


def limit_turns(env: gym.Env[Any, Any]) -> gym.Env[Any, Any]:
    """The environment under its own ``turn_limit``, unless ``gym.make`` was given ``max_episode_steps``."""
    limit = env.get_wrapper_attr("turn_limit")
    limited = env.spec is not None and env.spec.max_episode_steps is not None
    return env if limited or limit is None else gym.wrappers.TimeLimit(env, limit)


TABLE: OpenTable[EnvRow] = OpenTable(
    "environment",
    "environments",
    EnvRow,
    {row.id: row for row in ENVIRONMENTS},
    UnknownEnvironment,
    _register_with_gymnasium,
)
"""Every environment that is known, the registered ones of other packages included."""


def register(row: EnvRow) -> None:
    """Add an environment of your own, to the table and to Gymnasium; an equal row again changes nothing.

    Every command then takes its id: as ``module:id``, which imports the module that calls this function, or as the id
    alone where the module's package declares it as an entry point of ``seed_envs.environments``.

    Args:
        row: The environment; its id has a namespace of your own.

    Raises:
        NameTaken: When the id belongs to another row.
    """
    TABLE.add(row.id, row)


def find_row(env_id: str) -> EnvRow:
    """The row of an id; ``module:id`` imports the module first.

    Raises:
        UnknownEnvironment: With close matches.
    """
    return TABLE.find(env_id)


def make(env_id: str, **kwargs: Any) -> gym.Env[Any, Any]:
    """``gym.make``, with an error that helps when the environment does not take an argument.

    Args:
        env_id: Gymnasium id; ``module:id`` imports the module first.
        **kwargs: What ``gym.make`` takes: its own arguments and those of the environment.

    Raises:
        UnknownOption: For an argument that the environment lacks, with all it has and close matches.
    """
    if env_id not in gym.registry and ":" not in env_id:
        TABLE.get(env_id)  # an installed package may declare it
    try:
        return gym.make(env_id, **kwargs)
    except TypeError as error:  # an environment of another package
        found = re.search(r"unexpected keyword argument '(\w+)'", str(error))
        if found is None or found[1] not in kwargs:
            raise
        known = _argument_names(env_id)
        hint = close_matches(found[1], known)
        raise UnknownOption(f"{env_id} has no argument {found[1]!r}; it takes {known}.{hint}") from None


def _argument_names(env_id: str) -> list[str]:
    """The constructor arguments of an environment, those that it hands on to its base classes included."""
    entry_point = gym.spec(env_id.rpartition(":")[2]).entry_point
    creator: Any = load_env_creator(entry_point) if isinstance(entry_point, str) else entry_point
    names: set[str] = set()
    for maker in creator.__mro__ if isinstance(creator, type) else (creator,):
        parameters = inspect.signature(maker).parameters.values()
        names.update(item.name for item in parameters if item.kind in (item.POSITIONAL_OR_KEYWORD, item.KEYWORD_ONLY))
        if all(item.kind is not item.VAR_KEYWORD for item in parameters):
            break
    return sorted(names)


def load_attribute(reference: str) -> Any:
    """Import ``module:attribute`` from the table.

    Raises:
        DependencyMissing: When the module does not exist in this installation.
    """
    module, _, attribute = reference.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        raise DependencyMissing(f"{reference} is not part of this installation: {error}") from error
