"""A small environment for tests of the harness: climb a ladder whose rungs have colours.

Every turn names a rung; ``up COLOUR`` with its colour climbs, anything else that is listed falls off. The colours are
drawn with ``np_random``, so results depend on seeds as in a real environment. Tasks of the split ``bad`` crash, exit
or hang on purpose. Importing the module registers ``bench/Ladder-v0``.
"""

from __future__ import annotations

import os
import time

import gymnasium as gym
import numpy as np

from seed_envs.base import SeedEnv
from seed_envs.errors import UnknownTask
from seed_envs.outcomes import Outcome, TaskStatus
from seed_envs.profiles import ActionFormat, Profile, PromptTemplate
from seed_envs.rollout import Reply

COLOURS = ("red", "green", "blue")
GOOD = tuple(f"{family}/{number}" for family in ("short", "long") for number in range(12))
BAD = ("short/0", "crash/0", "short/1", "exit/0", "long/2", "hang/0", "long/3")


class Ladder(SeedEnv):
    """Climb 2 rungs (``short``) or 4 (``long``)."""

    name = "ladder"
    splits = ("good", "bad", "twice", "endless")

    def __init__(self, split="good", render_mode=None, image=False, pause=0.0, hang_seconds=60.0) -> None:
        super().__init__(split=split, render_mode=render_mode)
        self.image, self.pause, self.hang_seconds = image, pause, hang_seconds
        if image:
            box = gym.spaces.Box(0, 255, (8, 8, 3), np.uint8)
            self.observation_space = gym.spaces.Dict({"text": self.observation_space, "image": box})

    def task_ids(self, split):
        self.check_split(split)
        if split == "endless":
            from seed_envs.errors import UnboundedSplit

            raise UnboundedSplit("the split 'endless' has no list")
        return {"good": GOOD, "bad": BAD, "twice": ("short/0", "short/0")}[split]

    def _begin(self, task_id, options):
        if task_id not in GOOD + BAD:
            raise UnknownTask(f"task {task_id!r} is unknown")
        self.family = task_id.split("/")[0]
        if self.family == "crash" and task_id == "crash/1":
            raise RuntimeError("cannot be set up")
        self.height, self.fell = 0, False
        self.colours = [COLOURS[int(self.np_random.integers(3))] for _ in range(4 if self.family == "long" else 2)]
        return self._look("You stand below the ladder.")

    def _look(self, text):
        top = self.height == len(self.colours)
        text = f"{text} {'You are on top.' if top else f'The next rung is {self.colours[self.height]}.'}"
        if not self.image:
            return text
        return {"text": text, "image": np.full((8, 8, 3), 40 * self.height, np.uint8)}

    def _act(self, action):
        if self.pause:
            time.sleep(self.pause)
        if self.family == "crash":
            raise RuntimeError("the ladder broke")
        if self.family == "exit":
            os._exit(7)
        if self.family == "hang":
            time.sleep(self.hang_seconds)
        if action not in self._admissible():
            return Outcome(
                self._look("Nothing happens."), action_valid=False, invalid_reason=f"no such action: {action!r}"
            )
        if action != f"up {self.colours[self.height]}":
            self.fell = True
            return Outcome(self._look("You fall."), terminated=True)
        self.height += 1
        won = self.height == len(self.colours)
        return Outcome(self._look("You climb."), float(won), won)

    def _status(self):
        done = self.height == len(self.colours) and not self.fell
        return TaskStatus(self.family, "Reach the top.", done, self.height / len(self.colours))

    def _admissible(self):
        return tuple(f"up {colour}" for colour in COLOURS)

    def _extras(self):
        return {"height": self.height}

    def oracle_action(self):
        return f"up {self.colours[self.height]}"

    def rule_action(self):
        return "up red"


PROFILES = {
    "paper": Profile(
        "paper",
        PromptTemplate(
            first="Task: {goal}{skill}\n{observation}\nActions: {admissible}",
            turn="Task: {goal}{skill}\nStep {next_step}. Before:\n{history}\n{observation}\nActions: {admissible}",
        ),
        ActionFormat("tags", reply="<action>{action}</action>"),
        max_steps=8,
        history=2,
    ),
    "bare": Profile(
        "bare",
        PromptTemplate(first="{goal}{skill}\n{observation}", turn="{goal}{skill}\n{observation}"),
        ActionFormat("tags", reply="<action>{action}</action>"),
        max_steps=8,
        history=0,
    ),
    "growing": Profile(
        "growing",
        PromptTemplate(first="Task: {goal}{skill}\n{observation}", turn="{observation}"),
        ActionFormat("tags", reply="<action>{action}</action>"),
        max_steps=8,
        history=0,
        style="growing",
        system="Climb.",
    ),
}

if "bench/Ladder-v0" not in gym.registry:
    gym.register("bench/Ladder-v0", entry_point="ladder_env:Ladder", max_episode_steps=8)


def climb(request):
    """An agent that reads the colour off the prompt."""
    colour = request.context.observation.rpartition("The next rung is ")[2].rstrip(".")
    return f"I see a {colour} rung. <action>up {colour}</action>"


def stumble(request):
    """An agent that sometimes fails, sometimes raises, depending on the episode's seed alone."""
    draw = (request.task.seed + request.turn) % 10
    if draw == 0:
        raise RuntimeError("out of ideas")
    return climb(request) if draw < 8 else "<action>jump</action>" if draw == 8 else "no tags"


def wait(request):
    """An agent that does nothing an environment knows."""
    return "<action>wait</action>"


def climb_on_ray(request):
    """As ``climb``, noting the Ray node it ran on."""
    import ray

    return Reply(climb(request), {"node": ray.get_runtime_context().get_node_id()})


def suite_record(split="good", **changes):
    """A suite file of this environment."""
    return {
        "name": f"ladder/{split}",
        "env_id": "ladder_env:bench/Ladder-v0",
        "split": split,
        "profiles": "ladder_env:PROFILES",
        **changes,
    }


def nobody_home(request):
    """An agent that never answers."""
    raise RuntimeError(f"nobody is home ({request.task.seed})")
