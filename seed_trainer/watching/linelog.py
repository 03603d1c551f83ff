"""Line files of a run that is started again or resumed: every record belongs to a step."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

from seed_envs.journal import Journal, read_records


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
            with Journal(self.path, shared=True) as journal:
                journal.shorten(length)
            return
        kept = [record for record in read_records(self.path) if record.get("step", math.inf) <= step] if step else []
        fresh = self.path.with_name(self.path.name + ".new")
        fresh.unlink(missing_ok=True)
        with Journal(fresh) as journal:
            for record in kept:
                journal.append_record(record)
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
        with Journal(self.path, shared=True) as journal:
            journal.append_record({"step": step, **record})
