"""Process back end of the pool: one child process per slot.

A child that crashes or exceeds its time limit is replaced by a fresh one; the caller gets an exception for that one
request. Children are spawned, not forked, so that threads and open files of the parent do not leak into them; they do
not outlive it.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any

from seed_envs.redaction import guard_process
from seed_envs.slots import MakeEnv, WorkerFailed, describe, serve
from seed_envs.trajectory import EpisodeError


class WorkerDied(RuntimeError):
    """The environment's process ended without an answer."""


class WorkerTimeout(TimeoutError):
    """The environment's process did not answer in time and was ended."""


#: Seconds a child may take to start: imports and the making of its environment, which may read much data.
START_TIMEOUT = 600.0


class ProcessSlot:
    """An environment in a child process.

    Args:
        make_env: Picklable factory.
        timeout: Seconds per request, or None. Starting the child is not counted.
    """

    def __init__(self, make_env: MakeEnv, timeout: float | None) -> None:
        self._make_env = make_env
        self._timeout = timeout
        self._process: SpawnProcess | None = None
        self._connection: Connection | None = None

    def send(self, method: str, argument: Any) -> Any:
        """Run a request in the child.

        Raises:
            WorkerDied, WorkerTimeout, WorkerFailed: See the classes.
        """
        try:
            connection = self._connection or self._start()
            connection.send((method, argument))
            answered = connection.poll(self._timeout)
            answer: tuple[bool, Any] = connection.recv() if answered else (False, None)
        except (EOFError, BrokenPipeError, ConnectionResetError) as error:
            code = self._stop()
            raise WorkerDied(f"the environment's process ended during {method} (exit code {code})") from error
        except (KeyboardInterrupt, SystemExit):
            self._stop()  # its answer must not be taken for that to a later request
            raise
        if not answered:
            self._stop()
            raise WorkerTimeout(f"{method} took longer than {self._timeout} s; the environment's process was ended")
        ok, value = answer
        if not ok:
            raise WorkerFailed(value)
        return value

    def close(self) -> None:
        """End the child."""
        self._stop()

    def _start(self) -> Connection:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=_work, args=(theirs, self._make_env), daemon=True)
        process.start()
        theirs.close()
        self._process, self._connection = process, ours
        if not ours.poll(START_TIMEOUT):
            self._stop()
            raise WorkerTimeout(f"the environment's process did not start within {START_TIMEOUT} s and was ended")
        ours.recv()
        return ours

    def _stop(self) -> int | None:
        process, self._process = self._process, None
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if process is None:
            return None
        # The closed pipe is its sign to end; one that is busy or hangs does not look, and is killed.
        process.join(0.2)
        if process.is_alive():
            process.kill()
            process.join()
        return process.exitcode


def exit_with_parent() -> None:
    """End this process as soon as its parent is gone, also when it is busy or hangs; returns at once."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_wait_and_exit, args=(parent.sentinel,), daemon=True).start()


def _wait_and_exit(sentinel: int) -> None:
    wait([sentinel])
    os._exit(1)


def _work(connection: Connection, make_env: MakeEnv) -> None:
    exit_with_parent()
    guard_process()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides and closes
    env = None
    with contextlib.suppress(Exception):  # tried again, and then reported, with the first request
        env = make_env()
    try:
        connection.send("ready")
    except BrokenPipeError:
        return
    while True:
        try:
            method, argument = connection.recv()
        except (EOFError, ConnectionResetError):
            break
        reply: tuple[bool, Any | EpisodeError]
        try:
            env = env or make_env()
            reply = (True, serve(env, method, argument))
        except (Exception, SystemExit) as error:  # reported to the parent, which raises it there
            reply = (False, describe(error))
        try:
            connection.send(reply)
        except BrokenPipeError:
            break
        except Exception as error:  # what the environment returned cannot be pickled; nothing was written yet
            connection.send((False, describe(error)))
    if env is not None:
        env.close()
