"""Where data lives on disk.

Looks only at the places a user can name; it downloads nothing and never searches the file system.
"""

from __future__ import annotations

import os
from pathlib import Path

from seed_envs.errors import DataMissing


def cache_root() -> Path:
    """``$SEED_CACHE_DIR``, else ``$XDG_CACHE_HOME/seed_envs``, else ``~/.cache/seed_envs``, for caches."""
    if named := os.environ.get("SEED_CACHE_DIR"):
        return Path(named).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "seed_envs"


def data_dir(
    name: str, explicit: str | os.PathLike[str] | None = None, variable: str | None = None, fix: str = ""
) -> Path:
    """Find the data folder of an environment.

    The first that is given wins: ``explicit``, the environment variable ``variable``, ``$SEED_DATA_DIR/<name>``, the
    download cache. A leading ``~`` is the home folder.

    Args:
        name: Folder name, e.g. ``"alfworld"``.
        explicit: A folder the user passed.
        variable: An environment variable that names the folder itself, e.g. ``"ALFWORLD_DATA"``.
        fix: The command that fetches the data, for the message.

    Raises:
        DataMissing: When the folder that was named does not exist, or none was named and nothing is in the cache.
    """
    if explicit is not None:
        candidate, origin = Path(explicit), "the argument"
    elif variable and os.environ.get(variable):
        candidate, origin = Path(os.environ[variable]), f"${variable}"
    elif os.environ.get("SEED_DATA_DIR"):
        candidate, origin = Path(os.environ["SEED_DATA_DIR"]) / name, "$SEED_DATA_DIR"
    else:
        candidate, origin = cache_root() / name, "the download cache"
    candidate = candidate.expanduser()
    if candidate.is_dir():
        return candidate
    named = " or ".join(f"${key}" for key in (variable, "SEED_DATA_DIR") if key)
    raise DataMissing(
        f"no data for {name!r}: {origin} points at {candidate}, which is not a folder. "
        f"Set {named}" + (f", or run: {fix}" if fix else "") + "."
    )
