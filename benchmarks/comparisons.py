"""Comparisons with the originals as commands: named modules, each run in a child process, one table and one JSON.

A folder of comparisons (``benchmarks/speed``, ``benchmarks/parity``) holds one module a comparison. Each runs in a
process of its own, one after the other, so that none measures another's memory or caches, and one that fails does not
take the others along. One whose original is not there is shown as skipped, with the command that installs it.
"""

from __future__ import annotations

import argparse
import importlib
import json
import multiprocessing
import pkgutil
import sys
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from seed_envs.command_line import COMPLETE, INCOMPLETE, REFUSED
from seed_envs.errors import DataMissing, DependencyMissing, close_matches

from .versions import describe_hardware, describe_software

#: ``name``, ``rows``, ``skipped`` and ``error`` (texts, empty when all went well) of one comparison.
Result = dict[str, Any]


def comparison_names(folder: Path, others: Sequence[str]) -> list[str]:
    """The modules of a folder that hold a comparison: all but ``others``."""
    return sorted(module.name for module in pkgutil.iter_modules([str(folder)]) if module.name not in others)


def add_options(parser: argparse.ArgumentParser, known: Sequence[str]) -> None:
    """Adds the names of comparisons and ``--json``."""
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"any of: {', '.join(known)} (default: all)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the JSON here instead of printing it")


def run_all(
    options: argparse.Namespace,
    known: Sequence[str],
    play: Callable[[str], Result],
    show: Callable[[Sequence[Result]], str],
    complete: Callable[[Result], bool],
) -> int:
    """Run the named comparisons, all without names, and print them.

    Args:
        options: What :func:`add_options` parsed.
        known: The comparisons there are.
        play: Runs one.
        show: The table of all.
        complete: Whether a result is as it should be.

    Returns:
        0 when all are complete, 1 when one is not, 2 for a request that cannot be carried out.
    """
    for name in options.names:
        if name not in known:
            print(
                f"comparison {name!r} is unknown; there are {list(known)}.{close_matches(name, known)}", file=sys.stderr
            )
            return REFUSED
    if options.json and not options.json.parent.is_dir():
        print(f"--json {options.json}: the folder {options.json.parent} does not exist", file=sys.stderr)
        return REFUSED
    results = []
    for name in options.names or known:
        print(f"{name} ...", file=sys.stderr, flush=True)
        results.append(play(name))
    print(show(results))
    report = {"software": describe_software(), "hardware": describe_hardware(), "comparisons": results}
    if options.json:
        options.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    else:
        print(f"\n{json.dumps(report)}")
    return COMPLETE if all(map(complete, results)) else INCOMPLETE


def run_alone(package: str, name: str, function: str, *arguments: Any) -> Result:
    """Call a comparison's function in a fresh process.

    Args:
        package: Package of the comparison, e.g. ``seed_benchmarks.speed``.
        name: Its module.
        function: Takes ``arguments`` and returns rows with ``to_json``.
        *arguments: Anything that can be sent to a process.
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_call, args=(theirs, package, name, function, arguments))
    process.start()
    theirs.close()
    try:
        result: Result = ours.recv()
    except EOFError:
        process.join()
        result = {"name": name, "rows": [], "skipped": "", "error": f"the process ended with {process.exitcode}"}
    process.join()
    return result


def left_out(results: Sequence[Result]) -> list[str]:
    """One line for every comparison that was skipped or failed."""
    lines = [f"- {result['name']}: skipped: {result['skipped']}" for result in results if result["skipped"]]
    return lines + [f"- {result['name']}: failed: {result['error']}" for result in results if result["error"]]


def _call(connection: Connection, package: str, name: str, function: str, arguments: tuple[Any, ...]) -> None:
    """Body of the child process."""
    result: Result = {"name": name, "rows": [], "skipped": "", "error": ""}
    try:
        module = importlib.import_module(f"{package}.{name}")
        result["rows"] = [row.to_json() for row in getattr(module, function)(*arguments)]
    except (DataMissing, DependencyMissing) as error:
        result["skipped"] = str(error)
    except Exception as error:  # one comparison that fails does not take the others along
        result["error"] = f"{type(error).__name__}: {error}"
    connection.send(result)
    connection.close()
