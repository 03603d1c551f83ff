"""Process back end of the pool: one child process per slot.

A child that crashes or exceeds its time limit is replaced by a fresh one; the caller gets an exception for that one
request.
"""

from __future__ import annotations

import contextlib
from multiprocessing.connection import Connection
from typing import Any

from seed_envs.child import START_TIMEOUT, Child
from seed_envs.slots import MakeEnv, WorkerFailed, describe, serve
from seed_envs.trajectory import EpisodeError


class WorkerDied(RuntimeError):
    """The environment's process ended without an answer."""


class WorkerTimeout(TimeoutError):
    """The environment's process did not answer in time and was ended."""


class ProcessSlot:
    """An environment in a child process.

    Args:
        make_env: Picklable factory.
        timeout: Seconds per request, or None. Starting the child is not counted.
    """

    def __init__(self, make_env: MakeEnv, timeout: float | None) -> None:
        self._make_env = make_env
        self._timeout = timeout
        self._child: Child | None = None

    def send(self, method: str, argument: Any) -> Any:
        """Run a request in the child.

        Raises:
            WorkerDied, WorkerTimeout, WorkerFailed: See the classes.
        """
        try:
            connection = (self._child or self._start()).connection
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

    def _start(self) -> Child:
        child = self._child = Child(_work, self._make_env)
        if not child.connection.poll(START_TIMEOUT):
            self._stop()
            raise WorkerTimeout(f"the environment's process did not start within {START_TIMEOUT} s and was ended")
        child.connection.recv()
        return child

    def _stop(self) -> int | None:
        child, self._child = self._child, None
        return None if child is None else child.end()


def _work(connection: Connection, make_env: MakeEnv) -> None:
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
