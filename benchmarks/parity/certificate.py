"""A certificate that a paper can cite: per official ALFWorld game one hash that our engine and TextWorld share.

The script of a game is fixed: its walkthrough, then ``look``, ``inventory``, ``help`` and twenty more commands drawn by
a hash of the game's id, every verb of the list as likely. Hashed is the whole transcript: text, admissible commands,
won, lost and score of every turn. ``python -m benchmarks.parity certificate`` plays our side again (and TextWorld's
where it is installed) and compares with ``benchmarks/results/parity/alfworld.json``, which ::

    python -m benchmarks.parity.certificate FILE [--split SPLIT]

writes, both sides played; it goes on where FILE stops, and refuses a game that differs.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from seed_envs.alfworld.library import OFFICIAL_SPLITS, Indexed, open_source
from seed_envs.alfworld.textworld_engine import TextWorldProcess
from seed_envs.command_line import COMPLETE, INCOMPLETE, Parser, run
from seed_envs.data import data_dir
from seed_envs.errors import DataMissing, DependencyMissing

from .rows import Options, ParityRow
from .textgames import GAMES_A_PROCESS, ORIGINAL, Ours, Theirs

FILE = Path(__file__).resolve().parent.parent / "results" / "parity" / "alfworld.json"
MORE_COMMANDS = 20
_SAVE_EVERY = 50
_DIGITS = 16
"""Of a hash, in hexadecimal."""


def compare(options: Options) -> list[ParityRow]:
    """Our hashes, and TextWorld's for a few games where it is installed, beside the checked-in ones.

    Args:
        options: ``episodes`` bounds our games (default: all that are in the file and on disk).

    Raises:
        DataMissing: Without the official games or the file.
    """
    games, certified = open_games(), read_certificate(FILE)
    known = [task_id for task_id in games.ids if task_id in certified][: options.episodes]
    rows = [compare_ours(games, certified, known)]
    with contextlib.suppress(DependencyMissing):
        rows.append(compare_theirs(games, certified, known[:: max(1, len(known) // 10)]))
    return rows


def compare_ours(games: Indexed, certified: dict[str, str], task_ids: Sequence[str]) -> ParityRow:
    """Our transcripts beside the file."""
    row = ParityRow("transcript hashes, ours", "certificate")
    for task_id in task_ids:
        _check(row, task_id, certified[task_id], play_ours(games, task_id)[1])
    return row


def compare_theirs(games: Indexed, certified: dict[str, str], task_ids: Sequence[str]) -> ParityRow:
    """TextWorld's transcripts beside the file.

    Raises:
        DependencyMissing: Without the extra ``alfworld``.
    """
    row, process = ParityRow("transcript hashes, TextWorld", "certificate"), TextWorldProcess(fast=True)
    for task_id in task_ids:
        commands = play_ours(games, task_id)[0]
        _check(row, task_id, certified[task_id], play_theirs(games, task_id, commands, process))
    process.close()
    return row


def _check(row: ParityRow, task_id: str, certified: str, turns: Sequence[Any]) -> None:
    row.episodes, row.steps = row.episodes + 1, row.steps + len(turns) - 1
    row.check(task_id, {"hash": (transcript_hash(turns), certified)})


def open_games() -> Indexed:
    """The official games on disk.

    Raises:
        DataMissing: When there are none.
    """
    return open_source(data_dir("alfworld", variable="ALFWORLD_DATA"))


def draw(task_id: str, number: int, admissible: Sequence[str]) -> str:
    """The ``number``-th drawn command of a game."""
    digest = hashlib.sha256(f"{task_id} {number}".encode()).digest()
    verbs = sorted({command.partition(" ")[0] for command in admissible})
    verb = verbs[int.from_bytes(digest[:8], "big") % len(verbs)]
    group = [command for command in admissible if command.partition(" ")[0] == verb]
    return group[int.from_bytes(digest[8:16], "big") % len(group)]


def play_ours(games: Indexed, task_id: str) -> tuple[list[str], list[Any]]:
    """The script of a game and our turns under it."""
    game = games.game(task_id)
    side = Ours(game)
    commands, turns = [*game.walkthrough, "look", "inventory", "help"], [side.start()]
    turns += [side.act(command) for command in commands]
    for number in range(MORE_COMMANDS):
        commands.append(draw(task_id, number, turns[-1].admissible))
        turns.append(side.act(commands[-1]))
    return commands, turns


def play_theirs(games: Indexed, task_id: str, commands: Sequence[str], process: TextWorldProcess) -> list[Any]:
    """TextWorld's turns under the same commands."""
    side = Theirs(process, games.document(task_id))
    return [side.start(), *map(side.act, commands)]


def transcript_hash(turns: Sequence[Any]) -> str:
    """Of all turns, each a JSON array of its five fields on a line."""
    lines = "".join(json.dumps(turn) + "\n" for turn in turns)
    return hashlib.sha256(lines.encode()).hexdigest()[:_DIGITS]


def read_certificate(path: Path) -> dict[str, str]:
    """The hashes by game id.

    Raises:
        DataMissing: When there is no such file.
    """
    if not path.is_file():
        raise DataMissing(f"{path} does not exist; it is part of a checkout of this project")
    nested = json.loads(path.read_text(encoding="utf-8"))["games"]
    return {
        f"{split}/{task}/{trial}": value
        for split, tasks in nested.items()
        for task, trials in tasks.items()
        for trial, value in trials.items()
    }


def write_certificate(path: Path, hashes: dict[str, str]) -> None:
    """One line a task, so that a changed game is one changed line."""
    nested: dict[str, dict[str, dict[str, str]]] = {}
    for task_id, value in sorted(hashes.items()):
        split, task, trial = task_id.split("/")
        nested.setdefault(split, {}).setdefault(task, {})[trial] = value
    blocks = [
        f"{json.dumps(split)}: {{\n"
        + ",\n".join(f"{json.dumps(task)}: {json.dumps(trials)}" for task, trials in tasks.items())
        + "\n}"
        for split, tasks in nested.items()
    ]
    what = f"first {_DIGITS} hexadecimal digits of the SHA-256 of a fixed script's transcript, equal in both engines"
    head = f'"what": {json.dumps(what)},\n"original": {json.dumps(ORIGINAL)},\n"count": {len(hashes)}'
    path.write_text(f'{{\n{head},\n"games": {{\n' + ",\n".join(blocks) + "\n}\n}\n", encoding="utf-8")


def certify(path: Path, splits: Sequence[str]) -> Iterator[str]:
    """Play the missing games of some splits on both engines and write their hashes.

    Yields:
        One line for every game whose transcripts differ.
    """
    games = open_games()
    hashes = read_certificate(path) if path.is_file() else {}
    found = [[i for i in games.ids if i.startswith(f"{split}/") and i not in hashes] for split in splits]
    # By the last digits of the trial: a file that was interrupted covers every family.
    missing = [task_id for ids in found for task_id in sorted(ids, key=lambda name: name.rpartition("_")[2])]
    for number, task_id in enumerate(missing, 1):
        if number % GAMES_A_PROCESS == 1:
            process = TextWorldProcess(fast=True)
        commands, ours = play_ours(games, task_id)
        theirs = play_theirs(games, task_id, commands, process)
        if ours == theirs:
            hashes[task_id] = transcript_hash(ours)
        else:
            turn = next(index for index, both in enumerate(zip(ours, theirs, strict=True)) if both[0] != both[1])
            yield f"{task_id}: differs at turn {turn} ({['(start)', *commands][turn]!r})"
        if number % _SAVE_EVERY == 0 or number == len(missing):
            write_certificate(path, hashes)
            print(f"{number:,} of {len(missing):,}", file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Write a certificate; 1 when a game differs."""
    parser = Parser(prog="python -m benchmarks.parity.certificate", description="Writes the certificate of ALFWorld.")
    parser.add_argument("file", type=Path, metavar="FILE", help="where to write; games that are in it are not repeated")
    parser.add_argument("--split", action="append", choices=OFFICIAL_SPLITS, help="default: every official split")

    def command(options: argparse.Namespace) -> int:
        differing = 0
        for line in certify(options.file, options.split or tuple(reversed(OFFICIAL_SPLITS))):
            differing += 1
            print(line)
        return INCOMPLETE if differing else COMPLETE

    return run(parser, arguments, command)


if __name__ == "__main__":
    sys.exit(main())
