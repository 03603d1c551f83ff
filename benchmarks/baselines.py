"""``python -m benchmarks.baselines``: play the oracle, the random and the rule-based player, and keep the numbers.

Writes one small JSON per suite and agent, and a table, into a folder (``benchmarks/results`` in a checkout). The runs
themselves are ordinary ones; only their summaries are kept.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from seed_envs.command_line import COMPLETE, INCOMPLETE, Parser, run
from seed_envs.errors import DataMissing
from seed_envs.tables import percent, table, with_interval

from .config import AgentSettings, RunConfig
from .runner import start_run
from .suite import Suite
from .suites import choose_suites

#: Agent and repeats: the deterministic ones play once.
_PLAYERS = (("oracle", 1), ("rule", 1), ("random", 4))
_KEPT = (
    "suite", "agent", "confidence", "counts", "complete", "success", "macro", "score", "families", "lengths", "by",
    "measures", "stop_reasons", "errors", "steps", "repeats", "manifest", "prompt", "wall_seconds",
)  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the baselines.

    Returns:
        0 when everything was played, 1 when data was missing, 2 for a request that cannot be carried out.
    """
    parser = Parser(prog="python -m benchmarks.baselines", description=__doc__)
    parser.add_argument("suites", nargs="*", help="names or families (default: every mini suite)")
    parser.add_argument("--out", type=Path, default=Path(__file__).resolve().parent / "results", metavar="DIR")
    return run(parser, arguments, _play_all)


def _play_all(options: argparse.Namespace) -> int:
    suites = choose_suites(options.suites)
    options.out.mkdir(parents=True, exist_ok=True)
    missing = 0
    for suite in suites:
        for agent, repeats in _PLAYERS:
            try:
                record = play(suite, agent, repeats)
            except DataMissing as error:
                print(f"{suite.name}: {error}", file=sys.stderr)
                missing += 1
                break
            name = f"{suite.name.replace('/', '_')}--{agent}.json"
            (options.out / name).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
            print(f"{suite.name} {agent}: {with_interval(record['success']['rate'], record['success']['interval'])}")
    (options.out / "README.md").write_text(results_markdown(options.out), encoding="utf-8")
    return INCOMPLETE if missing else COMPLETE


def play(suite: Suite, agent: str, repeats: int, blind: str = "") -> dict[str, Any]:
    """One baseline's summary, with the command that makes it and the software it was made with."""
    config = RunConfig(suite, AgentSettings(agent), repeats=repeats, profile=suite.profile, blind=blind)
    command = f"seed-bench run --suite {suite.name} --agent {agent}" + (f" --repeats {repeats}" if repeats > 1 else "")
    command += f" --blind {blind}" if blind else ""
    with tempfile.TemporaryDirectory() as scratch:
        result = start_run(config, Path(scratch) / "run", command.split())
        saved = result.folder.read_config()
    kept = {key: result.summary[key] for key in _KEPT}
    return {**kept, "command": command, "software": saved["software"], "hardware": saved["hardware"]}


def results_markdown(folder: Path) -> str:
    """The page of a folder of results."""
    records = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*--*.json"))]
    order = {agent: place for place, (agent, _) in enumerate(_PLAYERS)}
    records.sort(key=lambda record: (record["suite"], order.get(record["agent"], len(order))))
    rows = [
        [
            record["suite"],
            record["agent"],
            str(record["counts"]["tasks"]),
            str(record["counts"]["scored"]),
            with_interval(record["success"]["rate"], record["success"]["interval"]),
            percent(record["macro"]["rate"]),
            with_interval(record["score"]["mean"], record["score"]["interval"]),
            "-" if record["steps"]["mean"] is None else f"{record['steps']['mean']:.1f}",
            str(record["counts"]["failed"]),
        ]
        for record in records
    ]
    header = ["suite", "agent", "tasks", "episodes", "success (micro)", "macro", "score", "steps", "faults"]
    commands = "\n".join(f"    {record['command']}" for record in records)
    return (
        "# Baselines\n\n"
        "The oracle (upper bound), each environment's rule-based player and the random player. Intervals cover 95 %: "
        "Gaffke's limits over tasks, for success and for scores (see coverage.md). "
        "Episodes ended by a fault enter no average. `mini` suites and panels of generated games need no data; the "
        "others were played on the official files (WebShop: the 1,000-product set). WebShop's original scoring puts "
        "some goals out of reach of any exact purchase, so its oracle stays below 100 % there.\n\n"
        f"{table(header, rows)}\n\n"
        "Made by `python -m benchmarks.baselines`, which runs these commands and keeps their summaries "
        f"(one JSON each, with hashes, versions and hardware):\n\n{commands}\n"
    )


if __name__ == "__main__":
    sys.exit(main())
