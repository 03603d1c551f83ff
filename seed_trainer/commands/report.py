"""``seed-train report``: one HTML page about runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from seed_envs.command_line import Parser
from seed_trainer.report.data import group_runs, read_run
from seed_trainer.report.page import render


def main(argv: Sequence[str]) -> int:
    """Run the command."""
    parser = Parser(
        prog="seed-train report",
        description="Write one self-contained HTML page: curves (mean and band over seeds), tables, episodes, gates.",
    )
    parser.add_argument("runs", nargs="+", help="run folders written by seed-train rl")
    parser.add_argument("--output", default="", help="file to write (default: report.html in the first run folder)")
    parser.add_argument("--title", default="Training report", help="heading of the page")
    args = parser.parse_args(list(argv))
    arms = group_runs([read_run(Path(folder)) for folder in args.runs])
    path = Path(args.output) if args.output else Path(args.runs[0]) / "report.html"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(render(arms, args.title), encoding="utf-8")
    print(path)
    return 0
