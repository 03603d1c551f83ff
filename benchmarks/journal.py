"""``episodes.jsonl``: an append-only file that survives being killed at any moment.

One writer at a time (a lock that the system drops with the process), one ``write`` per line, and a line counts only
with its newline. What a kill tears is the last line alone; it is cut off before the next append. Lines are opaque
here; what is in them is the business of ``records``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from .errors import RunLocked

_BLOCK = 1 << 20


class Journal:
    """Writes lines at the end of a file.

    Args:
        path: The file; created when missing.

    Raises:
        RunLocked: When another process has it open for writing.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            _lock(self._descriptor, path)
            self.torn_bytes = self._cut_torn_line()
        except BaseException:
            os.close(self._descriptor)
            raise

    def append(self, line: bytes) -> None:
        """Write one line, without its newline; it is in the system's hands when this returns.

        Raises:
            ValueError: When the line contains a newline.
            OSError: When the disk is full; it names the file, and what was written of the line is cut off at the next
                opening.
        """
        if b"\n" in line:
            raise ValueError("a journal line cannot contain a newline")
        rest = memoryview(line + b"\n")
        try:
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self.path)) from error

    def close(self) -> None:
        """Flush to the disk and drop the lock; a second call does nothing."""
        if self._descriptor >= 0:
            os.fsync(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _cut_torn_line(self) -> int:
        """Remove an unfinished last line; returns how many bytes it had."""
        size = end = os.fstat(self._descriptor).st_size
        while end > 0:
            start = max(0, end - _BLOCK)
            newline = os.pread(self._descriptor, end - start, start).rfind(b"\n")
            if newline >= 0:
                end = start + newline + 1
                break
            end = start
        if end != size:
            os.ftruncate(self._descriptor, end)
        return size - end


def read_lines(path: Path) -> Iterator[bytes]:
    """The finished lines of a journal, also while it is being written; nothing when there is no file."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return
    with file:
        for line in file:
            if line.endswith(b"\n"):
                yield line[:-1]


def _lock(descriptor: int, path: Path) -> None:
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise RunLocked(f"{path} is being written by another process; wait for it or end it first") from error
