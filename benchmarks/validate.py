"""``validate``: every environment proves itself solvable: its oracle scores 1.0 on its manifest.

The oracle is an ordinary agent and goes through the ordinary runner, so what is checked is what is evaluated.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from seed_envs.errors import DataMissing, DependencyMissing
from seed_envs.tables import table

from .config import AgentSettings, RunConfig
from .records import latest, read_heads
from .runner import start_run
from .suite import Suite


@dataclass(frozen=True)
class Verdict:
    """What the oracle did on one suite.

    Attributes:
        suite: Name.
        played: Episodes.
        solved: Episodes with success and a score of 1.0.
        problems: ``task id: what happened`` of the others, at most ten.
        skipped: Why nothing was played, or ``""``.
    """

    suite: str
    played: int = 0
    solved: int = 0
    problems: tuple[str, ...] = ()
    skipped: str = ""

    @property
    def holds(self) -> bool:
        """Every task was solved (and there was one)."""
        return self.played > 0 and self.solved == self.played


def validate_suite(suite: Suite, limit: int | None, num_workers: int = 0, folder: Path | None = None) -> Verdict:
    """Let the oracle play a suite.

    Args:
        suite: What to play.
        limit: Number of tasks, None for all.
        num_workers: Worker processes.
        folder: Keep the run here; None discards it.
    """
    config = RunConfig(suite, AgentSettings("oracle"), limit=limit, profile=suite.profile, num_workers=num_workers)
    with tempfile.TemporaryDirectory() as scratch:
        out = folder or Path(scratch) / "run"
        try:
            result = start_run(config, out, ["seed-bench", "validate"])
        except (DataMissing, DependencyMissing) as error:
            return Verdict(suite.name, skipped=str(error))
        records = list(latest(read_heads(result.folder.episodes)).values())
    solved = [record for record in records if record.success and record.score == 1.0]
    problems = [
        f"{record.task_id}: {record.stop_reason}, score {record.score:.3f}"
        + (f" ({record.error['type']}: {record.error['message']})" if record.error else "")
        for record in records
        if record not in solved
    ]
    return Verdict(suite.name, len(records), len(solved), tuple(problems[:10]))


def validate_suites(
    suites: Sequence[Suite], limit: int | None, num_workers: int, on_verdict: Callable[[Verdict], None]
) -> list[Verdict]:
    """Validate several suites one after the other."""
    verdicts = []
    for suite in suites:
        verdict = validate_suite(suite, limit, num_workers)
        on_verdict(verdict)
        verdicts.append(verdict)
    return verdicts


def verdicts_markdown(verdicts: Sequence[Verdict]) -> str:
    """A table of verdicts, and what went wrong."""
    rows = [
        [
            verdict.suite,
            f"{verdict.solved} / {verdict.played}",
            "skipped" if verdict.skipped else "1.0" if verdict.holds else "NOT SOLVED",
        ]
        for verdict in verdicts
    ]
    notes = [f"- {verdict.suite}: skipped: {verdict.skipped}" for verdict in verdicts if verdict.skipped]
    notes += [f"- {verdict.suite}: {problem}" for verdict in verdicts for problem in verdict.problems]
    return "\n".join([table(["suite", "solved", "oracle"], rows), *([""] if notes else []), *notes])
