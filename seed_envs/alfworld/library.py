"""Games on disk, opened by id: packs, trees of ``game.tw-pddl``, or both in one folder.

Games are compiled on first use and kept, read-only, once per process.  Ids
are looked up in an index, never joined into paths.  What the original leaves
out is left out here and remembered with its reason.  Downloading and the
compiled cache live in ``download`` and ``cache``.
"""

from __future__ import annotations

import json
import lzma
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Protocol

from seed_envs.alfworld.game import Game
from seed_envs.alfworld.gamefile import (
    MAX_GAME_FILE_BYTES,
    LeftOut,
    assemble_document,
    compile_record,
    load_document,
    name_reason,
    read_game_file,
)
from seed_envs.errors import DataInvalid, DataMissing, UnknownTask, close_matches
from seed_envs.hashing import content_hash, file_hash

OFFICIAL_SPLITS: Final = ("train", "valid_seen", "valid_unseen")
PACK_NAME: Final = "alfworld_games.jsonl.xz"
PACK_PATTERN: Final = "*games.jsonl.xz"
GAME_FILE: Final = "game.tw-pddl"
MAX_PACK_BYTES: Final = 2_000_000_000
BROKEN: Final = "broken or foreign"
TWICE: Final = "the same id again"


class Library(Protocol):
    """A set of games addressed by id (``split/task/trial``)."""

    @property
    def ids(self) -> Sequence[str]:
        """All ids that are here, sorted."""

    @property
    def skipped(self) -> Mapping[str, Sequence[str]]:
        """Reason -> ids (or messages that begin with one) of what was found and left out, as far as known by now."""

    @property
    def files(self) -> tuple[tuple[str, str], ...]:
        """Name and SHA-256 of the content of what the games come from."""

    def playable(self, task_id: str) -> bool:
        """Whether a listed game compiles; one that does not is added to ``skipped``."""

    def game(self, task_id: str) -> Game:
        """The compiled game; compiled once per process.

        Raises:
            UnknownTask: when it is not here.
            DataInvalid: when its file breaks the format.
        """

    def document(self, task_id: str) -> dict[str, Any]:
        """The game file's content (``pddl_domain``, ``grammar``, ``pddl_problem``, …), for the original engine."""


class Indexed:
    """Shared part of the libraries: index, compiled games, what was left out, errors.

    Args:
        ids: what can be opened.
        source: file or folder to name in messages.
        skipped: reason -> what was left out already.
    """

    def __init__(self, ids: Sequence[str], source: Path, skipped: Mapping[str, Sequence[str]]) -> None:
        self.ids: tuple[str, ...] = tuple(sorted(ids))
        self.source = source
        self.skipped: dict[str, list[str]] = {reason: list(names) for reason, names in skipped.items()}
        self._known = frozenset(self.ids)
        self._games: dict[str, Game] = {}

    def game(self, task_id: str) -> Game:
        """See :class:`Library`."""
        game = self._games.get(task_id)
        if game is None:
            self._check(task_id)
            game = self._games[task_id] = self._compile(task_id)
        return game

    @cached_property
    def files(self) -> tuple[tuple[str, str], ...]:
        """See :class:`Library`."""
        return ((self.source.name, self._digest()),)

    def _digest(self) -> str:
        """SHA-256 of the content of all games."""
        raise NotImplementedError

    def playable(self, task_id: str) -> bool:
        """See :class:`Library`."""
        try:
            self.game(task_id)
        except DataInvalid as error:
            reason, note = (error.reason, task_id) if isinstance(error, LeftOut) else (BROKEN, f"{task_id}: {error}")
            self.skipped.setdefault(reason, []).append(note)
            return False
        return True

    def _check(self, task_id: str) -> None:
        if task_id not in self._known:
            hint = close_matches(task_id, self.ids)
            raise UnknownTask(f"task {task_id!r} is not among the {len(self.ids):,} games of {self.source}.{hint}")

    def document(self, task_id: str) -> dict[str, Any]:
        """See :class:`Library`."""
        raise NotImplementedError

    def _compile(self, task_id: str) -> Game:
        raise NotImplementedError


class PackLibrary(Indexed):
    """The compact pack: one JSON object per game in one ``.jsonl.xz`` file.

    Args:
        path: the pack; domain and grammar files are expected beside it (needed by the original engine only).
    """

    def __init__(self, path: Path) -> None:
        self._lines: dict[str, bytes] = {}
        skipped: dict[str, list[str]] = {}
        for record, line in _pack_lines(path):
            task_id = _record_id(record, str(path))
            if task_id in self._lines:
                raise DataInvalid(f"{path}: {task_id!r} occurs twice")
            reason = name_reason(task_id) or ("" if record.get("solvable", True) else "unsolvable")
            if reason:
                skipped.setdefault(reason, []).append(task_id)
            else:
                self._lines[task_id] = zlib.compress(line, 1)
        super().__init__(tuple(self._lines), path, skipped)

    def _digest(self) -> str:
        return file_hash(self.source)

    def _record(self, task_id: str) -> dict[str, Any]:
        self._check(task_id)
        record: dict[str, Any] = json.loads(zlib.decompress(self._lines[task_id]))
        return record

    def _compile(self, task_id: str) -> Game:
        return compile_record(self._record(task_id), task_id, f"{self.source}: {task_id}")

    def document(self, task_id: str) -> dict[str, Any]:
        """See :class:`Library`."""
        record = self._record(task_id)
        steps = record.get("walkthrough") or []
        return assemble_document(record["pddl_problem"], record["goal_text"], steps, self.source.parent)


class TreeLibrary(Indexed):
    """A folder tree ``[json_*/]<split>/<task>/<trial>/game.tw-pddl``, the layout of alfworld's own download.

    Args:
        folder: its root.
    """

    def __init__(self, folder: Path) -> None:
        self._paths: dict[str, Path] = {}
        skipped: dict[str, list[str]] = {}
        for task_id, path in walk_tree(folder):
            reason = name_reason(task_id) or (TWICE if task_id in self._paths else "")
            if reason:
                skipped.setdefault(reason, []).append(task_id)
            else:
                self._paths[task_id] = path
        super().__init__(tuple(self._paths), folder, skipped)

    def _digest(self) -> str:
        return content_hash(f"{task_id} {file_hash(self._paths[task_id])}\n".encode() for task_id in self.ids)

    def _compile(self, task_id: str) -> Game:
        return read_game_file(self._paths[task_id], task_id)

    def document(self, task_id: str) -> dict[str, Any]:
        """See :class:`Library`."""
        self._check(task_id)
        return load_document(self._paths[task_id])


class MixedLibrary(Indexed):
    """Several libraries of one folder as one; of games that occur in more than one the first library's are played.

    Args:
        parts: the libraries in order of preference.
        folder: the folder.
    """

    def __init__(self, parts: Sequence[Indexed], folder: Path) -> None:
        self._part: dict[str, Indexed] = {}
        skipped: dict[str, list[str]] = {}
        for part in parts:
            for reason, names in part.skipped.items():
                skipped.setdefault(reason, []).extend(names)
            for task_id in part.ids:
                if self._part.setdefault(task_id, part) is not part:
                    skipped.setdefault(TWICE, []).append(task_id)
        super().__init__(tuple(self._part), folder, skipped)
        self._parts = parts

    @cached_property
    def files(self) -> tuple[tuple[str, str], ...]:
        """See :class:`Library`."""
        return tuple(file for part in self._parts for file in part.files)

    def _compile(self, task_id: str) -> Game:
        return self._part[task_id].game(task_id)

    def document(self, task_id: str) -> dict[str, Any]:
        """See :class:`Library`."""
        self._check(task_id)
        return self._part[task_id].document(task_id)


def _record_id(record: Mapping[str, Any], source: str) -> str:
    parts = [record.get(key) for key in ("split", "task", "trial")]
    if not all(isinstance(part, str) and part and "/" not in part for part in parts):
        raise DataInvalid(f"{source}: expected texts 'split', 'task' and 'trial' without '/', got {parts}")
    return "/".join(str(part) for part in parts)


def _pack_lines(path: Path) -> Iterator[tuple[dict[str, Any], bytes]]:
    """Decoded records and raw lines of a pack; refuses what unpacks to more than the cap."""
    total = 0
    number = 0
    try:
        with lzma.open(path, "rb") as file:
            while line := file.readline(MAX_GAME_FILE_BYTES + 1):
                number += 1
                total += len(line)
                if len(line) > MAX_GAME_FILE_BYTES or total > MAX_PACK_BYTES:
                    raise DataInvalid(f"{path}: line {number} is too long or the pack unpacks to too many bytes")
                record = json.loads(line)
                if not isinstance(record, dict):
                    raise DataInvalid(f"{path}: line {number} is not a JSON object")
                yield record, line
    except (lzma.LZMAError, EOFError) as error:
        raise DataInvalid(f"{path}: not a complete xz file (after line {number}): {error}") from error
    except OSError as error:
        raise DataInvalid(f"{path}: cannot be read: {error}") from error
    except (ValueError, RecursionError) as error:
        if isinstance(error, DataInvalid):
            raise
        raise DataInvalid(f"{path}: line {number} is not JSON: {error}") from error


def walk_tree(folder: Path) -> Iterator[tuple[str, Path]]:
    """Find the game files of a tree.

    Args:
        folder: root, holding split folders directly or below ``json_*`` folders.

    Yields:
        (id, path) pairs in order of preference: directly below the root first, then from the latest ``json_*``
        version; the id of a later pair may have come before.
    """
    roots = sorted((entry for entry in folder.glob("json_*") if entry.is_dir()), reverse=True)
    for root in [folder, *roots]:
        for split in sorted(entry.name for entry in os.scandir(root) if entry.is_dir()):
            if split.startswith("json_"):
                continue
            for path in sorted((root / split).glob(f"*/*/{GAME_FILE}")):
                yield f"{split}/{path.parent.parent.name}/{path.parent.name}", path


def pack_paths(folder: Path) -> list[Path]:
    """The packs of a folder (see :class:`PackLibrary`), in name order."""
    return sorted(path for path in folder.glob(PACK_PATTERN) if path.is_file())


def open_source(folder: Path) -> Indexed:
    """Open the games of a folder without looking for a compiled cache.

    Args:
        folder: a folder with packs, a tree of game files, or both; a tree's games come before a pack's.

    Returns:
        The library.

    Raises:
        DataMissing: when the folder holds no games.
    """
    tree = TreeLibrary(folder)
    parts = [part for part in (tree, *map(PackLibrary, pack_paths(folder))) if part.ids or part.skipped]
    if not parts:
        raise DataMissing(
            f"{folder} holds neither {PACK_PATTERN} nor any <split>/<task>/<trial>/{GAME_FILE}; "
            f"run: python -m seed_envs.alfworld download --output {folder}"
        )
    return parts[0] if len(parts) == 1 else MixedLibrary(parts, folder)
