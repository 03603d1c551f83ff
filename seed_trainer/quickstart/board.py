"""What the quick start shows while commands run: a bar, the time and the latest success rates of each.

On a terminal the lines stay in place; elsewhere (a file, a pipe, a dumb terminal) a plain line appears now and then.
"""

from __future__ import annotations

import math
import os
import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from seed_envs.journal import read_records

METRICS_FILE = "metrics.jsonl"
QUIET_SECONDS = 20.0
BAR_WIDTH = 24
RATES = {"env/success": "training", "eval_success": "panel"}


@dataclass
class Row:
    """What is known about one command.

    Attributes:
        name: Its label.
        folder: Where its ``metrics.jsonl`` is looked for.
        steps: Optimiser steps it will take; 0 for commands that do not report any.
        started: Clock when it began, None before.
        ended: Clock when it ended, None before.
    """

    name: str
    folder: Path
    steps: int = 0
    started: float | None = None
    ended: float | None = None

    def line(self, now: float) -> str:
        """Name, bar, steps, time and the latest success rates.

        Args:
            now: The clock, in seconds.
        """
        if self.started is None:
            return f"  {self.name:<18} waiting"
        metrics = list(read_records(self.folder / METRICS_FILE))
        parts = [f"{self.name:<18}"]
        if self.steps:
            step = min(max((int(line["step"]) for line in metrics), default=0), self.steps)
            full = BAR_WIDTH * step // self.steps
            parts.append(f"|{'#' * full}{'.' * (BAR_WIDTH - full)}| {step}/{self.steps}")
        parts.append(f"[{(now if self.ended is None else self.ended) - self.started:.0f} s]")
        latest = {label: line[key] for key, label in RATES.items() for line in metrics if line.get(key) is not None}
        if latest:
            parts.append(", ".join(f"{label} {value:.0%}" for label, value in latest.items()))
        if self.ended is not None:
            parts.append("done")
        return "  " + " ".join(parts)


class Board:
    """Shows rows.

    Args:
        rows: What to show, one line each.
        stream: Where to.
    """

    def __init__(self, rows: Sequence[Row], stream: TextIO | None = None) -> None:
        self.rows = rows
        self.stream = sys.stderr if stream is None else stream
        self._drawn = False
        self._said = [-math.inf] * len(rows)

    def draw(self) -> None:
        """Bring the display up to date."""
        now = time.monotonic()
        size = shutil.get_terminal_size()
        # Lines cannot be found again when they wrap or have scrolled away.
        if self.stream.isatty() and os.environ.get("TERM") != "dumb" and len(self.rows) < size.lines:
            up = f"\x1b[{len(self.rows)}A" if self._drawn else ""
            self.stream.write(up + "".join(f"\r\x1b[K{row.line(now)[: size.columns - 1]}\n" for row in self.rows))
            self._drawn = True
        else:
            self._say(now)
        self.stream.flush()

    def _say(self, now: float) -> None:
        for index, row in enumerate(self.rows):
            ended = row.ended is not None and self._said[index] < math.inf
            if ended or (row.started is not None and now - self._said[index] > QUIET_SECONDS):
                self.stream.write(f"{row.line(now)}\n")
                self._said[index] = math.inf if ended else now
