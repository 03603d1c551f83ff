"""JSON-lines files of a run that stay consistent when the run is started again or resumed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


class LineLog:
    """Appends records with a ``step``.

    The first record of a fresh run replaces what an earlier run left in the file; a resumed run keeps the lines up to
    its starting point and drops those it is about to repeat.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._begun = False

    def begin(self, step: int) -> None:
        """Start at a step: 0 for a fresh run (unless something was appended already), else the resumed step."""
        if self._begun and step == 0:
            return
        self._begun = True
        self.path.parent.mkdir(parents=True, exist_ok=True)
        kept: list[str] = []
        if step > 0 and self.path.exists():
            lines = self.path.read_text(encoding="utf-8").splitlines()
            kept = [line for line in lines if json.loads(line)["step"] <= step]
        self.path.write_text("".join(line + "\n" for line in kept), encoding="utf-8")

    def append(self, step: int, record: dict[str, Any]) -> None:
        """Append one record."""
        if not self._begun:
            self.begin(0)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"step": step, **record}, ensure_ascii=False) + "\n")
