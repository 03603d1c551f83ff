"""A picture world for trainer tests: every turn shows a new picture of another size, and any words are an action."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np

from seed_envs.base import SeedEnv
from seed_envs.outcomes import Outcome, TaskStatus
from seed_envs.profiles import Profile, PromptTemplate
from seed_envs.wrappers import HistoryWindow, Prompt
from seed_envs.wrappers.actions import ParseAction

TASKS = ("one", "two", "three", "four")
GROWING = Profile(
    "pictures",
    PromptTemplate(first="Look.{skill}\n{observation}", turn="{observation}", skill_block="\nAdvice: {skill}"),
    style="growing",
    history=0,
)
WINDOW = Profile(
    "pictures-window",
    PromptTemplate(
        first="Look.{skill}\n{observation}", turn="Look.{skill}\n{observation}", skill_block="\nAdvice: {skill}"
    ),
    history=0,
)


class PictureEnv(SeedEnv[dict[str, Any]]):
    """Pictures of noise, all different, in heights and widths of 1 to 3 units.

    Args:
        unit: Pixels of a picture token's side.
        split: Where tasks are drawn from.
    """

    name: ClassVar[str] = "pictures"
    splits: ClassVar[tuple[str, ...]] = ("train",)

    def __init__(self, unit: int = 28, split: str = "train") -> None:
        super().__init__(split=split)
        self.unit, self.task, self.turn = unit, 0, 0

    def task_ids(self, split: str) -> Sequence[str]:
        return TASKS

    def _seen(self) -> dict[str, Any]:
        chooser = np.random.default_rng([self.task, self.turn])
        height, width = 2 + (self.task + self.turn) % 2, 1 + (self.task + 2 * self.turn) % 3
        shape = (height * self.unit, width * self.unit, 3)
        return {"text": f"turn {self.turn}", "image": chooser.integers(0, 256, shape, dtype=np.uint8)}

    def _begin(self, task_id: str, options: dict[str, Any]) -> dict[str, Any]:
        self.task, self.turn = TASKS.index(task_id), 0
        return self._seen()

    def _act(self, action: str) -> Outcome:
        self.turn += 1
        return Outcome(self._seen(), float(len(action) % 2))

    def _status(self) -> TaskStatus:
        return TaskStatus("look", "Look.", False, 0.0)

    def oracle_action(self) -> str:
        return "look"

    def get_state(self) -> Any:
        return (self.task, self.turn)

    def set_state(self, state: Any) -> None:
        self.task, self.turn = state


def make_picture_env(profile: Profile = GROWING, turns: int = 3, unit: int = 28) -> gym.Env[Any, str]:
    """Build the agent stack around the picture world."""
    env: gym.Env[Any, Any] = gym.wrappers.TimeLimit(PictureEnv(unit), max_episode_steps=turns)
    return Prompt(HistoryWindow(ParseAction(env, profile.action_format), profile.history), profile, turns)
