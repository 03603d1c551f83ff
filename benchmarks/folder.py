"""The folder of a run: what lies where, written so that a kill at any moment leaves it readable.

``config.json`` is written before the first episode and never changed; ``episodes.jsonl`` only grows; ``summary.json``
and ``report.html`` are replaced as a whole.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from seed_envs.redaction import redact

from .config import RunConfig
from .errors import ConfigInvalid, RunFolderInvalid
from .records import FinishedEpisode

SCHEMA_VERSION = 1
#: What every ``config.json`` holds, by type; dots lead into objects.
_CONFIG = {
    "run": dict,
    "manifest": dict,
    "manifest.name": str,
    "manifest.sha256": str,
    "manifest.tasks": int,
    "manifest.chosen": int,
    "manifest.chosen_sha256": str,
    "prompt": dict,
    "prompt.profile": str,
    "prompt.sha256": str,
    "planned": int,
    "command": list,
}


@dataclass(frozen=True)
class RunFolder:
    """Paths and files of one run."""

    path: Path

    @property
    def episodes(self) -> Path:
        """The journal."""
        return self.path / "episodes.jsonl"

    @property
    def images(self) -> Path:
        """Pictures of the transcripts."""
        return self.path / "images"

    @property
    def report(self) -> Path:
        """The HTML report."""
        return self.path / "report.html"

    def create(self, record: dict[str, Any]) -> None:
        """Make a new run.

        Args:
            record: Content of ``config.json``.

        Raises:
            RunFolderInvalid: When there is something in the folder already.
        """
        if self.path.exists() and any(self.path.iterdir()):
            hint = f"continue it with: seed-bench run --resume {self.path}" if self.is_run() else "choose another --out"
            raise RunFolderInvalid(f"{self.path} is not empty; {hint}")
        self.path.mkdir(parents=True, exist_ok=True)
        try:
            write_json(self.path / "config.json", {"schema_version": SCHEMA_VERSION, **record}, new=True)
        except FileExistsError as error:
            raise RunFolderInvalid(f"another run has just begun in {self.path}; choose another --out") from error

    def is_run(self) -> bool:
        """Whether the folder holds a run."""
        return (self.path / "config.json").is_file()

    def read_config(self) -> dict[str, Any]:
        """The content of ``config.json``.

        Raises:
            RunFolderInvalid: When the folder holds no run, or one of another version.
        """
        try:
            record = json.loads((self.path / "config.json").read_text(encoding="utf-8"))
        except FileNotFoundError as error:
            raise RunFolderInvalid(f"{self.path} holds no run (no config.json)") from error
        except ValueError as error:
            raise RunFolderInvalid(f"{self.path / 'config.json'}: {error}") from error
        if not isinstance(record, dict) or record.get("schema_version") != SCHEMA_VERSION:
            raise RunFolderInvalid(f"{self.path / 'config.json'}: expected schema_version {SCHEMA_VERSION}")
        if fault := _find_config_fault(record):
            raise RunFolderInvalid(f"{self.path / 'config.json'}: {fault}")
        return record

    def run_config(self) -> RunConfig:
        """The run's configuration."""
        return RunConfig.from_json(self.read_config()["run"])

    def read_summary(self) -> dict[str, Any] | None:
        """The content of ``summary.json``, or None before there is one."""
        try:
            summary: dict[str, Any] = json.loads((self.path / "summary.json").read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            return None
        return summary

    def write_summary(self, summary: dict[str, Any]) -> None:
        """Replace ``summary.json``."""
        write_json(self.path / "summary.json", summary)

    def new_attempt(self) -> tuple[int, Path]:
        """Number and log folder of the next attempt, counted from 1."""
        logs = self.path / "logs"
        logs.mkdir(exist_ok=True)
        numbers = [int(found.group(1)) for found in map(_ATTEMPT.fullmatch, os.listdir(logs)) if found]
        number = max(numbers, default=0) + 1
        folder = logs / f"attempt_{number}"
        folder.mkdir()
        return number, folder

    def attempts(self) -> list[dict[str, Any]]:
        """``attempt.json`` of every attempt, in order.

        Raises:
            RunFolderInvalid: For one that cannot be read.
        """
        numbered = [(_ATTEMPT.fullmatch(path.parent.name), path) for path in self.path.glob("logs/*/attempt.json")]
        paths = [path for _, path in sorted((int(found.group(1)), path) for found, path in numbered if found)]
        return [_read_attempt(path) for path in paths]

    def store_images(self, finished: FinishedEpisode) -> None:
        """Write an episode's pictures; each is a file of its own and never changes."""
        if not finished.images:
            return
        self.images.mkdir(exist_ok=True)
        for name, data in finished.images.items():
            path = self.images / name
            if not path.exists():
                write_bytes(path, data)


def _find_config_fault(record: dict[str, Any]) -> str:
    """What is wrong with the content of a ``config.json`` that somebody may have edited, or ``""``."""
    for path, kind in _CONFIG.items():
        value: Any = record
        for key in path.split("."):
            value = value.get(key)
        if not isinstance(value, kind):
            return f"{path}: {value!r:.80}, expected {kind.__name__}"
    if record["manifest"]["chosen"] < 1:
        return f"manifest.chosen: {record['manifest']['chosen']}, expected at least 1"
    try:
        RunConfig.from_json(record["run"])
    except ConfigInvalid as error:
        return str(error)
    return ""


def _read_attempt(path: Path) -> dict[str, Any]:
    try:
        record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        begin, seconds = datetime.fromisoformat(record["started"]), record["seconds"]
        if (
            begin.tzinfo is None
            or not isinstance(seconds, (int, float, type(None)))
            or type(record["attempt"]) is not int
        ):
            raise ValueError("attempt, started or seconds cannot be what they say")
    except (ValueError, TypeError, KeyError) as error:
        raise RunFolderInvalid(f"{path}: not the note of an attempt ({error!r})") from error
    return record


def write_json(path: Path, record: Any, *, new: bool = False) -> None:
    """Write a JSON file as a whole (see :func:`write_bytes`), without the secrets of the settings in it."""
    text = json.dumps(redact(record), indent=2, ensure_ascii=False)
    write_bytes(path, text.encode("utf-8", "backslashreplace") + b"\n", new=new)


def write_bytes(path: Path, data: bytes, *, new: bool = False) -> None:
    """Write a file as a whole: a reader sees the old or the new one, never a part.

    Args:
        path: The file.
        data: Its content.
        new: There must be no such file yet; of several processes that try at once, one succeeds.

    Raises:
        FileExistsError: With ``new``, when there is one.
        OSError: When it cannot be written, e.g. on a full disk; the error names the file.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(data)
        if new:
            _publish(temporary, path)
        else:
            os.replace(temporary, path)
    except OSError as error:
        raise type(error)(error.errno, error.strerror, str(path)) from error
    finally:
        with contextlib.suppress(OSError):  # what kept it from being written may keep it from being removed
            temporary.unlink(missing_ok=True)


def _publish(temporary: Path, path: Path) -> None:
    """Give a finished file its name unless the name is taken."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
        os.replace(temporary, path)


_ATTEMPT = re.compile(r"attempt_(\d+)")
