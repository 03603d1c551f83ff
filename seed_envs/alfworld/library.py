"""Official games on disk, opened by id: the compact pack, or a folder tree of ``game.tw-pddl``.

Games are compiled on first use and kept, read-only, once per process.  Ids
are looked up in an index, never joined into paths.  Only facts, goal and goal
sentence of a file are read; grammars are not interpreted.  Downloading and
the compiled cache live in ``download`` and ``cache``.
"""

from __future__ import annotations

import json
import lzma
import os
import re
import stat
import zlib
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Protocol

from seed_envs.alfworld.game import Game, compile_game
from seed_envs.alfworld.pddl import read_problem
from seed_envs.errors import DataInvalid, DataMissing, UnknownTask, close_matches

OFFICIAL_SPLITS: Final = ("train", "valid_seen", "valid_unseen")
PACK_NAME: Final = "alfworld_games.jsonl.xz"
GAME_FILE: Final = "game.tw-pddl"
MAX_GAME_FILE_BYTES: Final = 8_000_000
MAX_PACK_BYTES: Final = 2_000_000_000
MAX_SENTENCE_CHARS: Final = 1_000
_SENTENCE: Final = re.compile(r'"task"\s*:\s*\[\s*\{\s*"rhs"\s*:\s*"((?:[^"\\]|\\.)*)"')


class Library(Protocol):
    """A set of games addressed by id (``split/task/trial``)."""

    @property
    def ids(self) -> Sequence[str]:
        """All ids that are here, sorted."""

    def game(self, task_id: str) -> Game:
        """The compiled game; compiled once per process.

        Raises:
            UnknownTask: when it is not here.
            DataInvalid: when its file breaks the format.
        """

    def document(self, task_id: str) -> dict[str, Any]:
        """The game file's content (``pddl_domain``, ``grammar``, ``pddl_problem``, …), for the original engine."""


def compile_record(record: Mapping[str, Any], task_id: str, source: str) -> Game:
    """Compile one record of the pack.

    Args:
        record: with ``pddl_problem``, ``goal_text`` and ``walkthrough``.
        task_id: its id.
        source: what to call it in error messages.

    Returns:
        The game.

    Raises:
        DataInvalid: when a field is missing or has the wrong type, or the problem is malformed.
    """
    problem, sentence = record.get("pddl_problem"), record.get("goal_text")
    if not isinstance(problem, str) or not isinstance(sentence, str):
        raise DataInvalid(f"{source}: expected texts 'pddl_problem' and 'goal_text'; found keys {sorted(record)[:12]}")
    if len(sentence) > MAX_SENTENCE_CHARS:
        raise DataInvalid(f"{source}: goal sentence of {len(sentence):,} characters; at most {MAX_SENTENCE_CHARS:,}")
    if not sentence.isprintable():
        raise DataInvalid(f"{source}: the goal sentence holds control characters: {sentence[:200]!a}")
    walkthrough = record.get("walkthrough") or []
    if not isinstance(walkthrough, list) or not all(isinstance(command, str) for command in walkthrough):
        raise DataInvalid(f"{source}: 'walkthrough' must be a list of commands or null")
    return compile_game(read_problem(problem, source), game_id=task_id, sentence=sentence, walkthrough=walkthrough)


def read_game_file(path: Path, task_id: str) -> Game:
    """Compile one ``game.tw-pddl`` file.

    Args:
        path: the file.
        task_id: the id to give the game.

    Returns:
        The game.

    Raises:
        DataInvalid: when the file is too large, no JSON, or lacks what is needed.
    """
    document = _load_document(path)
    grammar = document.get("grammar")
    found = _SENTENCE.search(grammar) if isinstance(grammar, str) else None
    if found is None:
        raise DataInvalid(f'{path}: the grammar holds no goal sentence (\'"task": [{{"rhs": "…"}}]\')')
    try:
        sentence = json.loads(f'"{found.group(1)}"')
    except ValueError as error:
        raise DataInvalid(f"{path}: the goal sentence is not a valid string: {error}") from error
    return compile_record({**document, "goal_text": sentence}, task_id, str(path))


def _load_document(path: Path) -> dict[str, Any]:
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):  # A pipe would block, a device never end.
            raise DataInvalid(f"{path}: not a regular file")
        if status.st_size > MAX_GAME_FILE_BYTES:
            raise DataInvalid(f"{path}: {status.st_size:,} bytes; a game file has at most {MAX_GAME_FILE_BYTES:,}")
        content = path.read_bytes()
    except OSError as error:
        raise DataInvalid(f"{path}: cannot be read: {error}") from error
    try:
        document = json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise DataInvalid(f"{path}: not a game file (expected one JSON object): {error}") from error
    if not isinstance(document, dict):
        raise DataInvalid(f"{path}: expected one JSON object, found a {type(document).__name__}")
    return document


class _Indexed:
    """Shared part of the libraries: index, compiled games, errors."""

    def __init__(self, ids: Sequence[str], source: Path) -> None:
        self.ids: tuple[str, ...] = tuple(sorted(ids))
        self.source = source
        self._known = frozenset(self.ids)
        self._games: dict[str, Game] = {}

    def game(self, task_id: str) -> Game:
        """See :class:`Library`."""
        game = self._games.get(task_id)
        if game is None:
            self._check(task_id)
            game = self._games[task_id] = self._compile(task_id)
        return game

    def _check(self, task_id: str) -> None:
        if task_id not in self._known:
            hint = close_matches(task_id, self.ids)
            raise UnknownTask(f"task {task_id!r} is not among the {len(self.ids):,} games of {self.source}.{hint}")

    def _compile(self, task_id: str) -> Game:
        raise NotImplementedError


class PackLibrary(_Indexed):
    """The compact pack: one JSON object per game in one ``.jsonl.xz`` file.

    Args:
        path: the pack; domain and grammar files are expected beside it (needed by the original engine only).
    """

    def __init__(self, path: Path) -> None:
        self._lines: dict[str, bytes] = {}
        for record, line in _pack_lines(path):
            task_id = _record_id(record, str(path))
            if task_id in self._lines:
                raise DataInvalid(f"{path}: {task_id!r} occurs twice")
            self._lines[task_id] = zlib.compress(line, 1)
        super().__init__(tuple(self._lines), path)

    def _record(self, task_id: str) -> dict[str, Any]:
        self._check(task_id)
        record: dict[str, Any] = json.loads(zlib.decompress(self._lines[task_id]))
        return record

    def _compile(self, task_id: str) -> Game:
        return compile_record(self._record(task_id), task_id, f"{self.source}: {task_id}")

    def document(self, task_id: str) -> dict[str, Any]:
        """See :class:`Library`."""
        record = self._record(task_id)
        return assemble_document(record["pddl_problem"], record["goal_text"], record["walkthrough"], self.source.parent)


class TreeLibrary(_Indexed):
    """A folder tree ``[json_*/]<split>/<task>/<trial>/game.tw-pddl``, the layout of alfworld's own download.

    Args:
        folder: its root.
    """

    def __init__(self, folder: Path) -> None:
        self._paths = dict(walk_tree(folder))
        super().__init__(tuple(self._paths), folder)

    def _compile(self, task_id: str) -> Game:
        return read_game_file(self._paths[task_id], task_id)

    def document(self, task_id: str) -> dict[str, Any]:
        """See :class:`Library`."""
        self._check(task_id)
        return _load_document(self._paths[task_id])


def assemble_document(problem: str, sentence: str, walkthrough: Sequence[str], folder: Path) -> dict[str, Any]:
    """Put a full game file together from its varying parts.

    Args:
        problem: PDDL problem.
        sentence: goal sentence.
        walkthrough: winning commands.
        folder: where ``alfred_domain.pddl`` and ``grammar_template.twl2`` lie.

    Returns:
        The content of a ``game.tw-pddl`` file.

    Raises:
        DataMissing: when one of the two files is not there.
    """
    parts = []
    for name in ("alfred_domain.pddl", "grammar_template.twl2"):
        if not (folder / name).is_file():
            raise DataMissing(f"{folder / name} is missing: the original engine needs domain and grammar files")
        parts.append((folder / name).read_text(encoding="utf-8"))
    return {
        "pddl_domain": parts[0],
        "grammar": parts[1].replace("@@TASK@@", sentence),
        "pddl_problem": problem,
        "solvable": True,
        "walkthrough": list(walkthrough),
    }


def with_sentence(grammar: str, sentence: str) -> str:
    """Put another goal sentence into a grammar.

    Args:
        grammar: a game file's grammar.
        sentence: the new goal sentence.

    Returns:
        The changed grammar.
    """
    found = _SENTENCE.search(grammar)
    if found is None:
        raise DataInvalid('the grammar holds no goal sentence (\'"task": [{"rhs": "…"}]\')')
    begin, end = found.span(1)
    return grammar[:begin] + json.dumps(sentence)[1:-1] + grammar[end:]


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
        (id, path) pairs, of one id once: directly below the root first, then from the latest ``json_*`` version.
    """
    seen: set[str] = set()
    roots = sorted((entry for entry in folder.glob("json_*") if entry.is_dir()), reverse=True)
    for root in [folder, *roots]:
        for split in sorted(entry.name for entry in os.scandir(root) if entry.is_dir()):
            if split.startswith("json_"):
                continue
            for path in sorted((root / split).glob(f"*/*/{GAME_FILE}")):
                task_id = f"{split}/{path.parent.parent.name}/{path.parent.name}"
                if task_id not in seen:
                    seen.add(task_id)
                    yield task_id, path


@lru_cache(maxsize=8)
def open_library(folder: Path) -> Library:
    """Open the games of a folder; the result is shared by all environments of the process.

    Args:
        folder: a folder with the compact pack, a compiled cache, or a tree of game files.

    Returns:
        The library, from the compiled cache when one was built for these files (see ``seed_envs.alfworld.cache``).

    Raises:
        DataMissing: when the folder holds no games.
    """
    from seed_envs.alfworld.cache import find_cache

    compiled = find_cache(folder)
    if compiled is not None:
        return compiled
    return open_source(folder)


def open_source(folder: Path) -> Library:
    """Open the games of a folder without looking for a compiled cache.

    Args:
        folder: a folder with the compact pack or a tree of game files.

    Returns:
        The library.

    Raises:
        DataMissing: when the folder holds no games.
    """
    if (folder / PACK_NAME).is_file():
        return PackLibrary(folder / PACK_NAME)
    tree = TreeLibrary(folder)
    if not tree.ids:
        raise DataMissing(
            f"{folder} holds neither {PACK_NAME} nor any <split>/<task>/<trial>/{GAME_FILE}; "
            "run: python -m seed_envs.alfworld download"
        )
    return tree
