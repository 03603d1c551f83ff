"""A progress line on the terminal: how many, how good so far, how long still. Writes nowhere else."""

from __future__ import annotations

import sys
import time
from typing import TextIO

from .records import EpisodeRecord


class Progress:
    """Counts finished episodes and shows one line, redrawn in place on a terminal and rarely elsewhere.

    Args:
        stream: Where to write; None is standard error.
        quiet: Write nothing.
    """

    def __init__(self, stream: TextIO | None = None, quiet: bool = False) -> None:
        self.total, self._stream, self._quiet = 0, stream or sys.stderr, quiet
        self._begin = time.monotonic()
        self._drawn = -1e9
        self._played = self._scored = self._solved = self._failed = 0

    def begin(self, total: int) -> None:
        """So many episodes are to be played."""
        self.total, self._begin = total, time.monotonic()

    def __call__(self, record: EpisodeRecord) -> None:
        """Count one episode."""
        self._played += 1
        if record.scored:
            self._scored += 1
            self._solved += record.success
        else:
            self._failed += 1
        gap = 0.2 if self._stream.isatty() else 30.0
        if time.monotonic() - self._drawn >= gap:
            self._draw()

    def close(self) -> None:
        """Draw the last state and end the line."""
        if self._played and not self._quiet:
            self._draw()
            if self._stream.isatty():
                self._stream.write("\n")

    def _draw(self) -> None:
        if self._quiet:
            return
        self._drawn = time.monotonic()
        seconds = self._drawn - self._begin
        rate = self._played / seconds if seconds > 0 else 0.0
        success = f"{100 * self._solved / self._scored:.1f} %" if self._scored else "-"
        parts = [f"{self._played}/{self.total or '?'} episodes", f"success {success}", f"{rate:.1f}/s"]
        if self._failed:
            parts.append(f"{self._failed} failed")
        if self.total and rate and self._played < self.total:
            parts.append(f"{_duration((self.total - self._played) / rate)} left")
        text = "  ".join(parts)
        self._stream.write(f"\r\x1b[K{text}" if self._stream.isatty() else f"{text}\n")
        self._stream.flush()


def _duration(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
