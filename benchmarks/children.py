"""Worker processes: every one plays whole episodes with its own environment and its own copy of the agent.

For agents without a model. A process that dies or hangs costs the one episode it was playing: the parent records the
fault, starts a fresh process and goes on. While it plays, a worker notes every reply in a small file, its flight
recorder, which tells the parent that it is alive and, after a crash, what was said. Workers write no results.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path

from seed_envs.child import START_TIMEOUT, Child
from seed_envs.redaction import conceal
from seed_envs.rollout import Reply, Request
from seed_envs.trajectory import EpisodeError, StopReason

from .agents.base import make_agent
from .config import RunConfig
from .plan import Planned
from .player import Emit, Player, utc_now
from .records import FinishedEpisode, faulty_episode

#: Episodes handed to a worker at once: the one it plays and the next, so that it never waits.
_AHEAD = 2
#: Longest flight record that is read back, in bytes.
_MAX_FLIGHT = 10_000_000


@dataclass
class _Worker:
    """A worker process as its parent sees it.

    Attributes:
        flight: Its flight recorder.
        ready: Whether it has come up.
        assigned: Episodes it was given; it plays the first.
        begin: When the running episode began, on the clock that is never set.
        started: The same moment for the record, in UTC.
        seen: Last sign of life, on the same clock as ``begin``.
    """

    child: Child
    flight: Path
    ready: bool = False
    assigned: deque[Planned] = field(default_factory=deque)
    begin: float = 0.0
    started: str = ""
    seen: float = 0.0
    _trace: tuple[int, int] = (0, 0)

    def begin_episode(self) -> None:
        """The next assigned episode begins now."""
        self.begin = self.seen = time.monotonic()
        self.started = utc_now()

    def give(self, planned: Planned) -> None:
        if not self.assigned:
            self.begin_episode()
        self.assigned.append(planned)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.child.connection.send(planned)  # if it is dead, the next wait notices and its successor gets the work

    def overdue(self, timeout: float) -> bool:
        """Whether the running episode has shown no life for too long (or the process never came up)."""
        return bool(self.assigned) and self._silent_seconds() > (timeout if self.ready else START_TIMEOUT)

    def _silent_seconds(self) -> float:
        """Seconds since the flight recorder was last seen to change; file times are compared with each other only."""
        try:
            status = self.flight.stat()
        except FileNotFoundError:
            return time.monotonic() - self.seen
        trace = status.st_mtime_ns, status.st_size
        if trace != self._trace:
            self._trace, self.seen = trace, time.monotonic()
        return time.monotonic() - self.seen


class WorkerCrew:
    """Plays episodes in worker processes.

    Args:
        config: What is evaluated; ``num_workers`` processes, ``timeout`` seconds per turn.
        folder: Where the flight recorders lie.
        attempt: Recorded in every line.
    """

    def __init__(self, config: RunConfig, folder: Path, attempt: int) -> None:
        self._config, self._folder, self._attempt = config, folder, attempt
        self._workers: list[_Worker] = []

    def play(self, episodes: Iterable[Planned], emit: Emit) -> None:
        """Play all episodes; each goes to ``emit`` as soon as it ends."""
        source = iter(episodes)
        self._workers = [self._start(number) for number in range(self._config.num_workers)]
        try:
            for number in range(len(self._workers)):
                self._feed(number, source)
            while any(worker.assigned for worker in self._workers):
                self._serve_once(source, emit)
        finally:
            self.close()

    def close(self) -> None:
        """End every worker."""
        for worker in self._workers:
            worker.child.connection.close()
        for worker in self._workers:
            worker.child.end(1.0)
        self._workers = []

    def _serve_once(self, source: Iterator[Planned], emit: Emit) -> None:
        """Take what has arrived, then look for workers that are dead or silent."""
        busy = {worker.child.connection: number for number, worker in enumerate(self._workers) if worker.assigned}
        ready = wait(list(busy), timeout=0.5 if self._config.timeout is None else min(0.5, self._config.timeout / 4))
        for connection in ready:
            number = busy[connection]  # type: ignore[index]
            worker = self._workers[number]
            try:
                finished: FinishedEpisode | None = worker.child.connection.recv()
            except (EOFError, ConnectionResetError):
                self._replace(number, source, emit, None)
                continue
            worker.begin_episode()
            if finished is None:
                worker.ready = True
                continue
            worker.assigned.popleft()
            self._feed(number, source)
            emit(finished)
        if self._config.timeout is not None:
            for number, worker in enumerate(self._workers):
                if worker.overdue(self._config.timeout):
                    self._replace(number, source, emit, self._config.timeout)

    def _feed(self, number: int, source: Iterator[Planned]) -> None:
        worker = self._workers[number]
        while len(worker.assigned) < _AHEAD:
            planned = next(source, None)
            if planned is None:
                return
            worker.give(planned)

    def _replace(self, number: int, source: Iterator[Planned], emit: Emit, timeout: float | None) -> None:
        """Record the episode of a lost worker and give the rest of its work to a fresh one."""
        worker = self._workers[number]
        code = worker.child.end()
        lost = worker.assigned.popleft()
        replies = _read_flight(worker.flight, lost)
        if timeout is None:
            cause = f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
            message = f"the worker process ended after {len(replies)} replies ({cause})"
            error, reason = EpisodeError("WorkerDied", message), StopReason.ENV_ERROR
        else:
            message = f"no sign of life for {timeout} s after {len(replies)} replies; the worker process was ended"
            error, reason = EpisodeError("WorkerTimeout", message), StopReason.TIMEOUT
        finished = faulty_episode(
            lost,
            self._config.suite.env_id,
            error,
            reason,
            attempt=self._attempt,
            started=worker.started,
            seconds=time.monotonic() - worker.begin,
            replies=replies,
        )
        fresh = self._start(number)
        for planned in worker.assigned:
            fresh.give(planned)
        self._workers[number] = fresh
        self._feed(number, source)
        emit(finished)

    def _start(self, number: int) -> _Worker:
        flight = self._folder / f"worker_{number}.jsonl"
        flight.unlink(missing_ok=True)
        return _Worker(Child(_work, self._config, str(flight), self._attempt), flight)


class FlightRecorder:
    """Notes the replies of the running episode in a file, overwritten with every episode.

    Args:
        path: The file.
    """

    def __init__(self, path: str) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)

    def begin(self, planned: Planned) -> None:
        """A new episode."""
        os.ftruncate(self._descriptor, 0)
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        self._note([planned.task_id, planned.repeat])

    def on_turn(self, requests: Sequence[Request], replies: Sequence[Reply]) -> None:
        """Note a turn; see ``Player``."""
        for reply in replies:
            self._note(reply.text)

    def _note(self, value: object) -> None:
        os.write(self._descriptor, json.dumps(conceal(value)).encode() + b"\n")


def _read_flight(path: Path, planned: Planned) -> list[str]:
    """The replies of the lost episode as far as they are known; none when the file is about another episode."""
    try:
        with path.open("rb") as file:
            lines = file.read(_MAX_FLIGHT).split(b"\n")[:-1]
        notes = [json.loads(line) for line in lines]
    except (OSError, ValueError):
        return []
    if not notes or notes[0] != [planned.task_id, planned.repeat]:
        return []
    return [str(note) for note in notes[1:]]


def _work(connection: Connection, config: RunConfig, flight: str, attempt: int) -> None:
    """Body of a worker process: episodes in, lines out, until the pipe closes."""
    recorder = FlightRecorder(flight)
    agent = make_agent(config.agent, config.suite.find_profile(config.profile))
    player = Player(config, agent, attempt, recorder.on_turn)
    with contextlib.suppress(BrokenPipeError):
        connection.send(None)  # ready: from here on the time limit counts
    while True:
        try:
            planned: Planned = connection.recv()
        except (EOFError, ConnectionResetError):
            break
        recorder.begin(planned)
        try:
            player.play([planned], connection.send)
        except BrokenPipeError:
            break
    player.close()
    agent.close()
