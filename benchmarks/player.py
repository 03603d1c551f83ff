"""``Player``: plays planned episodes with one agent in one process.

It joins the pool of environments, the agent and the shared episode loop, and turns every trajectory into its line. It
opens no file and decides nothing about what is played; local runs, worker processes and Ray actors all use it.
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, Literal

import gymnasium as gym

from seed_envs.profiles import Profile
from seed_envs.rollout import Reply, Request, failed_reply, rollout
from seed_envs.tasks import TaskSpec
from seed_envs.trajectory import Trajectory
from seed_envs.vector import EnvPool
from seed_envs.wrappers import make_agent_env

from .agents.base import Agent, Placement, vet_replies
from .blind import donors_of, make_blind_env
from .config import RunConfig
from .plan import Planned
from .records import FinishedEpisode, finish_episode

Emit = Callable[[FinishedEpisode], None]
OnTurn = Callable[[Sequence[Request], Sequence[Reply]], None]


@dataclass(frozen=True)
class Layout:
    """How many environments are played at once.

    Attributes:
        lanes: Independent episode loops (threads).
        slots: Environments of each loop, answered in one batch.
        isolated: Every environment has a process of its own.
    """

    lanes: int
    slots: int
    isolated: bool


def choose_layout(agent: Agent, config: RunConfig) -> Layout:
    """What suits the agent's placement, unless the configuration says otherwise.

    An agent that answers a batch at once gets one loop over many environments; an endpoint gets as many loops with
    one environment each, so that no episode waits for another; everything else plays one episode after the other.
    """
    isolated = config.num_workers > 0 and config.executor == "local" and agent.placement is not Placement.WORKER
    size = config.num_workers if isolated else config.batch_size or agent.default_batch
    if agent.placement is Placement.CONCURRENT:
        return Layout(size, 1, isolated)
    return Layout(1, size, isolated)


class Player:
    """Plays episodes.

    Args:
        config: What is evaluated.
        agent: Who plays.
        attempt: Recorded in every line.
        on_turn: Called after every answer of the agent, before the environments move.
    """

    def __init__(self, config: RunConfig, agent: Agent, attempt: int = 1, on_turn: OnTurn | None = None) -> None:
        self.config = config
        self.agent = agent
        self.attempt = attempt
        self.layout = choose_layout(agent, config)
        self._on_turn = on_turn
        self._abandoned = threading.Event()
        self._profile: Profile = config.suite.find_profile(config.profile)
        make_env = functools.partial(
            _env_maker(config),
            config.suite.env_id,
            self._profile,
            config.max_steps,
            config.suite.arguments(config.env_kwargs),
        )
        backend: Literal["process", "inline"] = "process" if self.layout.isolated else "inline"
        timeout = config.timeout if self.layout.isolated else None
        self._pools = [EnvPool(make_env, self.layout.slots, backend, timeout) for _ in range(self.layout.lanes)]

    def play(self, episodes: Iterable[Planned], emit: Emit) -> None:
        """Play the episodes; each goes to ``emit`` as soon as it ends, one at a time.

        An exception of ``emit`` ends the playing, once the episodes of the other loops have ended, and is raised here.
        An interrupt abandons them: the agent is closed, so that nothing is waited for.
        """
        source, lock, stop = iter(episodes), threading.Lock(), threading.Event()

        def lane(pool: EnvPool) -> None:
            try:
                self._play_lane(pool, _shared(source, lock, stop), lock, emit)
            except BaseException:
                stop.set()
                raise

        if len(self._pools) == 1:
            lane(self._pools[0])
            return
        with ThreadPoolExecutor(len(self._pools)) as threads:
            try:
                for future in [threads.submit(lane, pool) for pool in self._pools]:
                    future.result()
            except KeyboardInterrupt:
                self._abandoned.set()
                self.agent.close()
                raise

    def close(self) -> None:
        """Close the environments (not the agent)."""
        for pool in self._pools:
            pool.close()

    def _play_lane(self, pool: EnvPool, episodes: Iterator[Planned], lock: threading.Lock, emit: Emit) -> None:
        begun: dict[int, tuple[Planned, str, float]] = {}

        def tasks() -> Iterator[TaskSpec]:
            for number, planned in enumerate(episodes):
                begun[number] = (planned, utc_now(), time.perf_counter())
                yield TaskSpec(task_id=planned.task_id, seed=planned.seed, group=planned.repeat)

        def finish(number: int, trajectory: Trajectory) -> None:
            planned, started, begin = begun.pop(number)
            seconds = time.perf_counter() - begin
            finished = finish_episode(planned, trajectory, attempt=self.attempt, started=started, seconds=seconds)
            with lock:
                emit(finished)

        rollout(
            pool,
            self._ask,
            tasks(),
            env_id=self.config.suite.env_id,
            profile=self._profile,
            on_finish=finish,
            skill_for=self.agent.skill_for,
            keep=False,
        )

    def _ask(self, requests: Sequence[Request]) -> Sequence[Reply]:
        """The agent's replies; an exception of the agent ends the episodes of this batch and no other."""
        try:
            replies = vet_replies(self.agent.act(requests), len(requests))
        except (Exception, SystemExit) as error:
            replies = [failed_reply(error) for _ in requests]
        if self._abandoned.is_set():
            raise _Abandoned
        if self._on_turn is not None:
            self._on_turn(requests, replies)
        return replies


def _env_maker(config: RunConfig) -> Callable[..., gym.Env[Any, str]]:
    """Makes the agent's environments, with their pictures or without."""
    if not config.blind:
        return make_agent_env
    ids = config.suite.load_tasks(config.profile, config.env_kwargs).ids if config.blind == "shuffle" else None
    return functools.partial(make_blind_env, None if ids is None else donors_of(ids, config.seed))


class _Abandoned(BaseException):
    """Ends a loop whose run was interrupted; its episodes are neither finished nor failed."""


def utc_now() -> str:
    """Now, in UTC, ISO 8601."""
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")


def _shared(source: Iterator[Planned], lock: threading.Lock, stop: threading.Event) -> Iterator[Planned]:
    """Draw from an iterator that several threads share, until one of them has failed."""
    while not stop.is_set():
        with lock:
            planned = next(source, None)
        if planned is None:
            return
        yield planned
