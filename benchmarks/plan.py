"""The plan of a run: manifest x repeats, with a seed for every episode.

A planned episode depends on its task, its repeat and the run's seed alone, so workers, shards, batches and resumption
change nothing about it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from seed_envs.statistics.panels import choose_tasks


@dataclass(frozen=True)
class Planned:
    """One episode to play.

    Attributes:
        index: Place in the whole plan.
        task_id: The task.
        repeat: 0-based repeat of the task.
        seed: Seed of environment and agent in this episode.
    """

    index: int
    task_id: str
    repeat: int
    seed: int

    @property
    def key(self) -> tuple[str, int]:
        """What identifies the episode in a run."""
        return self.task_id, self.repeat


def build_plan(
    task_ids: Sequence[str],
    *,
    repeats: int = 1,
    seed: int = 0,
    limit: int | float | None = None,
    shard: tuple[int, int] = (1, 1),
) -> list[Planned]:
    """Every episode of a run, all tasks once before any is repeated.

    Args:
        task_ids: The manifest.
        repeats: Episodes per task.
        seed: Root of the episode seeds.
        limit: See :func:`~seed_envs.statistics.panels.choose_tasks`.
        shard: ``(i, n)`` keeps every n-th episode, beginning with the i-th.
    """
    chosen = choose_tasks(task_ids, limit)
    episodes = [
        Planned(repeat * len(chosen) + place, task_id, repeat, episode_seed(seed, task_id, repeat))
        for repeat in range(repeats)
        for place, task_id in enumerate(chosen)
    ]
    index, count = shard
    return episodes[index - 1 :: count]


def episode_seed(seed: int, task_id: str, repeat: int) -> int:
    """A 32-bit seed for one episode."""
    return int.from_bytes(hashlib.sha256(f"{seed}/{repeat}/{task_id}".encode()).digest()[:4], "big")
