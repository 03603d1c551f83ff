"""Where data lives on disk.

Looks only at the places a user can name; it downloads nothing and never searches the file system.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from seed_envs.errors import DataMissing


@contextmanager
def replacing(path: Path) -> Iterator[TextIO]:
    """Open a text file for writing that takes the place of ``path`` only when the block ends well.

    What was written before an interruption stays beside it as ``<name>.part``; an existing file is never emptied.

    Args:
        path: The file to write.

    Yields:
        The open temporary file (UTF-8).
    """
    part = path.with_name(f"{path.name}.part")
    with part.open("w", encoding="utf-8") as file:
        yield file
    os.replace(part, path)


def cache_root() -> Path:
    """``$SEED_CACHE_DIR``, else ``$XDG_CACHE_HOME/seed_envs``, else ``~/.cache/seed_envs``, for caches."""
    if named := os.environ.get("SEED_CACHE_DIR"):
        return Path(named).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "seed_envs"


def named_folder(
    name: str,
    explicit: str | os.PathLike[str] | None = None,
    variable: str | None = None,
    elsewhere: Sequence[str] = (),
) -> tuple[Path, str]:
    """Where an environment's data should be, and who says so.

    The first that is given wins: ``explicit``, the environment variable ``variable``, ``$SEED_DATA_DIR/<name>``; else
    the download cache, or the first of ``elsewhere`` that holds something when the cache holds nothing.

    Args:
        name: Folder name, e.g. ``"alfworld"``.
        explicit: A folder the user passed.
        variable: An environment variable that names the folder itself, e.g. ``"ALFWORLD_DATA"``.
        elsewhere: Where the publishers' own tools put the data; a leading ``~`` is the home folder.

    Returns:
        The folder, which need not exist, and what named it, for messages.
    """
    if explicit is not None:
        return Path(explicit).expanduser(), "the argument"
    if variable and os.environ.get(variable):
        return Path(os.environ[variable]).expanduser(), f"${variable}"
    if os.environ.get("SEED_DATA_DIR"):
        return (Path(os.environ["SEED_DATA_DIR"]) / name).expanduser(), "$SEED_DATA_DIR"
    cached = cache_root() / name
    others = [Path(place).expanduser() for place in elsewhere]
    found = next((place for place in (cached, *others) if place.is_dir() and any(place.iterdir())), cached)
    return found, "the download cache" if found == cached else "the publishers' own tool"


def data_dir(
    name: str,
    explicit: str | os.PathLike[str] | None = None,
    variable: str | None = None,
    fix: str = "",
    elsewhere: Sequence[str] = (),
) -> Path:
    """Find the data folder of an environment (see :func:`named_folder`).

    Args:
        name: Folder name.
        explicit: A folder the user passed.
        variable: An environment variable that names the folder itself.
        fix: The command that fetches the data, for the message; ``{folder}`` stands for the folder that was named, so
            that the command cures what the message complains of.
        elsewhere: Where the publishers' own tools put the data.

    Raises:
        DataMissing: When the folder that was named does not exist, or none was named and nothing is in the cache.
    """
    candidate, origin = named_folder(name, explicit, variable, elsewhere)
    if candidate.is_dir():
        return candidate
    named = " or ".join(f"${key}" for key in (variable, "SEED_DATA_DIR") if key)
    fix = fix.replace("{folder}", shlex.quote(str(candidate)))
    raise DataMissing(
        f"no data for {name!r}: {origin} points at {candidate}, which is not a folder. "
        f"Set {named}" + (f", or run: {fix}" if fix else "") + "."
    )
