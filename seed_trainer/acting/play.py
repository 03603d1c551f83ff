"""Playing a block of episodes with the current policy, for training and for evaluation.

Owns the environments. It asks :func:`seed_envs.rollout.rollout` for every episode and knows neither skills, rows nor
losses.
"""

from __future__ import annotations

import dataclasses
import functools
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

import gymnasium as gym

from seed_envs.profiles import Profile
from seed_envs.rollout import Policy, rollout
from seed_envs.tasks import TaskSpec
from seed_envs.trajectory import Trajectory
from seed_envs.vector import EnvPool
from seed_trainer.settings.options import CONCURRENT_EPISODES

MakeEnv = Callable[[], gym.Env[Any, str]]


class EpisodePlayer:
    """Plays tasks in batches on a pool of environments that is kept between calls.

    Args:
        make_env: Builds one agent environment.
        env_id: Recorded in trajectories.
        profile: How turns are shown.
        max_concurrent: Largest number of episodes at a time.
        backend: How the pool steps its environments.
    """

    def __init__(
        self,
        make_env: MakeEnv,
        env_id: str,
        profile: Profile,
        max_concurrent: int = CONCURRENT_EPISODES,
        backend: Literal["inline", "thread", "process"] = "inline",
    ) -> None:
        self.make_env = make_env
        self.env_id = env_id
        self.profile = profile
        self.max_concurrent = max_concurrent
        self.backend = backend
        self._pool: EnvPool | None = None

    def play(
        self,
        tasks: Sequence[TaskSpec],
        policy: Policy,
        on_finish: Callable[[int, Trajectory], None] | None = None,
        skill_for: Callable[[Trajectory], str] | None = None,
    ) -> list[Trajectory]:
        """Play one episode per task, in order; ``skill_for`` puts a skill into the actor's own prompts."""
        pool = self._get_pool(min(self.max_concurrent, max(len(tasks), 1)))
        episodes: list[Trajectory] = []
        # Whole batches rather than refilled slots: every batch starts together, so caches stay aligned.
        for start in range(0, len(tasks), pool.size):
            chunk = tasks[start : start + pool.size]
            finish = None if on_finish is None else functools.partial(_shifted, on_finish, start)
            episodes += rollout(
                pool,
                policy,
                chunk,
                env_id=self.env_id,
                profile=self.profile,
                on_finish=finish,
                skill_for=skill_for,
            )
        return episodes

    def close(self) -> None:
        """Close the environments."""
        if self._pool is not None:
            self._pool.close()
            self._pool = None

    def _get_pool(self, size: int) -> EnvPool:
        if self._pool is None or self._pool.size < size:
            self.close()
            self._pool = EnvPool(self.make_env, size, backend=self.backend)
        return self._pool


def _shifted(on_finish: Callable[[int, Trajectory], None], start: int, index: int, episode: Trajectory) -> None:
    on_finish(start + index, episode)


def block_tasks(inputs: Sequence[dict[str, Any]], group_size: int) -> list[TaskSpec]:
    """Return the tasks of a block of dataset rows, each row already repeated ``group_size`` times in a run.

    Columns ``task_id``, ``split`` and ``seed`` are read where present; others are ignored.
    """
    return [
        TaskSpec(
            task_id=row.get("task_id"),
            split=row.get("split"),
            seed=None if row.get("seed") is None else int(row["seed"]),
            group=index // group_size,
        )
        for index, row in enumerate(inputs)
    ]


def task_names(tasks: Sequence[TaskSpec]) -> list[str]:
    """Return what tells the tasks apart."""
    return [f"{task.split}/{task.task_id}/{task.seed}" for task in tasks]


def with_streams(tasks: Sequence[TaskSpec], root: str, before: Iterable[str] = ()) -> list[TaskSpec]:
    """Give every episode a stream of its own: the root's, of its task and of how often that came before.

    Args:
        tasks: Tasks of the episodes of this process.
        root: Names run, round and purpose.
        before: Names of the tasks that earlier processes play, so that the number of processes changes nothing.
    """
    seen, result = Counter(before), []
    for task, name in zip(tasks, task_names(tasks), strict=True):
        result.append(dataclasses.replace(task, stream=f"{root}/{name}/{seen[name]}"))
        seen[name] += 1
    return result
