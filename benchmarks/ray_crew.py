"""``--executor ray``: whole episodes on Ray actors, on one machine or many.

Every actor holds an agent and its environments and returns finished lines; the driver alone writes. An actor that
dies costs its episodes a second try, each alone, so that the one that kills actors is found and recorded. Results are
those of a local run: nothing about an episode depends on where it is played.
"""

from __future__ import annotations

import itertools
import os
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seed_envs.child import START_TIMEOUT
from seed_envs.errors import require
from seed_envs.rollout import Reply, Request
from seed_envs.trajectory import EpisodeError, StopReason

from .agents.base import make_agent
from .config import RunConfig
from .plan import Planned
from .player import Emit, Player, utc_now
from .records import FinishedEpisode, faulty_episode

#: Seconds between looks at actors that may hang.
_LOOK = 1.0


class _RemotePlayer:
    """Body of an actor: plays what it is given, and answers meanwhile how long it has been silent."""

    def __init__(self, config: RunConfig, attempt: int) -> None:
        self._agent = make_agent(config.agent, config.suite.find_profile(config.profile))
        self._player = Player(config, self._agent, attempt, self._on_turn)
        self._beat = time.monotonic()

    def ready(self) -> bool:
        """Whether the actor is up (an answer says so)."""
        return True

    def play(self, episodes: Sequence[Planned]) -> list[FinishedEpisode]:
        """Play the episodes and return them as they ended."""
        finished: list[FinishedEpisode] = []
        self._beat = time.monotonic()
        self._player.play(episodes, finished.append)
        return finished

    def silent_seconds(self) -> float:
        """Seconds since the last turn."""
        return time.monotonic() - self._beat

    def _on_turn(self, requests: Sequence[Request], replies: Sequence[Reply]) -> None:
        self._beat = time.monotonic()


@dataclass
class _Call:
    """Episodes that an actor is playing."""

    actor: Any
    episodes: list[Planned]
    started: str
    begin: float
    alive: float = 0.0

    def __post_init__(self) -> None:
        self.alive = self.begin


class RayCrew:
    """Plays episodes on Ray actors.

    Args:
        config: What is evaluated; ``num_workers`` actors with ``ray_gpus`` each.
        default_batch: Environments per actor unless the configuration says otherwise.
        attempt: Recorded in every line.

    Raises:
        DependencyMissing: Without ray.
    """

    def __init__(self, config: RunConfig, default_batch: int, attempt: int) -> None:
        require("ray", "ray", "--executor ray")
        self._config, self._attempt = config, attempt
        self._chunk = config.batch_size or default_batch
        self._started_ray = False
        self._again: deque[list[Planned]] = deque()
        self._live: dict[Any, _Call] = {}

    def play(self, episodes: Iterable[Planned], emit: Emit) -> None:
        """Play all episodes; each goes to ``emit`` when its chunk has ended."""
        import ray

        self._connect()
        source = iter(episodes)
        actors = [self._make_actor() for _ in range(self._config.num_workers)]
        for actor in actors:
            self._wait_for(actor)
            self._give(actor, source)
        while self._live:
            done, _ = ray.wait(list(self._live), timeout=_LOOK)
            for reference in done:
                call = self._live.pop(reference)
                try:
                    finished: list[FinishedEpisode] = ray.get(reference)
                except ray.exceptions.RayActorError as error:
                    self._lost(call, error, emit)
                    self._give(self._wait_for(self._make_actor()), source)
                    continue
                self._give(call.actor, source)
                for episode in finished:
                    emit(episode)
            if self._config.timeout is not None and not done:
                self._end_silent_actors(emit, source)

    def close(self) -> None:
        """Leave the cluster; a cluster that was started here ends."""
        import ray

        if self._started_ray and ray.is_initialized():
            ray.shutdown()

    def _connect(self) -> None:
        import ray

        if not ray.is_initialized():
            ray.init(
                address=self._config.ray_address,
                log_to_driver=False,
                include_dashboard=None if self._config.ray_address else False,
                runtime_env={"env_vars": {"PYTHONPATH": _import_path(), "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0"}},
            )
            self._started_ray = True

    def _make_actor(self) -> Any:
        import ray

        remote: Any = ray.remote(_RemotePlayer)
        return remote.options(
            num_cpus=1, num_gpus=self._config.ray_gpus, max_concurrency=2, scheduling_strategy="SPREAD"
        ).remote(self._config, self._attempt)

    def _wait_for(self, actor: Any) -> Any:
        """The actor, once it is up: starting does not count as time of an episode."""
        import ray

        ray.get(actor.ready.remote(), timeout=START_TIMEOUT)
        return actor

    def _give(self, actor: Any, source: Iterator[Planned]) -> None:
        chunk = self._again.popleft() if self._again else list(itertools.islice(source, self._chunk))
        if chunk:
            self._live[actor.play.remote(chunk)] = _Call(actor, chunk, utc_now(), time.monotonic())

    def _lost(self, call: _Call, error: BaseException, emit: Emit) -> None:
        """An actor died: find the culprit by playing its episodes one by one, or record it."""
        if len(call.episodes) > 1:
            self._again.extend([planned] for planned in call.episodes)
            return
        fault = EpisodeError("WorkerDied", f"the Ray actor ended during the episode ({type(error).__name__})")
        emit(self._faulty(call, fault, StopReason.ENV_ERROR))

    def _end_silent_actors(self, emit: Emit, source: Iterator[Planned]) -> None:
        import ray

        for reference, call in list(self._live.items()):
            try:
                call.alive = time.monotonic() - ray.get(call.actor.silent_seconds.remote(), timeout=_LOOK)
            except ray.exceptions.GetTimeoutError:
                pass  # too busy to answer, or hanging with the interpreter's lock: the last answer counts
            except ray.exceptions.RayActorError:
                continue  # its call fails too and is looked after there
            if self._config.timeout is None or time.monotonic() - call.alive <= self._config.timeout:
                continue
            ray.kill(call.actor)
            del self._live[reference]
            if len(call.episodes) > 1:
                self._again.extend([planned] for planned in call.episodes)
            else:
                message = f"no sign of life for {self._config.timeout} s; the Ray actor was ended"
                emit(self._faulty(call, EpisodeError("WorkerTimeout", message), StopReason.TIMEOUT))
            self._give(self._wait_for(self._make_actor()), source)

    def _faulty(self, call: _Call, error: EpisodeError, reason: StopReason) -> FinishedEpisode:
        return faulty_episode(
            call.episodes[0],
            self._config.suite.env_id,
            error,
            reason,
            attempt=self._attempt,
            started=call.started,
            seconds=time.monotonic() - call.begin,
        )


def _import_path() -> str:
    """Where this process finds its modules, so that actors find the same ones (in a checkout too)."""
    here = str(Path(__file__).resolve().parent.parent)
    return os.pathsep.join(dict.fromkeys([*(path for path in sys.path if path), here]))
