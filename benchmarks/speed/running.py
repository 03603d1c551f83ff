"""Running the comparisons: each in a child process, one table and one JSON for all.

Each comparison runs in a child process of its own, one after the other, so that none measures another's memory or
caches. One whose original is not installed is shown as skipped, with the command that installs it.
"""

from __future__ import annotations

import argparse
import importlib
import json
import multiprocessing
import pkgutil
import sys
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from seed_envs.errors import DataMissing, DependencyMissing, close_matches
from seed_envs.tables import table

from ..versions import describe_hardware, describe_software

_NOT_COMPARISONS = {"rows", "running", "__main__"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the named comparisons, all without names.

    Returns:
        0 when every comparison gave numbers, 1 when one was skipped or failed, 2 for an unknown name.
    """
    known = comparison_names()
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed", description="Speed against the originals.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"any of: {', '.join(known)} (default: all)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the JSON here instead of printing it")
    options = parser.parse_args(arguments)
    for name in options.names:
        if name not in known:
            print(f"comparison {name!r} is unknown; there are {known}.{close_matches(name, known)}", file=sys.stderr)
            return 2
    if options.json and not options.json.parent.is_dir():
        print(f"--json {options.json}: the folder {options.json.parent} does not exist", file=sys.stderr)
        return 2
    results = []
    for name in options.names or known:
        print(f"{name} ...", file=sys.stderr, flush=True)
        results.append(run_comparison(name))
    print(format_results(results))
    report = {"software": describe_software(), "hardware": describe_hardware(), "comparisons": results}
    if options.json:
        options.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    else:
        print(f"\n{json.dumps(report)}")
    return 0 if all(result["rows"] for result in results) else 1


def comparison_names() -> list[str]:
    """The modules of this folder that hold a comparison."""
    found = pkgutil.iter_modules([str(Path(__file__).parent)])
    return sorted(module.name for module in found if module.name not in _NOT_COMPARISONS)


def run_comparison(name: str) -> dict[str, Any]:
    """Run one comparison in a fresh process.

    Returns:
        ``name``, ``rows`` (see ``SpeedRow.to_json``), ``skipped`` and ``error`` (texts, empty when all went well).
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_measure, args=(theirs, name))
    process.start()
    theirs.close()
    try:
        result: dict[str, Any] = ours.recv()
    except EOFError:
        process.join()
        result = {"name": name, "rows": [], "skipped": "", "error": f"the process ended with {process.exitcode}"}
    process.join()
    return result


def format_results(results: Sequence[dict[str, Any]]) -> str:
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
    lines = [table(["what", "ours", "original", "ratio", "unit", "the original", "how measured"], rows)]
    lines += [f"- {result['name']}: skipped: {result['skipped']}" for result in results if result["skipped"]]
    lines += [f"- {result['name']}: failed: {result['error']}" for result in results if result["error"]]
    return "\n".join(lines)


def _measure(connection: Connection, name: str) -> None:
    """Body of the child process."""
    result: dict[str, Any] = {"name": name, "rows": [], "skipped": "", "error": ""}
    try:
        module = importlib.import_module(f"{__package__}.{name}")
        result["rows"] = [row.to_json() for row in module.measure()]
    except (DataMissing, DependencyMissing) as error:
        result["skipped"] = str(error)
    except Exception as error:  # one comparison that fails does not take the others along
        result["error"] = f"{type(error).__name__}: {error}"
    connection.send(result)
    connection.close()


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
