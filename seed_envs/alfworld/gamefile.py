"""One game file: what it holds, how it is compiled, and which files the original leaves out.

Only facts, goal and goal sentence of a file are read; grammars are not interpreted.
"""

from __future__ import annotations

import json
import re
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from seed_envs.alfworld.game import Game, compile_game
from seed_envs.alfworld.pddl import read_problem
from seed_envs.errors import DataInvalid, DataMissing

MAX_GAME_FILE_BYTES: Final = 8_000_000
MAX_SENTENCE_CHARS: Final = 1_000
_SENTENCE: Final = re.compile(r'"task"\s*:\s*\[\s*\{\s*"rhs"\s*:\s*"((?:[^"\\]|\\.)*)"')
_LEFT_OUT_BY_NAME: Final = (("movable", "movable receptacle"), ("Sliced", "sliced object"))


class LeftOut(DataInvalid):
    """A well-formed game that the original never plays.

    Attributes:
        reason: why, in a few words.
    """

    def __init__(self, reason: str, source: str) -> None:
        super().__init__(f"{source}: {reason}; the original leaves such games out")
        self.reason = reason


def name_reason(task_id: str) -> str:
    """Why the original passes over a game without opening its file (``AlfredTWEnv.collect_game_files``).

    Args:
        task_id: ``split/task/trial``.

    Returns:
        The reason, or "" when nothing in the name speaks against it.
    """
    name = task_id.partition("/")[2]
    return next((reason for part, reason in _LEFT_OUT_BY_NAME if part in name), "")


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
        LeftOut: when the original would not play it.
        DataInvalid: when the file is too large, no JSON, or lacks what is needed.
    """
    document = load_document(path)
    if not document.get("solvable", True):
        raise LeftOut("unsolvable", str(path))
    grammar = document.get("grammar")
    found = _SENTENCE.search(grammar) if isinstance(grammar, str) else None
    if found is None:
        raise DataInvalid(f'{path}: the grammar holds no goal sentence (\'"task": [{{"rhs": "…"}}]\')')
    try:
        sentence = json.loads(f'"{found.group(1)}"')
    except ValueError as error:
        raise DataInvalid(f"{path}: the goal sentence is not a valid string: {error}") from error
    game = compile_record({**document, "goal_text": sentence}, task_id, str(path))
    if "solvable" not in document:
        raise LeftOut("never checked for a solution", str(path))
    return game


def load_document(path: Path) -> dict[str, Any]:
    """Read a game file's content, within bounds.

    Args:
        path: the file.

    Returns:
        The JSON object in it.

    Raises:
        DataInvalid: when it is no regular file, too large, or holds no JSON object.
    """
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
