"""Any number of runs on the same tasks: every pair with corrected p-values, families, and where outcomes differ."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from seed_envs.statistics.intervals import CONFIDENCE

from .compare import Run, compare_pair, open_runs
from .paired import holm
from .records import EpisodeRecord
from .summary import summarise


def compare_many(folders: Sequence[Path], confidence: float = CONFIDENCE) -> dict[str, Any]:
    """Compare runs with each other; differences by family are taken from the first.

    Args:
        folders: Folders of at least two runs.
        confidence: Coverage of the intervals.

    Returns:
        ``runs`` (agent, rate and interval of each), ``pairs`` (paired measures of each pair, the p-values of success
        corrected by Holm over all pairs), ``families`` (per family the difference of every run to the first) and
        ``disagreements`` (tasks whose success differs between runs; shares in the order of ``runs``).

    Raises:
        RunsDiffer: When the runs are not all on the same tasks.
        RunFolderInvalid: When a folder holds no run.
    """
    runs = open_runs(folders)
    pairs = [
        {"first": a, "second": b, **compare_pair(runs[a], runs[b], confidence)}
        for a, b in itertools.combinations(range(len(runs)), 2)
    ]
    p_values = [pair["measures"]["success"]["p_value"] for pair in pairs]
    known = [index for index, value in enumerate(p_values) if value is not None]
    for index, value in zip(known, holm([p_values[index] for index in known]), strict=True):
        pairs[index]["p_corrected"] = value
    return {
        "suite": runs[0].suite,
        "manifest": runs[0].config["manifest"]["sha256"],
        "confidence": confidence,
        "runs": [_head(run, confidence) for run in runs],
        "pairs": pairs,
        "families": _families(runs, confidence),
        "disagreements": disagreements(runs),
        "left_out": max(pair["left_out"] for pair in pairs),
    }


def _head(run: Run, confidence: float) -> dict[str, Any]:
    records = [record for episodes in run.tasks.values() for record in episodes]
    success = summarise(records, confidence=confidence)["success"]
    return {
        "folder": str(run.folder.path),
        "agent": run.agent,
        "profile": run.config["run"]["profile"],
        "episodes": len(records),
        "rate": success["rate"],
        "interval": success["interval"],
    }


def _families(runs: Sequence[Run], confidence: float) -> list[dict[str, Any]]:
    members: dict[str, set[str]] = {}
    for run in runs:
        for task, episodes in run.tasks.items():
            members.setdefault(episodes[0].task_type, set()).add(task)
    rows = []
    for name, tasks in sorted(members.items()):
        parts = [compare_pair(runs[0], other, confidence, tasks)["measures"]["success"] for other in runs[1:]]
        rows.append({"name": name, "tasks": len(tasks), "against_first": parts})
    return rows if len(rows) > 1 else []


def disagreements(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Tasks that all runs have scored and not all equally often solved, in the order of the first run.

    Returns:
        Per task its id, family and goal, the share of solved episodes per run, and per run the index of the episode
        to read: of the first repeat in which the outcomes differ.
    """
    found = []
    for task, episodes in runs[0].tasks.items():
        if not all(task in run.tasks for run in runs):
            continue
        shares = [statistics.fmean(record.success for record in run.tasks[task]) for run in runs]
        if len(set(shares)) == 1:
            continue
        chosen = _differing([run.tasks[task] for run in runs])
        found.append(
            {
                "task_id": task,
                "task_type": episodes[0].task_type,
                "goal": episodes[0].goal,
                "shares": shares,
                "episodes": [record.index for record in chosen],
            }
        )
    return found


def _differing(groups: Sequence[Sequence[EpisodeRecord]]) -> list[EpisodeRecord]:
    """One episode of every run, of the first repeat whose outcomes differ."""
    for records in zip(*groups, strict=False):
        if len({record.success for record in records}) > 1:
            return list(records)
    return [records[0] for records in groups]
