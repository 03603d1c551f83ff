"""What the adapters of database services share: one connection per process and thread, errors with names."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

from seed_envs.search_qa.retrievers.base import FailureDetails, RetrievalTimeout, RetrievalUnavailable
from seed_envs.search_qa.retrievers.deadlines import time_left

T = TypeVar("T")
DEFAULT_SECONDS = 10.0
_TOLERANCE = 0.05


class ServiceConnections:
    """Connections of a client library, opened when needed.

    Args:
        connect: Opens one; gets the seconds it may take.
        endpoint: Shown in errors; holds no password.
        lost: Exceptions that mean the connection is gone.
        timeouts: Exceptions that mean the time was up.
        fixed_timeout: The client's time limit is set when connecting, so a call with less time needs a new connection.
    """

    def __init__(
        self,
        connect: Callable[[float], Any],
        endpoint: str,
        lost: Callable[[], tuple[type[BaseException], ...]],
        timeouts: Callable[[], tuple[type[BaseException], ...]],
        fixed_timeout: bool = False,
    ) -> None:
        self._fixed_timeout = fixed_timeout
        self._connect, self.endpoint, self._lost, self._timeouts = connect, endpoint, lost, timeouts
        self._local = threading.local()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_local": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _local=threading.local())

    def run(self, work: Callable[[Any, float], T], deadline: float | None) -> T:
        """Runs work on a connection; a connection that was lost is replaced once, inside the deadline.

        Args:
            work: Gets the connection and the seconds it may take.
            deadline: `time.monotonic()` value; None means ten seconds from now.

        Raises:
            RetrievalTimeout, RetrievalUnavailable: Time is up, or the service cannot be reached.
        """
        started = time.monotonic()
        limit = started + DEFAULT_SECONDS if deadline is None else deadline
        details = FailureDetails(self.endpoint)
        while True:
            left = time_left(limit, 3600.0)
            details.elapsed = time.monotonic() - started
            if left <= 0:
                raise RetrievalTimeout("no answer before the deadline", details)
            details.tries += 1
            try:
                return work(self._get(left), time_left(limit, 3600.0))
            except self._timeouts() as error:
                self.drop()
                details.elapsed = time.monotonic() - started
                raise RetrievalTimeout(f"no answer before the deadline ({error})", details) from error
            except self._lost() as error:
                self.drop()
                details.causes.append(f"{type(error).__name__}: {error}")
                details.elapsed = time.monotonic() - started
                if details.tries > 1:
                    raise RetrievalUnavailable(f"cannot be reached ({error})".strip(), details) from error

    def _get(self, seconds: float) -> Any:
        kept = getattr(self._local, "kept", None)
        if kept is not None and self._fixed_timeout and seconds < kept[2] - _TOLERANCE:
            self.drop()
            kept = None
        if kept is None or kept[0] != os.getpid():
            # A connection inherited over a fork belongs to the parent: it is left alone, not closed.
            self._local.kept = (os.getpid(), self._connect(seconds), seconds)
        return self._local.kept[1]

    def drop(self) -> None:
        """Closes this thread's connection, if this process opened it."""
        kept = getattr(self._local, "kept", None)
        self._local.kept = None
        if kept is not None and kept[0] == os.getpid():
            kept[1].close()
