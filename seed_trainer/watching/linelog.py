"""JSON-lines files that survive interruptions: of a run that is started again or resumed, and of a collection.

A line may be torn when a process is killed; readers skip it, and writers begin a new line after it. Lines end at a
line feed alone: other Unicode line separators occur in what models write.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from seed_envs.redaction import conceal


def read_records(path: Path, broken: Callable[[int], None] = lambda number: None) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects of a file, line by line; nothing if there is no such file.

    Args:
        path: The file.
        broken: Told the 1-based number of every line that holds no JSON object.
    """
    if not path.exists():
        return
    with path.open(encoding="utf-8", errors="replace", newline="\n") as file:
        for number, line in enumerate(file, start=1):
            try:
                record = json.loads(line)
            except ValueError:
                record = None
            if isinstance(record, dict):
                yield record
            elif line.strip():
                broken(number)


def end_torn_line(path: Path) -> None:
    """End the last line of a file, if an interruption left it without its line feed, so that nothing is glued to it."""
    if not path.exists() or not path.stat().st_size:
        return
    with path.open("r+b") as file:
        file.seek(-1, 2)
        if file.read(1) != b"\n":
            file.write(b"\n")


class LineLog:
    """Appends records with a ``step``; ``begun`` once this process has written to the file.

    The first record of a fresh run replaces what an earlier run left in the file; a resumed run keeps the lines up to
    its starting point and drops those it is about to repeat.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.begun = False

    def begin(self, step: int, length: int | None = None) -> None:
        """Start at a step: 0 for a fresh run (unless something was appended already), else the resumed step.

        Args:
            step: Steps done.
            length: Bytes that the file had then, if that is known: what comes after them goes, else what is of a later
                step.
        """
        if self.begun and step == 0:
            return
        self.begun = True
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if length is not None:
            if self.length() > length:
                os.truncate(self.path, length)
            end_torn_line(self.path)
            return
        kept = [record for record in read_records(self.path) if record.get("step", step + 1) <= step] if step else []
        fresh = self.path.with_name(self.path.name + ".new")
        fresh.write_text("".join(map(_line, kept)), encoding="utf-8")
        fresh.replace(self.path)

    def length(self) -> int:
        """Return the length of the file in bytes, after everything was handed to the disk; 0 if there is none."""
        if not self.path.exists():
            return 0
        with self.path.open("rb") as file:
            os.fsync(file.fileno())
            return os.fstat(file.fileno()).st_size

    def append(self, step: int, record: dict[str, Any]) -> None:
        """Append one record."""
        if not self.begun:
            self.begin(0)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(_line({"step": step, **record}))


def _line(record: dict[str, Any]) -> str:
    return json.dumps(conceal(record), ensure_ascii=False) + "\n"
