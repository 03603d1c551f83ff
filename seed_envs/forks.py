"""A lock that a forked child finds open, whatever the parent was doing."""

from __future__ import annotations

import os
import threading
from types import TracebackType


class PerProcessLock:
    """A lock of the process that uses it; copies and pickles are new locks."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.RLock()

    def __enter__(self) -> PerProcessLock:
        if self._pid != os.getpid():
            self.__init__()  # type: ignore[misc]
        self._lock.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()

    def __reduce__(self) -> tuple[type[PerProcessLock], tuple[()]]:
        return (PerProcessLock, ())
