"""The plan of a run: manifest x repeats, with a seed for every episode.

A planned episode depends on its task, its repeat and the run's seed alone, so workers, shards, batches and resumption
change nothing about it.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass

from .errors import ConfigInvalid


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
        limit: See :func:`choose_tasks`.
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


def choose_tasks(task_ids: Sequence[str], limit: int | float | None) -> list[str]:
    """A fixed sample of the tasks in listed order.

    The sample is drawn by the hash of the ids: it is the same for every agent and seed, it mixes the families also
    where the manifest lists them one after the other, and a smaller limit gives a part of a larger one.

    Args:
        task_ids: The manifest.
        limit: Number of tasks, or a share if it is a float below 1; None keeps all.

    Raises:
        ConfigInvalid: For a float that is no share.
    """
    if limit is None:
        return list(task_ids)
    if isinstance(limit, float) and not limit.is_integer():
        if limit >= 1:
            raise ConfigInvalid(f"limit={limit}; expected a whole number of tasks or a share below 1")
        count = math.ceil(limit * len(task_ids))
    else:
        count = int(limit)
    ranked = sorted(task_ids, key=lambda task_id: hashlib.sha256(task_id.encode()).digest())
    kept = set(ranked[:count])
    return [task_id for task_id in task_ids if task_id in kept]


def episode_seed(seed: int, task_id: str, repeat: int) -> int:
    """A 32-bit seed for one episode."""
    return int.from_bytes(hashlib.sha256(f"{seed}/{repeat}/{task_id}".encode()).digest()[:4], "big")
