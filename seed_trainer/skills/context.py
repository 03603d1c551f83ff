"""What the choice of a teaching skill may depend on: the episodes of the round, and skills of earlier rounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from seed_envs.trajectory import Trajectory
from seed_trainer.skills.library import SkillLibrary


@dataclass
class SkillMemory:
    """Skills of earlier rounds by task, for ``stale_text``."""

    skills: dict[str, list[tuple[int, str]]] = field(default_factory=dict)

    def remember(self, round_index: int, skills: Sequence[tuple[str, str]]) -> None:
        """Keep the valid skills of a round, given as task id and text."""
        for task_id, text in skills:
            self.skills.setdefault(task_id, []).append((round_index, text))

    def recall(self, task_id: str, newest: float, rng: np.random.Generator) -> str:
        """Return a skill of the task from round ``newest`` or before; the oldest one for negative infinity."""
        known = self.skills.get(task_id, [])
        if newest == -np.inf and known:
            oldest = known[0][0]
            old = [text for round_index, text in known if round_index == oldest]
        else:
            old = [text for round_index, text in known if round_index <= newest]
        return old[int(rng.integers(len(old)))] if old else ""


class Told(NamedTuple):
    """What the choice may know of an episode."""

    task_id: str
    task_type: str
    success: bool


@dataclass
class SkillContext:
    """What the choice may depend on."""

    trajectories: Sequence[Trajectory | Told]
    group_size: int
    round_index: int
    rng: np.random.Generator
    library: SkillLibrary | None
    memory: SkillMemory
    random_text: Callable[[int], str]
    annotate: Callable[[Trajectory], str]
    gather: Callable[[list[Any]], list[Any]] = list
    """Joins the lists of all processes."""
    process: int = 0

    @property
    def whole(self) -> list[Trajectory]:
        """The episodes themselves, which are known of this process alone."""
        return [episode for episode in self.trajectories if isinstance(episode, Trajectory)]
