"""Running the parity checks: one table and one JSON for all, and an exit code that CI can use."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from seed_envs.command_line import Parser, run
from seed_envs.tables import table

from .. import comparisons
from ..comparisons import Result
from .rows import Options

_NOT_CHECKS = ("clones", "fuzzing", "rows", "running", "textgames", "__main__")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the named checks, all without names.

    Returns:
        0 when every check ran and all differences are documented, 1 for an undocumented difference and for a check
        that was skipped or failed, 2 for a request that cannot be carried out.
    """
    known = check_names()
    parser = Parser(prog="python -m benchmarks.parity", description="Differences from the originals, step by step.")
    comparisons.add_options(parser, known)
    parser.add_argument(
        "--against", type=Path, metavar="PATH", help="clone of the original, for the checks that say so"
    )
    parser.add_argument("--episodes", type=_count, metavar="N", help="episodes to compare (default: the check's own)")

    def command(options: argparse.Namespace) -> int:
        if options.against is not None and not options.against.is_dir():
            parser.error(f"--against {options.against}: there is no such folder")
        given = Options(options.against, options.episodes)
        return comparisons.run_all(options, known, partial(run_check, options=given), format_results, is_clean)

    return run(parser, arguments, command)


def check_names() -> list[str]:
    """The modules of this folder that hold a check."""
    return comparisons.comparison_names(Path(__file__).parent, _NOT_CHECKS)


def run_check(name: str, options: Options) -> Result:
    """Run one check in a fresh process; its rows are those of ``ParityRow.to_json``."""
    return comparisons.run_alone(str(__package__), name, "compare", options)


def is_clean(result: Result) -> bool:
    """Whether a check ran, compared something, and found nothing that is not documented."""
    return bool(result["rows"]) and all(row["comparisons"] and not row["undocumented"] for row in result["rows"])


def format_results(results: Sequence[Result]) -> str:
    """A Markdown table of all rows, the undocumented differences, and what was skipped."""
    found = [(result["name"], row) for result in results for row in result["rows"]]
    header = ["what", "original", "episodes", "steps", "comparisons", "differences", "documented as"]
    rows = [
        [
            f"{name}: {row['what']}",
            row["original"],
            *(f"{row[count]:,}" for count in ("episodes", "steps", "comparisons", "differences")),
            ", ".join(f"{key} {count:,}" for key, count in row["documented"].items()) or "-",
        ]
        for name, row in found
    ]
    shown = [f"- {name}: undocumented: {line}" for name, row in found for line in row["shown"]]
    hidden = sum(row["undocumented"] - len(row["shown"]) for _, row in found)
    more = [f"- and {hidden:,} more undocumented differences"] if hidden else []
    return "\n".join([table(header, rows), *shown, *more, *comparisons.left_out(results)])


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a whole number above 0")
    return int(text)
