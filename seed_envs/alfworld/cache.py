"""The compiled cache: all games of a folder in one file that opens at once.

The file is a JSON line with format, version and the SHA-256 of all that
follows: a compressed JSON contents page (source, what was left out, places of
the records) and one compressed JSON record per game.  No pickle, nothing
executable.  It is keyed by the files it was made from, so that changed data
is noticed.  Building it is ``python -m seed_envs.alfworld import PATH``.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import zlib
from collections.abc import Callable
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Final

from seed_envs.alfworld.game import Game, State
from seed_envs.alfworld.goals import Goal
from seed_envs.alfworld.library import Indexed, Library, open_source, pack_paths, walk_tree
from seed_envs.data import cache_root
from seed_envs.errors import DataInvalid
from seed_envs.whole_files import whole_file

FORMAT: Final = "seed-alfworld-games"
VERSION: Final = 2
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
    fields["goal"] = Goal.from_values(fields["goal"])
    return Game(game_id=task_id, **fields)


def fingerprint(folder: Path) -> str:
    """Identify the game files of a folder by path, size and modification time.

    Args:
        folder: a data folder.

    Returns:
        A hex digest.
    """
    digest = hashlib.sha256(f"{FORMAT} {VERSION} {folder.resolve()}\n".encode())
    for path in [*pack_paths(folder), *(path for _, path in walk_tree(folder))]:
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


def find_cache(folder: Path) -> CacheLibrary | None:
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


@lru_cache(maxsize=8)
def open_library(folder: Path) -> Library:
    """Open the games of a folder; the result is shared by all environments of the process.

    Args:
        folder: a folder with the compact pack, a compiled cache, or a tree of game files.

    Returns:
        The library, from the compiled cache when one was built for these files.

    Raises:
        DataMissing: when the folder holds no games.
    """
    compiled = find_cache(folder)
    if compiled is not None:
        return compiled
    return open_source(folder)


def build_cache(folder: Path, progress: Callable[[int, int], None] | None = None) -> Path:
    """Compile every game of a folder that can be played into the cache.

    Args:
        folder: a folder with packs, a tree of game files, or both.
        progress: called with (done, total) after each game.

    Returns:
        The path of the cache file; what was left out stands in it, with reasons.

    Raises:
        DataMissing: when the folder holds no games.
        DataInvalid: when a whole pack cannot be read.
    """
    target = cache_path(folder)  # Before reading: files that change meanwhile must not count as compiled.
    library = open_source(folder)
    places: dict[str, list[int]] = {}
    blobs: list[bytes] = []
    offset = 0
    for number, task_id in enumerate(library.ids, start=1):
        if library.playable(task_id):
            blob = zlib.compress(json.dumps(pack_game(library.game(task_id)), separators=(",", ":")).encode(), 6)
            places[task_id] = [offset, len(blob)]
            blobs.append(blob)
            offset += len(blob)
        if progress is not None:
            progress(number, len(library.ids))
    contents = {"source": str(folder.resolve()), "skipped": library.skipped, "places": places}
    page = zlib.compress(json.dumps(contents, separators=(",", ":")).encode(), 6)
    body = f"{len(page)}\n".encode() + page + b"".join(blobs)
    header = {"format": FORMAT, "version": VERSION, "sha256": hashlib.sha256(body).hexdigest()}
    with whole_file(target) as temporary:
        temporary.write_bytes(json.dumps(header).encode() + b"\n" + body)
    return target


class CacheLibrary(Indexed):
    """Games from a compiled cache; messages about tasks name the folder that it was made from.

    Args:
        path: the cache file.

    Attributes:
        files: The folder's name with the SHA-256 of the compiled content.
    """

    def __init__(self, path: Path) -> None:
        self._content_hash, contents, self._records = _read_cache(path)
        self._path = path
        try:
            self._places: dict[str, list[int]] = dict(contents["places"])
            super().__init__(tuple(self._places), Path(contents["source"]), contents["skipped"])
        except _DAMAGE as error:
            raise DataInvalid(f"{path}: not a compiled cache: {error!r}; {_REBUILD}") from error

    def _compile(self, task_id: str) -> Game:
        try:
            offset, length = self._places[task_id]
            return unpack_game(task_id, json.loads(_inflate(self._records[offset : offset + length])))
        except _DAMAGE as error:
            raise DataInvalid(f"{self._path}: the record of {task_id!r} is damaged: {error}; {_REBUILD}") from error

    def _digest(self) -> str:
        return self._content_hash

    @cached_property
    def _documents(self) -> Indexed:
        return open_source(self.source)

    def document(self, task_id: str) -> dict[str, Any]:
        """See ``library.Library``; read from the files the cache was made from."""
        self._check(task_id)
        return self._documents.document(task_id)


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


def _read_cache(path: Path) -> tuple[str, dict[str, Any], bytes]:
    """The hash of a cache's content, its contents page, and the records."""
    try:
        size = path.stat().st_size
        if size > MAX_CACHE_BYTES:
            raise DataInvalid(f"{path}: {size:,} bytes; a cache has at most {MAX_CACHE_BYTES:,}; {_REBUILD}")
        first, _, body = path.read_bytes().partition(b"\n")
        header = json.loads(first)
        expected = (header["format"], header["version"])
        if expected != (FORMAT, VERSION):
            raise DataInvalid(f"{path}: expected {FORMAT} version {VERSION}, found {expected}; {_REBUILD}")
        digest = hashlib.sha256(body).hexdigest()
        if digest != header["sha256"]:
            raise DataInvalid(f"{path}: the content does not fit its hash; {_REBUILD}")
        length, _, rest = body.partition(b"\n")
        cut = int(length)
        contents: dict[str, Any] = json.loads(_inflate(rest[:cut]))
    except DataInvalid:
        raise
    except _DAMAGE as error:
        raise DataInvalid(f"{path}: not a compiled cache: {error!r}; {_REBUILD}") from error
    return digest, contents, rest[cut:]
