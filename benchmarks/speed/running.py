"""Running the speed comparisons: one table and one JSON for all."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from seed_envs.command_line import Parser, run
from seed_envs.tables import table

from .. import comparisons
from ..comparisons import Result

_NOT_COMPARISONS = ("rows", "running", "__main__")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the named comparisons, all without names.

    Returns:
        0 when every comparison gave numbers, 1 when one was skipped or failed, 2 for an unknown name.
    """
    known = comparison_names()
    parser = Parser(prog="python -m benchmarks.speed", description="Speed against the originals.")
    comparisons.add_options(parser, known)

    def command(options: argparse.Namespace) -> int:
        return comparisons.run_all(options, known, run_comparison, format_results, lambda result: bool(result["rows"]))

    return run(parser, arguments, command)


def comparison_names() -> list[str]:
    """The modules of this folder that hold a comparison."""
    return comparisons.comparison_names(Path(__file__).parent, _NOT_COMPARISONS)


def run_comparison(name: str) -> Result:
    """Run one comparison in a fresh process; its rows are those of ``SpeedRow.to_json``."""
    return comparisons.run_alone(str(__package__), name, "measure")


def format_results(results: Sequence[Result]) -> str:
    """A Markdown table of all rows, and what was skipped."""
    rows = [
        [
            f"{result['name']}: {row['workload']}",
            _number(row["ours"]),
            "-" if row["original"] is None else _number(row["original"]),
            "-" if row["ratio"] is None else f"{row['ratio']:,.1f}x",
            row["unit"],
            row["original_name"] or "-",
            "; ".join(part for part in (row["how"], row["note"]) if part),
        ]
        for result in results
        for row in result["rows"]
    ]
    header = ["what", "ours", "original", "ratio", "unit", "the original", "how measured"]
    return "\n".join([table(header, rows), *comparisons.left_out(results)])


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
