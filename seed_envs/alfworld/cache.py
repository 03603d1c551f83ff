"""The compiled cache: all games of a folder in one file that opens at once.

The file is a JSON header line, a compressed JSON index and one compressed
JSON record per game: no pickle, nothing executable, versioned, and its body
is hashed.  It is keyed by the files it was made from, so that changed data is
noticed.  Building it is ``python -m seed_envs.alfworld import PATH``.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from seed_envs.alfworld.game import Game, State
from seed_envs.alfworld.goals import Goal
from seed_envs.alfworld.library import PACK_NAME, Library, _Indexed, open_source, walk_tree
from seed_envs.data import cache_root
from seed_envs.errors import DataInvalid

FORMAT: Final = "seed-alfworld-games"
VERSION: Final = 1
SUFFIX: Final = ".games"
MAX_CACHE_BYTES: Final = 500_000_000
MAX_BLOCK_BYTES: Final = 20_000_000
_STORED: Final = tuple(field.name for field in dataclasses.fields(Game) if field.init and field.name != "game_id")


def pack_game(game: Game) -> list[Any]:
    """Turn a game into plain JSON values.

    Args:
        game: the compiled game.

    Returns:
        A list in the order of the game's fields, without its id.
    """
    values = [getattr(game, name) for name in _STORED]
    start = list(game.start)
    start[5] = sorted(game.start.removed)
    return [*values[:-1], start]


def unpack_game(task_id: str, values: list[Any]) -> Game:
    """Rebuild a game from :func:`pack_game`.

    Args:
        task_id: its id.
        values: the stored list.

    Returns:
        The game.
    """
    fields = dict(zip(_STORED, values, strict=True))
    for name, value in fields.items():
        if isinstance(value, list):
            fields[name] = tuple(value)
    start = list(fields["start"])
    for position in (3, 4, 11):
        start[position] = tuple(map(tuple, start[position]))
    start[5] = frozenset(map(tuple, start[5]))
    fields["start"] = State(*start)
    fields["goal"] = Goal(*fields["goal"])
    return Game(game_id=task_id, **fields)


def fingerprint(folder: Path) -> str:
    """Identify the game files of a folder by path, size and modification time.

    Args:
        folder: a data folder.

    Returns:
        A hex digest.
    """
    digest = hashlib.sha256(f"{FORMAT} {VERSION} {folder.resolve()}\n".encode())
    pack = folder / PACK_NAME
    paths = [pack] if pack.is_file() else [path for _, path in walk_tree(folder)]
    for path in paths:
        status = path.stat()
        digest.update(f"{path.relative_to(folder)} {status.st_size} {status.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def cache_path(folder: Path) -> Path:
    """Where the compiled cache of a folder lies.

    Args:
        folder: a data folder.

    Returns:
        The path; the file need not exist.
    """
    return cache_root() / "alfworld-compiled" / (fingerprint(folder)[:32] + SUFFIX)


def find_cache(folder: Path) -> Library | None:
    """Open the compiled cache of a folder if there is one for exactly these files.

    Args:
        folder: a data folder.

    Returns:
        The library, or None.

    Raises:
        DataInvalid: when the cache file is damaged.
    """
    if not (cache_root() / "alfworld-compiled").is_dir():
        return None
    path = cache_path(folder)
    return CacheLibrary(path) if path.is_file() else None


def build_cache(folder: Path, progress: Callable[[int, int], None] | None = None) -> Path:
    """Compile every game of a folder into the cache.

    Args:
        folder: a folder with the compact pack or a tree of game files.
        progress: called with (done, total) after each game.

    Returns:
        The path of the cache file.

    Raises:
        DataMissing: when the folder holds no games.
        DataInvalid: when a game file breaks the format.
    """
    target = cache_path(folder)  # Before reading: files that change meanwhile must not count as compiled.
    library = open_source(folder)
    index: dict[str, list[int]] = {}
    blobs: list[bytes] = []
    offset = 0
    for number, task_id in enumerate(library.ids, start=1):
        blob = zlib.compress(json.dumps(pack_game(library.game(task_id)), separators=(",", ":")).encode(), 6)
        index[task_id] = [offset, len(blob)]
        blobs.append(blob)
        offset += len(blob)
        if progress is not None:
            progress(number, len(library.ids))
    packed_index = zlib.compress(json.dumps(index, separators=(",", ":")).encode(), 6)
    body = packed_index + b"".join(blobs)
    header = {
        "format": FORMAT,
        "version": VERSION,
        "games": len(index),
        "index_bytes": len(packed_index),
        "sha256": hashlib.sha256(body).hexdigest(),
        "source": str(folder.resolve()),
    }
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_suffix(f".{os.getpid()}.part")
    try:
        temporary.write_bytes(json.dumps(header).encode() + b"\n" + body)
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return target


class CacheLibrary(_Indexed):
    """Games from a compiled cache; messages about tasks name the folder that it was made from.

    Args:
        path: the cache file.
    """

    def __init__(self, path: Path) -> None:
        folder, self._index, self._body = _read_cache(path)
        self._path = path
        super().__init__(tuple(self._index), folder)

    def _compile(self, task_id: str) -> Game:
        try:
            offset, length = self._index[task_id]
            return unpack_game(task_id, json.loads(_inflate(self._body[offset : offset + length])))
        except _DAMAGE as error:
            raise DataInvalid(f"{self._path}: the record of {task_id!r} is damaged: {error}; {_REBUILD}") from error

    def document(self, task_id: str) -> dict[str, Any]:
        """See ``library.Library``; read from the files the cache was made from."""
        self._check(task_id)
        return open_source(self.source).document(task_id)


_REBUILD: Final = "rebuild it with: python -m seed_envs.alfworld import PATH"
_DAMAGE: Final = (OSError, zlib.error, ValueError, LookupError, TypeError, AttributeError, RecursionError)


def _inflate(blob: bytes) -> bytes:
    """Decompress exactly one complete block of bounded size.

    Raises:
        ValueError: when the block is cut, followed by something, or too large.
    """
    stream = zlib.decompressobj()
    content = stream.decompress(blob, MAX_BLOCK_BYTES)
    if not stream.eof or stream.unused_data:
        raise ValueError("a compressed block is cut, too long or too large")
    return content


def _read_cache(path: Path) -> tuple[Path, dict[str, list[int]], bytes]:
    """The folder a cache was made from, its index, and the records."""
    try:
        size = path.stat().st_size
        if size > MAX_CACHE_BYTES:
            raise DataInvalid(f"{path}: {size:,} bytes; a cache has at most {MAX_CACHE_BYTES:,}; {_REBUILD}")
        first, _, body = path.read_bytes().partition(b"\n")
        header = json.loads(first)
        expected = (header["format"], header["version"])
        if expected != (FORMAT, VERSION):
            raise DataInvalid(f"{path}: expected {FORMAT} version {VERSION}, found {expected}; {_REBUILD}")
        if hashlib.sha256(body).hexdigest() != header["sha256"]:
            raise DataInvalid(f"{path}: the content does not fit its hash; {_REBUILD}")
        cut = int(header["index_bytes"])
        index = dict(json.loads(_inflate(body[:cut])))
        source = Path(header["source"])
    except DataInvalid:
        raise
    except _DAMAGE as error:
        raise DataInvalid(f"{path}: not a compiled cache: {error!r}; {_REBUILD}") from error
    return source, index, body[cut:]
