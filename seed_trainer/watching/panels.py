"""Panels and what is kept of them: tasks, compact records, and their metrics. Loads neither torch nor a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from seed_envs.journal import read_records
from seed_envs.statistics.summary import Played, summarise_outcomes
from seed_envs.tasks import TaskSpec
from seed_envs.trajectory import Trajectory

EVALUATIONS_FILE = "evaluations.jsonl"


def panel_tasks(panel: Any, repeats: int) -> list[TaskSpec]:
    """Return the tasks of a panel, each ``repeats`` times in a row."""
    return [
        TaskSpec(
            task_id=row.get("task_id"),
            split=row.get("split"),
            seed=None if row.get("seed") is None else int(row["seed"]),
            group=index,
        )
        for index, row in enumerate(panel)
        for _ in range(repeats)
    ]


def outcome_of_record(record: Mapping[str, Any]) -> Played:
    """Return what statistics read of a compact episode record."""
    return Played(
        record["task_id"],
        record["task_type"],
        record["scored"],
        bool(record["success"]),
        record["score"],
        record["steps"],
        record["invalid"],
        record.get("invalid_formats", 0),  # evaluations of earlier versions count both under "invalid"
    )


def flat_summary(summary: Mapping[str, Any]) -> dict[str, float | None]:
    """Return the metrics that training episodes and panels have in common; a rate over nothing is None."""
    metrics = {
        "success": summary["success"]["rate"],
        "success_macro": summary["macro"]["rate"],
        "score": summary["score"]["mean"],
        "turns": summary["steps"]["mean"],
        "invalid_formats": summary["steps"]["invalid_format_share"],
        "invalid_actions": summary["steps"]["invalid_share"],
        "faults": float(summary["counts"]["failed"]),
    }
    for family in summary["families"]:
        metrics |= {f"success/{family['name']}": family["rate"], f"episodes/{family['name']}": float(family["n"])}
    return metrics


def summarise(records: Sequence[Mapping[str, Any]], prefix: str = "eval") -> dict[str, float | None]:
    """Return the metrics of a panel from compact episode records.

    Episodes ended by a fault are counted apart and not scored; a rate over nothing is None.
    """
    summary = summarise_outcomes([outcome_of_record(record) for record in records])
    low, high = summary["success"]["interval"] or (None, None)
    metrics = {
        **flat_summary(summary),
        "success_low": low,
        "success_high": high,
        "episodes": float(summary["counts"]["scored"]),
    }
    return {f"{prefix}_{name}": value for name, value in metrics.items()}


def compact_record(episode: Trajectory) -> dict[str, Any]:
    """Return what an evaluation keeps of an episode."""
    outcome = Played.of(episode)._asdict()
    return {
        "invalid": outcome.pop("invalid_actions"),
        **outcome,
        "stop_reason": episode.stop_reason.value,
        "actions": [step.action for step in episode.steps],
        "error": None if episode.error is None else episode.error.message,
    }


def read_evaluations(folder: Path) -> list[tuple[int, dict[str, float | None]]]:
    """Return step and metrics of every evaluation a run has written."""
    return [(int(line["step"]), summarise(line["episodes"])) for line in read_records(folder / EVALUATIONS_FILE)]
