"""Append-only line files that survive being killed at any moment: what a kill tears is the last line alone.

Runs of the harness, line files of the trainer and collections are all written here. Lines end at a line feed alone:
other Unicode line separators occur in what models write. What is in a line is the business of its writer.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from seed_envs.errors import RunLocked
from seed_envs.redaction import conceal

_BLOCK = 1 << 20


class Journal:
    """Writes lines at the end of a file, after a torn last line was cut off.

    Args:
        path: The file; created when missing.
        shared: Whether others may append to it too, each opening it for a moment. Nothing is locked then (else the
            system drops the lock with the process), a torn line is ended instead of cut off, for readers that skip it,
            and closing does not wait for the disk.

    Raises:
        RunLocked: When another process has it open for writing.
    """

    def __init__(self, path: Path, shared: bool = False) -> None:
        self.path, self._shared = path, shared
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            if not shared:
                _lock(self._descriptor, path)
            self.torn_bytes = self._mend_torn_line()
        except BaseException:
            os.close(self._descriptor)
            raise

    def append(self, line: bytes) -> None:
        """Write one line, without its newline; it is in the system's hands when this returns.

        Raises:
            ValueError: When the line contains a newline.
            OSError: When the disk is full; it names the file, and what was written of the line is mended at the next
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

    def append_record(self, record: dict[str, Any]) -> None:
        """Write one line of JSON, with secrets concealed."""
        self.append(json.dumps(conceal(record), ensure_ascii=False).encode())

    def shorten(self, length: int) -> None:
        """Take away what lies behind so many bytes."""
        if os.fstat(self._descriptor).st_size > length:
            os.ftruncate(self._descriptor, length)
            self._mend_torn_line()

    def close(self) -> None:
        """Flush to the disk and drop the lock; a second call does nothing."""
        if self._descriptor >= 0:
            if not self._shared:
                os.fsync(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _mend_torn_line(self) -> int:
        """Cut off an unfinished last line, or end it; returns how many bytes it had."""
        size = end = os.fstat(self._descriptor).st_size
        while end > 0:
            start = max(0, end - _BLOCK)
            newline = os.pread(self._descriptor, end - start, start).rfind(b"\n")
            if newline >= 0:
                end = start + newline + 1
                break
            end = start
        if end != size:
            if self._shared:
                self.append(b"")
            else:
                os.ftruncate(self._descriptor, end)
        return size - end


def read_lines(path: Path, torn: bool = False) -> Iterator[bytes]:
    """The finished lines of a journal, also while it is being written; nothing when there is no file.

    Args:
        path: The file.
        torn: Whether an unfinished last line counts too.
    """
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return
    with file:
        for line in file:
            if torn or line.endswith(b"\n"):
                yield line.removesuffix(b"\n")


def read_records(path: Path, broken: Callable[[int], None] = lambda number: None) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects of a file, line by line; nothing if there is no such file.

    Args:
        path: The file.
        broken: Told the 1-based number of every line that holds no JSON object.
    """
    for number, line in enumerate(read_lines(path, torn=True), start=1):
        try:
            record = json.loads(line.decode(errors="replace"))
        except ValueError:
            record = None
        if isinstance(record, dict):
            yield record
        elif line.strip():
            broken(number)


def _lock(descriptor: int, path: Path) -> None:
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise RunLocked(f"{path} is being written by another process; wait for it or end it first") from error
