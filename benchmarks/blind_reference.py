"""``python -m benchmarks.blind_reference [SUITE ...]``: what players win that read the words alone.

Plays the players of ``text_only`` on the suites with pictures, pictures blanked, and writes one small JSON per suite.
Its ``bound`` is the upper limit of the best of them: an agent below it has not shown that it looks, and a text-only
player above it has found a leak, which a test of this repository then reports.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from seed_envs.command_line import COMPLETE, Parser, run
from seed_envs.tables import table, with_interval

from .baselines import play
from .errors import UnknownSuite
from .suites import find_suite

#: Suites with pictures, and the players of ``text_only`` that know their words.
PLAYERS = {
    "ezpoints/paper": ("fixed", "refusals", "lottery"),
    "ezpoints/mini": ("fixed", "refusals", "lottery"),
    "points24/mini": ("adder",),
    "sokoban/paper": ("wander",),
    "sokoban/mini": ("wander",),
}
REPEATS = 1
FOLDER = Path(__file__).resolve().parent / "results" / "blind"


def main(arguments: Sequence[str] | None = None) -> int:
    """Play and write the references."""
    parser = Parser(prog="python -m benchmarks.blind_reference", description=__doc__)
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=f"any of: {', '.join(PLAYERS)} (default: all)")
    parser.add_argument("--out", type=Path, default=FOLDER, metavar="DIR")
    return run(parser, arguments, _play_all)


def _play_all(options: argparse.Namespace) -> int:
    for name in options.suites:
        if name not in PLAYERS:
            raise UnknownSuite(f"{name!r} has no text-only players; there are {sorted(PLAYERS)}")
    options.out.mkdir(parents=True, exist_ok=True)
    for name in options.suites or PLAYERS:
        record = measure(name)
        (options.out / f"{name.replace('/', '_')}.json").write_text(json.dumps(record, indent=1) + "\n")
        print(f"{name}: bound {100 * record['bound']:.1f} %", file=sys.stderr)
    (options.out / "README.md").write_text(page(options.out), encoding="utf-8")
    return COMPLETE


def measure(suite: str) -> dict[str, Any]:
    """What each text-only player wins on a suite without pictures, and the bound that follows."""
    players = {}
    for name in PLAYERS[suite]:
        record = play_blind(suite, name, REPEATS)
        kept = ("rate", "interval", "n", "solved", "method")
        players[name] = {"command": record["command"], **{key: record["success"][key] for key in kept}}
    return {
        "suite": suite,
        "bound": max(player["interval"][1] for player in players.values()),
        "players": players,
        **{key: record[key] for key in ("manifest", "prompt", "software")},
    }


def play_blind(suite: str, player: str, repeats: int) -> dict[str, Any]:
    """One player's summary on a suite without pictures."""
    return play(find_suite(suite), f"python:seed_benchmarks.text_only:{player}", repeats, blind="blank")


def page(folder: Path) -> str:
    """The page of the references in a folder."""
    records = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))]
    rows = [
        [record["suite"], name, str(player["n"]), with_interval(player["rate"], player["interval"])]
        for record in records
        for name, player in record["players"].items()
    ]
    bounds = [[record["suite"], f"{100 * record['bound']:.1f} %"] for record in records]
    commands = "\n".join(f"    {player['command']}" for record in records for player in record["players"].values())
    return (
        "# Blind references\n\n"
        "Players that read the words of the prompt and see no picture (`seed_benchmarks.text_only`). The bound of a "
        "suite is the upper limit of the best of them. A score with pictures says something about perception as far "
        "as it is above the same agent's blind score (`seed-bench run ... --blind blank`, then `seed-bench view RUN "
        "--blind BLIND_RUN`).\n\n"
        f"{table(['suite', 'player', 'episodes', 'success, blind'], rows)}\n\n{table(['suite', 'bound'], bounds)}\n\n"
        "In EZPoints a wrong number costs a turn and nothing else. A player that always writes 10 + 2 wins the hands "
        "with these cards, 37.5 % of the deals. One that draws the first number by lot until one is taken wins 63 % "
        "without sight or memory, under the paper's rules and the original's alike.\n\n"
        f"Made by `python -m benchmarks.blind_reference`, which runs:\n\n{commands}\n"
    )


if __name__ == "__main__":
    sys.exit(main())
