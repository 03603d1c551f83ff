"""An environment and agents that answer nonsense, each task and each function in its own way.

Importing the module registers ``bench/Nonsense-v0``.
"""

from __future__ import annotations

import sys

import gymnasium as gym
import numpy as np
from ladder_env import PROFILES

from seed_envs.base import SeedEnv
from seed_envs.outcomes import Outcome, TaskStatus
from seed_envs.rollout import Reply

__all__ = ["PROFILES"]

REWARDS = {"nan": float("nan"), "inf": float("inf"), "none": None, "words": "much", "float32": np.float32(0.5)}
SCORES = {"too_high": 2.0, "score_nan": float("nan"), "score_text": "1"}
TEXTS = {"nothing": None, "bytes": b"abc", "number": 7, "surrogate": "a\ud800b\x00\u2028"}
TASKS = (*REWARDS, *SCORES, *TEXTS, "no_family", "bored", "exits", "exits_early", "unspeakable", "fine")
SCORED = ("float32", "surrogate", "fine")


class Unspeakable(Exception):
    """An exception whose text cannot be made."""

    def __str__(self):
        raise ValueError("no text")


class Nonsense(SeedEnv):
    """Two steps to success, unless the task says otherwise."""

    name = "nonsense"
    splits = ("all",)

    def __init__(self, split="all", render_mode=None) -> None:
        super().__init__(split=split, render_mode=render_mode)

    def task_ids(self, split):
        self.check_split(split)
        return TASKS

    def _begin(self, task_id, options):
        self.kind, self.steps = task_id, 0
        if task_id == "exits_early":
            sys.exit(3)
        return "Begin."

    def _act(self, action):
        self.steps += 1
        if self.kind == "exits":
            sys.exit(0)
        if self.kind == "unspeakable":
            raise Unspeakable
        done = self.steps == 2
        reward, text = REWARDS.get(self.kind, 1.0), TEXTS.get(self.kind, "Go on.")
        return Outcome(text, reward, done, stop_reason="boredom" if done and self.kind == "bored" else "")

    def _status(self):
        score = SCORES.get(self.kind, float(self.steps == 2))
        family = None if self.kind == "no_family" else self.kind
        return TaskStatus(family, "Say yes.", self.steps == 2, score)

    def _admissible(self):
        return ("yes", "no")

    def oracle_action(self):
        return "yes"


if "bench/Nonsense-v0" not in gym.registry:
    gym.register("bench/Nonsense-v0", entry_point="nonsense_env:Nonsense", max_episode_steps=8)


def suite_record(**changes):
    """A suite file of this environment."""
    return {
        "name": "nonsense/all",
        "env_id": "nonsense_env:bench/Nonsense-v0",
        "split": "all",
        "profiles": "nonsense_env:PROFILES",
        **changes,
    }


def _reply(**fields):
    return lambda request: Reply(**{"text": "<action>yes</action>", **fields})


no_text = _reply(text=None)
number_as_text = _reply(text=5)
usage_in_words = _reply(meta={"usage": "lots"})
negative_usage = _reply(meta={"usage": {"prompt_tokens": -3, "completion_tokens": 2}})
usage_of_nothing = _reply(meta={"usage": {"prompt_tokens": None}})
cost_nan = _reply(meta={"usage": {"cost": float("nan")}})
no_meta = _reply(meta=None)
_circle: dict = {}
_circle["self"] = _circle
endless_meta = _reply(meta=_circle)


def a_list(request):
    return ["<action>yes</action>"]


def exits(request):
    sys.exit(0)


def raises_unspeakably(request):
    raise Unspeakable
