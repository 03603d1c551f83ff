"""From episode records to the numbers of a result, every one with its count and, where it is an estimate, its interval.

Pure: records in, a JSON-ready dictionary out. Episodes that a fault ended (``env_error``, ``policy_error``,
``timeout``, ``retrieval_error``) are counted apart and enter no average; next to the success rate stands what it
would be if they were failures.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from seed_envs.intervals import CONFIDENCE, Interval

from .intervals import bootstrap_mean, cluster_standard_error, combine, success_interval
from .paired import tasks_needed_unpaired
from .records import EpisodeRecord

#: Differences of success rates for which the power hint is given.
_HINT_DIFFERENCES = (0.02, 0.05, 0.1)


def summarise(
    records: Iterable[EpisodeRecord], planned: int | None = None, confidence: float = CONFIDENCE
) -> dict[str, Any]:
    """The numbers of one run.

    Args:
        records: The record that counts for each episode (see ``records.latest``).
        planned: Episodes of the plan; None takes the records for the whole plan.
        confidence: Coverage of every interval.

    Returns:
        ``counts``, ``success`` (micro), ``macro``, ``score``, ``families``, ``stop_reasons``, ``errors``, ``steps``,
        ``tokens``, ``repeats`` and ``power``.
    """
    played = sorted(records, key=lambda record: record.index)
    scored = [record for record in played if record.scored]
    total = len(played) if planned is None else planned
    families = _families(scored, confidence)
    return {
        "confidence": confidence,
        "counts": {
            "planned": total,
            "scored": len(scored),
            "failed": len(played) - len(scored),
            "missing": total - len(played),
            "tasks": len({record.task_id for record in scored}),
        },
        "complete": len(scored) == total,
        "success": _success(scored, len(played), confidence),
        "macro": _macro(families, confidence),
        "score": _mean(scored, [record.score for record in scored], confidence),
        "reward": _mean(scored, [record.reward for record in scored], confidence),
        "families": families,
        "stop_reasons": dict(sorted(Counter(record.stop_reason for record in played).items())),
        "errors": dict(
            sorted(Counter((record.error or {}).get("type", "?") for record in played if not record.scored).items())
        ),
        "steps": _steps(scored),
        "tokens": {
            "prompt": sum(record.prompt_tokens for record in played),
            "completion": sum(record.completion_tokens for record in played),
            "cost": math.fsum(record.cost for record in played),
        },
        "repeats": _repeats(scored),
        "power": _power(scored, confidence),
    }


def _success(scored: Sequence[EpisodeRecord], played: int, confidence: float) -> dict[str, Any]:
    outcomes = [record.success for record in scored]
    tasks = [record.task_id for record in scored]
    repeated = len(set(tasks)) < len(tasks)
    solved = sum(outcomes)
    return {
        "average": "micro (every episode counts the same)",
        "rate": solved / len(outcomes) if outcomes else None,
        "interval": _list(success_interval(outcomes, tasks, confidence)) if outcomes else None,
        "method": "Wilson, effective size with repeats" if repeated else "Wilson",
        "n": len(outcomes),
        "solved": solved,
        "standard_error": cluster_standard_error([float(value) for value in outcomes], tasks),
        "rate_if_errors_fail": solved / played if played else None,
    }


def _families(scored: Sequence[EpisodeRecord], confidence: float) -> list[dict[str, Any]]:
    groups: dict[str, list[EpisodeRecord]] = defaultdict(list)
    for record in scored:
        groups[record.task_type].append(record)
    rows = []
    for name in sorted(groups):
        group = groups[name]
        part = _success(group, len(group), confidence)
        rows.append(
            {
                "name": name,
                "n": len(group),
                "tasks": len({record.task_id for record in group}),
                "solved": part["solved"],
                "rate": part["rate"],
                "interval": part["interval"],
                "score": statistics.fmean(record.score for record in group),
                "steps": statistics.fmean(record.steps for record in group),
            }
        )
    return rows


def _macro(families: Sequence[dict[str, Any]], confidence: float) -> dict[str, Any]:
    count = len(families)
    row: dict[str, Any] = {"average": "macro (every task family counts the same)", "families": count}
    if count == 0:
        return {**row, "rate": None, "interval": None, "method": "none"}
    rates = [family["rate"] for family in families]
    limits = [Interval(*family["interval"]) for family in families]
    return {
        **row,
        "rate": statistics.fmean(rates),
        "interval": _list(combine(rates, limits, [1 / count] * count)),
        "method": "MOVER of the families' Wilson limits",
    }


def _mean(scored: Sequence[EpisodeRecord], values: Sequence[float], confidence: float) -> dict[str, Any]:
    tasks = [record.task_id for record in scored]
    binary = bool(values) and set(values) <= {0.0, 1.0}
    if binary:
        interval: Interval | None = success_interval([value == 1.0 for value in values], tasks, confidence)
    else:
        interval = bootstrap_mean(values, tasks, confidence)
    return {
        "mean": statistics.fmean(values) if values else None,
        "interval": _list(interval),
        "standard_error": cluster_standard_error(values, tasks),
        "method": "Wilson (all values are 0 or 1)" if binary else "bootstrap over tasks",
        "n": len(values),
    }


def _steps(scored: Sequence[EpisodeRecord]) -> dict[str, Any]:
    steps = [record.steps for record in scored]
    solved = [record.steps for record in scored if record.success]
    total = sum(steps)
    return {
        "mean": statistics.fmean(steps) if steps else None,
        "median": statistics.median(steps) if steps else None,
        "max": max(steps, default=None),
        "mean_when_solved": statistics.fmean(solved) if solved else None,
        "total": total,
        "invalid_share": sum(record.invalid_actions for record in scored) / total if total else None,
    }


def _repeats(scored: Sequence[EpisodeRecord]) -> dict[str, Any]:
    """With repeats: how many tasks are solved at least once and every time, over tasks with all their repeats."""
    groups: dict[str, list[bool]] = defaultdict(list)
    for record in scored:
        groups[record.task_id].append(record.success)
    most = max((len(group) for group in groups.values()), default=0)
    full = [group for group in groups.values() if len(group) == most]
    return {
        "per_task": most,
        "tasks": len(full),
        "solved_once": sum(any(group) for group in full) / len(full) if full else None,
        "solved_always": sum(all(group) for group in full) / len(full) if full else None,
    }


def _power(scored: Sequence[EpisodeRecord], confidence: float) -> dict[str, Any]:
    """Tasks per run that tell another success rate from this one with 80 % probability."""
    row: dict[str, Any] = {"power": 0.8, "note": "unpaired bound; `seed-bench compare` gives the paired number"}
    if not scored:
        return {**row, "tasks_needed": {}}
    rate = sum(record.success for record in scored) / len(scored)
    needed = {str(step): tasks_needed_unpaired(rate, step, confidence) for step in _HINT_DIFFERENCES}
    return {**row, "tasks_needed": needed}


def _list(interval: Interval | None) -> list[float] | None:
    return None if interval is None else list(interval)
