"""``manifest.json``: the files of a checkpoint or of an exported model with sizes and hashes, written last.

A folder is complete if its manifest says so. Everything listed is on the disk before the manifest is.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from seed_envs.hashing import file_hash

MANIFEST = "manifest.json"
NO_MANIFEST = f"no {MANIFEST}: its saving was interrupted, or an earlier version saved it"


def write_manifest(folder: Path, record: Mapping[str, Any], names: Iterable[str] | None = None) -> None:
    """Write the manifest of a folder and make everything in it durable.

    Args:
        folder: The folder.
        record: What else the manifest tells; ``step`` at least.
        names: Files to list, relative to the folder; default: all.
    """
    files = sorted(names) if names is not None else _files(folder)
    text = json.dumps({**record, "files": {name: _measure(folder / name) for name in files}}, indent=1)
    path = folder / MANIFEST
    with path.open("w", encoding="utf-8") as file:
        file.write(text + "\n")
        file.flush()
        os.fsync(file.fileno())
    for place in {path.parent, *((folder / name).parent for name in files)}:
        sync(place)


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """Return the manifest of a folder; None if it has none that can be read."""
    try:
        record = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    whole = isinstance(record, dict) and isinstance(record.get("files"), dict) and isinstance(record.get("step"), int)
    return record if whole else None


def fault(folder: Path) -> str:
    """Return what is wrong with a folder, in words; empty if all of its files are as they were saved."""
    record = read_manifest(folder)
    if record is None:
        return NO_MANIFEST
    for name, saved in record["files"].items():
        path = folder / name
        if not path.is_file():
            return f"{name} is missing"
        if path.stat().st_size != saved.get("bytes"):
            return f"{name} has {path.stat().st_size} bytes, {saved.get('bytes')} were saved"
        if file_hash(path) != saved.get("sha256"):
            return f"{name} is not what was saved (another hash)"
    return ""


def sync(path: Path) -> None:
    """Make a file, or the names in a folder, survive a power cut."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _files(folder: Path) -> list[str]:
    found = (path for path in folder.rglob("*") if path.is_file())
    return sorted(path.relative_to(folder).as_posix() for path in found if path != folder / MANIFEST)


def _measure(path: Path) -> dict[str, Any]:
    sync(path)
    return {"bytes": path.stat().st_size, "sha256": file_hash(path)}
