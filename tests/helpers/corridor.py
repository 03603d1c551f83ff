"""A small complete environment for tests of the core: walk right to the end of a corridor."""

from __future__ import annotations

import os
import time
from typing import Any

import gymnasium as gym

from seed_envs.base import SeedEnv
from seed_envs.errors import UnknownTask
from seed_envs.outcomes import LazyActions, Outcome, TaskStatus
from seed_envs.profiles import ActionFormat, Profile, PromptTemplate
from seed_envs.wrappers import HistoryWindow, ParseAction, Prompt


class Corridor(SeedEnv[str]):
    """Task ``length-N``: N steps right are needed. ``crash``, ``exit``, ``hang`` and more misbehave on purpose."""

    name = "corridor"
    splits = ("train", "test")

    def __init__(self, split: str = "train", render_mode: str | None = None) -> None:
        super().__init__(split=split, render_mode=render_mode)
        self.length, self.position = 1, 0
        self.secret: Any = None

    def task_ids(self, split: str) -> tuple[str, ...]:
        self.check_split(split)
        return ("length-1", "length-2", "length-3") if split == "train" else ("length-4", "length-5")

    def _begin(self, task_id, options):
        if task_id not in self.task_ids("train") + self.task_ids("test"):
            raise UnknownTask(f"task {task_id!r} is unknown")
        self.length, self.position = int(task_id.split("-")[1]), 0
        return self._look()

    def _look(self) -> str:
        return f"You are at {self.position} of {self.length}."

    def _act(self, action: str) -> Outcome:
        if action == "crash":
            raise RuntimeError("the corridor collapsed")
        if action == "exit":
            os._exit(3)
        if action == "hang":
            time.sleep(60)
        if action in ("nan", "inf"):
            return Outcome(self._look(), float(action))
        if action == "odd end":
            return Outcome(self._look(), truncated=True, stop_reason="tired")
        if action == "secret":
            self.secret = lambda: self.position
            return Outcome(self._look())
        if action not in ("left", "right"):
            return Outcome(self._look(), action_valid=False, invalid_reason=f"cannot {action!r}")
        self.position = max(0, self.position + (1 if action == "right" else -1))
        won = self.position == self.length
        return Outcome(self._look(), float(won), won)

    def _status(self) -> TaskStatus:
        return TaskStatus("walk", f"reach {self.length}", self.position == self.length, self.position / self.length)

    def _admissible(self):
        return ("left", "right")

    def _extras(self):
        return {"position": self.secret or self.position, "lazy": LazyActions(lambda: ("right",))}

    def oracle_action(self) -> str:
        return "right"

    def get_state(self):
        return (self.length, self.position)

    def set_state(self, state) -> None:
        self.length, self.position = state
        self._running = True


TEMPLATE = PromptTemplate(
    first="Goal: {goal}{skill}\n{observation}\nActions: {admissible}",
    turn="Goal: {goal}{skill}\nStep {next_step}, last {history_length}:\n{history}\n{observation}",
)
WINDOW = Profile("window", TEMPLATE, ActionFormat("tags", reply="<action>{action}</action>"), max_steps=6, history=2)
GROWING = Profile(
    "growing",
    PromptTemplate(first="{goal}{skill}\n{observation}", turn="{observation}"),
    max_steps=6,
    history=None,
    style="growing",
)


def make_corridor(profile: Profile = WINDOW, limit: int = 6) -> gym.Env[Any, str]:
    """The corridor as an agent's environment."""
    env = ParseAction(gym.wrappers.TimeLimit(Corridor(), limit), profile.action_format)
    return Prompt(HistoryWindow(env, profile.history), profile, limit)
