"""One attempt of a run: who ran when and how it ended, and its log file."""

from __future__ import annotations

import logging
import os
import time
from pathlib import Path
from typing import Any

from seed_envs.redaction import redact

from .folder import write_json
from .player import utc_now
from .versions import describe_hardware, describe_software


class Attempt:
    """``attempt.json``: who ran when, on what, and how it ended (``running`` until somebody says otherwise)."""

    def __init__(self, path: Path, attempt: int, todo: int, torn_bytes: int, played_with: dict[str, Any]) -> None:
        self._path, self._begin = path, time.perf_counter()
        self._record: dict[str, Any] = {
            "attempt": attempt,
            "outcome": "running",
            "started": utc_now(),
            "seconds": None,
            "to_play": todo,
            "played": 0,
            "torn_bytes": torn_bytes,
            "pid": os.getpid(),
            "identity": played_with,
            "software": describe_software(),
            "hardware": describe_hardware(),
        }
        write_json(path, self._record)

    def end(self, outcome: str, played: int, error: str = "") -> None:
        """Write how it ended."""
        seconds = round(time.perf_counter() - self._begin, 3)
        self._record = {**self._record, "outcome": outcome, "seconds": seconds, "played": played, "error": error}
        write_json(self._path, self._record)


class _LogFile(logging.FileHandler):
    """A log file that a full disk makes shorter, not louder: the run itself names the fault."""

    def handleError(self, record: logging.LogRecord) -> None:
        """Drop the line."""


class _Readable(logging.Formatter):
    """Lines without secrets, tracebacks included."""

    def format(self, record: logging.LogRecord) -> str:
        """One entry as text."""
        return str(redact(super().format(record)))


def open_log(folder: Path) -> logging.Logger:
    """The log of an attempt, in its folder; nobody else's handlers hear it."""
    log = logging.Logger("seed_benchmarks.run")
    handler = _LogFile(folder / "run.log", encoding="utf-8", errors="backslashreplace")
    handler.setFormatter(_Readable("%(asctime)s %(levelname)s %(message)s"))
    log.addHandler(handler)
    return log


def close_log(log: logging.Logger) -> None:
    """Close its file."""
    for handler in log.handlers:
        handler.close()
