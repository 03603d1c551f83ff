"""The checkpoints of a run folder: which are complete, how one appears, which go, and what an earlier run leaves."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from seed_trainer.keeping.manifest import MANIFEST, fault, read_manifest, sync

STAGING = "_saving"
"""Where checkpoints and models are written before they get their names; uploads to the hub leave ``_*`` out."""


def checkpoints(folder: Path) -> list[tuple[int, Path]]:
    """Return step and path of every checkpoint, complete or not, oldest first."""
    found = folder.iterdir() if folder.is_dir() else ()
    numbered = ((re.fullmatch(r"checkpoint-(\d+)", path.name), path) for path in found if path.is_dir())
    return sorted((int(match.group(1)), path) for match, path in numbered if match)


def newest(folder: Path) -> tuple[Path | None, list[str]]:
    """Return the newest complete checkpoint (None if there is none) and why newer ones were skipped."""
    skipped: list[str] = []
    for _, path in reversed(checkpoints(folder)):
        wrong = fault(path)
        if not wrong:
            return path, skipped
        skipped.append(f"{path.name}: {wrong}")
    return None, skipped


def saved(folder: Path) -> list[Path]:
    """Return the checkpoints that have a manifest, oldest first, without reading their files again."""
    return [path for _, path in checkpoints(folder) if read_manifest(path) is not None]


def publish(staged: Path, final: Path) -> None:
    """Give a finished folder its name, in the place of an older one if there is one."""
    aside = staged.with_name(f"replaced-{final.name}")
    if final.exists():
        final.rename(aside)
    staged.rename(final)
    sync(final.parent)
    shutil.rmtree(aside, ignore_errors=True)


def publish_files(staged: Path, final: Path) -> list[str]:
    """Move the files of a finished folder into another one, over older ones; return their names."""
    names = sorted(path.relative_to(staged).as_posix() for path in staged.rglob("*") if path.is_file())
    for name in names:
        (final / name).parent.mkdir(parents=True, exist_ok=True)
        os.replace(staged / name, final / name)
    return names


def rotate(folder: Path, limit: int | None, keep: Sequence[Path | None] = ()) -> None:
    """Delete the oldest checkpoints beyond a limit; only complete ones count, and the newest of them always stays."""
    if not limit or limit < 1:
        return
    complete = saved(folder)
    protected = {path.resolve() for path in (*complete[-1:], *keep) if path is not None}
    surplus = len(complete) - max(limit, len(protected))
    for path in [path for path in complete if path.resolve() not in protected][: max(0, surplus)]:
        # Without its manifest it is no checkpoint any more, so that a kill in the middle leaves no half of one.
        (path / MANIFEST).unlink()
        shutil.rmtree(path, ignore_errors=True)


def set_aside(folder: Path, after: int, lines: Sequence[Path] = ()) -> Path | None:
    """Move checkpoints after a step, which another attempt has left, into a subfolder ``earlier-N``.

    Args:
        folder: The run folder.
        after: Step that training starts from; 0 for a fresh run.
        lines: Line files that belong to those checkpoints; moved with them by a fresh run.

    Returns:
        The subfolder; None if there was nothing to move.
    """
    (folder / MANIFEST).unlink(missing_ok=True)  # The model in the folder is no longer the end of what comes now.
    shutil.rmtree(folder / STAGING, ignore_errors=True)
    moved = [path for step, path in checkpoints(folder) if step > after]
    if not moved:
        return None
    number = next(number for number in range(1, 10**6) if not (folder / f"earlier-{number}").exists())
    place = folder / f"earlier-{number}"
    place.mkdir()
    for path in [*moved, *(line for line in lines if not after and line.exists())]:
        path.rename(place / path.name)
    return place
