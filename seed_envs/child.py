"""A child process at the end of a pipe: how it starts, and how it ends whatever it is doing.

Children are spawned, not forked, so that threads and open files of the parent do not leak into them; they do not
outlive it.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from typing import Any

from seed_envs.redaction import guard_process

#: Seconds a child may take to start: imports and the making of its environment, which may read much data.
START_TIMEOUT = 600.0


class Child:
    """A process that runs ``body(connection, *arguments)`` until its pipe closes.

    Args:
        body: A function of a module.
        *arguments: Anything that can be pickled.

    Attributes:
        connection: Our end of the pipe.
    """

    def __init__(self, body: Callable[..., None], *arguments: Any) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self._process = context.Process(target=_live, args=(body, theirs, *arguments), daemon=True)
        self._process.start()
        theirs.close()

    @property
    def pid(self) -> int | None:
        """Its process id."""
        return self._process.pid

    def end(self, patience: float = 0.2) -> int | None:
        """End the process and return its exit code.

        Args:
            patience: Seconds until it is killed: the closed pipe is its sign to end, but one that is busy or hangs does
                not look.
        """
        self.connection.close()
        self._process.join(patience)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        return self._process.exitcode


def _live(body: Callable[..., None], connection: Connection, *arguments: Any) -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_wait_and_exit, args=(parent.sentinel,), daemon=True).start()
    guard_process()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides and closes
    body(connection, *arguments)


def _wait_and_exit(sentinel: int) -> None:
    """End this process as soon as its parent is gone, also when it is busy or hangs."""
    wait([sentinel])
    os._exit(1)
