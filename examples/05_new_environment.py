"""A complete new environment in one file: registered here, it is played, measured and trained by every command.

The agent has to guess a hidden number; the feedback says higher or lower. Run: python examples/05_new_environment.py

In the folder of this file, and with the name of your own module in a package of yours:

    seed-play 05_new_environment:demo/Guess-v0 --player oracle
    seed-bench run --suite 05_new_environment:demo/Guess-v0 --agent oracle
    seed-train data --env_id 05_new_environment:demo/Guess-v0 --tasks 0 --output_dir data/guess
    seed-train rl --env_id 05_new_environment:demo/Guess-v0 --model_name_or_path MODEL --output_dir runs/guess

A package that declares ``demo/Guess-v0 = module:ROW`` as an entry point of ``seed_envs.environments`` is known by
``demo/Guess-v0`` alone.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from seed_envs import EnvRow, Trajectory, make_agent_env, register
from seed_envs.base import SeedEnv
from seed_envs.errors import UnknownTask
from seed_envs.outcomes import Outcome, TaskStatus
from seed_envs.profiles import ActionFormat, Profile, PromptTemplate
from seed_envs.rollout import Reply, Request, rollout
from seed_envs.tasks import TaskSpec
from seed_envs.vector import EnvPool


class GuessEnv(SeedEnv[str]):
    """Guess a number from 0 to 15; task ids are ``number-N``."""

    name = "guess"
    splits = ("train",)

    def __init__(self, split: str = "train", render_mode: str | None = None) -> None:
        super().__init__(split=split, render_mode=render_mode)
        self.number, self.low, self.high = 0, 0, 15

    def task_ids(self, split: str) -> tuple[str, ...]:
        """The 16 tasks."""
        self.check_split(split)
        return tuple(f"number-{number}" for number in range(16))

    def _begin(self, task_id: str, options: dict[str, Any]) -> str:
        if task_id not in self.task_ids("train"):
            raise UnknownTask(f"task {task_id!r} is unknown; expected number-0 ... number-15")
        self.number, self.low, self.high = int(task_id.split("-")[1]), 0, 15
        return "I think of a number from 0 to 15."

    def _act(self, action: str) -> Outcome:
        if not action.isascii() or not action.isdigit() or not 0 <= int(action) <= 15:
            return Outcome("Say a number from 0 to 15.", action_valid=False, invalid_reason=f"{action!r} is no guess")
        guess = int(action)
        if guess == self.number:
            self.low = self.high = guess
            return Outcome("Right.", 1.0, terminated=True)
        if guess < self.number:
            self.low = max(self.low, guess + 1)
            return Outcome("Higher.")
        self.high = min(self.high, guess - 1)
        return Outcome("Lower.")

    def _status(self) -> TaskStatus:
        solved = self.low == self.high == self.number
        return TaskStatus("guess", "Guess my number.", solved, float(solved))

    def oracle_action(self) -> str:
        """The hidden number."""
        return str(self.number)

    def get_state(self) -> tuple[int, int, int]:
        """Number and bounds."""
        return (self.number, self.low, self.high)

    def set_state(self, state: tuple[int, int, int]) -> None:
        """Restore number and bounds."""
        self.number, self.low, self.high = state


PROFILE = Profile(
    name="paper",
    template=PromptTemplate(first="{goal}{skill}\n{observation}", turn="{goal}{skill}\n{history}\n{observation}"),
    action_format=ActionFormat("tags", reply="<action>{action}</action>"),
    max_steps=6,
    history=None,
)


PROFILES = {"paper": PROFILE}
"""All profiles; "paper" is the one taken unless another is asked for."""


def annotate(episode: Trajectory) -> str:
    """Writes a hindsight skill from the episode and its outcome alone."""
    guesses = ", ".join(step.action for step in episode.steps)
    outcome = "found the number" if episode.success else "did not find it"
    return f"Halve the range that is left with every guess; {guesses} {outcome}."


ROW = EnvRow(
    "demo/Guess-v0",
    entry_point=f"{__name__}:GuessEnv",
    max_episode_steps=6,
    profiles=f"{__name__}:PROFILES",
    annotator=f"{__name__}:annotate",
)
register(ROW)


def bisect(requests: Sequence[Request]) -> list[Reply]:
    """A policy that halves the interval, reading nothing but the history."""
    replies = []
    for request in requests:
        low, high = 0, 15
        seen = [*request.context.history, (request.context.observation, "")]
        for (_, action), (feedback, _) in itertools.pairwise(seen):
            low, high = (int(action) + 1, high) if feedback == "Higher." else (low, int(action) - 1)
        replies.append(Reply(PROFILE.action_format.format(str((low + high) // 2))))
    return replies


if __name__ == "__main__":
    with EnvPool(lambda: make_agent_env(ROW.id), size=4) as pool:
        tasks = [TaskSpec(task_id=task_id) for task_id in GuessEnv().task_ids("train")]
        episodes = rollout(pool, bisect, tasks, env_id=ROW.id, profile=PROFILE)
    print(f"solved {sum(episode.success for episode in episodes)} of {len(episodes)}")
    print(f"mean length {sum(episode.num_steps for episode in episodes) / len(episodes):.2f}")
