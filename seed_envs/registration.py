"""The one table of environments. Importing ``seed_envs`` registers its rows with Gymnasium."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym

from seed_envs.errors import DependencyMissing, UnknownEnvironment, close_matches


@dataclass(frozen=True)
class EnvRow:
    """One environment id.

    Attributes:
        id: Gymnasium id.
        entry_point: ``module:class``, imported when the environment is made.
        max_episode_steps: Default step limit.
        kwargs: Default constructor arguments.
        profiles: ``module:attribute`` of the profile table.
        annotator: ``module:attribute`` of the rule-based hindsight-skill writer.
        needs_browser: The environment drives a real browser.
    """

    id: str
    entry_point: str
    max_episode_steps: int
    profiles: str
    annotator: str
    kwargs: dict[str, Any] = field(default_factory=dict)
    needs_browser: bool = False


def _row(id: str, entry_point: str, limit: int, profiles: str = "PROFILES", **extra: Any) -> EnvRow:
    package = entry_point.rpartition(".")[0]
    return EnvRow(id, entry_point, limit, f"{package}.prompts:{profiles}", f"{package}.annotator:annotate", **extra)


ENVIRONMENTS: tuple[EnvRow, ...] = (
    _row("seed/ALFWorld-v0", "seed_envs.alfworld.env:ALFWorldEnv", 50),
    _row("seed/WebShop-v0", "seed_envs.webshop.env:WebShopEnv", 15),
    _row("seed/WebShop-Fixed-v0", "seed_envs.webshop.env:WebShopEnv", 15, kwargs={"mode": "fixed"}),
    _row("seed/WebShopBrowser-v0", "seed_envs.webshop.browser:WebShopBrowserEnv", 15, needs_browser=True),
    _row("seed/SearchQA-v0", "seed_envs.search_qa.env:SearchQAEnv", 10),
    _row("seed/Sokoban-v0", "seed_envs.vision.sokoban.env:SokobanEnv", 15),
    _row("seed/EZPoints-v0", "seed_envs.vision.ezpoints.env:EZPointsEnv", 8),
    _row("seed/Points24-v0", "seed_envs.vision.ezpoints.points24:Points24Env", 20, profiles="POINTS24_PROFILES"),
)


def register_all() -> None:
    """Register every row; calling it twice changes nothing."""
    for row in ENVIRONMENTS:
        if row.id not in gym.registry:
            # Gymnasium's passive checker fails in every step once its first reset was refused (a wrong task id); this
            # project's tests run the full checker instead.
            gym.register(
                row.id,
                entry_point=row.entry_point,
                max_episode_steps=row.max_episode_steps,
                disable_env_checker=True,
                kwargs=dict(row.kwargs),
            )


def find_row(env_id: str) -> EnvRow:
    """The row of an id.

    Raises:
        UnknownEnvironment: With close matches.
    """
    for row in ENVIRONMENTS:
        if row.id == env_id:
            return row
    known = [row.id for row in ENVIRONMENTS]
    raise UnknownEnvironment(
        f"environment {env_id!r} is unknown; known: {', '.join(known)}.{close_matches(env_id, known)}"
    )


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
