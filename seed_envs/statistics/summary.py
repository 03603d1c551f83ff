"""The numbers of a set of episodes, every estimate with its count and its interval.

Episodes that a fault ended (``env_error``, ``policy_error``, ``timeout``, ``retrieval_error``) are counted apart and
enter no average; next to the success rate stands what it would be if they were failures. A rate over nothing is None.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from seed_envs.statistics.intervals import (
    CONFIDENCE,
    Interval,
    cluster_standard_error,
    combine,
)
from seed_envs.statistics.means import bounded_interval, t_interval
from seed_envs.trajectory import Trajectory


class Outcome(Protocol):
    """What statistics need to know of an episode."""

    @property
    def task_id(self) -> str:
        """The task; episodes of one task are repeats."""

    @property
    def task_type(self) -> str:
        """Its family."""

    @property
    def scored(self) -> bool:
        """Whether the outcome says something about the policy."""

    @property
    def success(self) -> bool:
        """Whether the task was solved."""

    @property
    def score(self) -> float:
        """Score in [0, 1]."""

    @property
    def steps(self) -> int:
        """Turns taken."""

    @property
    def invalid_actions(self) -> int:
        """Turns whose action the environment refused."""

    @property
    def invalid_formats(self) -> int:
        """Turns whose reply could not be read in the profile's format."""


AnyOutcome = TypeVar("AnyOutcome", bound=Outcome)


class Played(NamedTuple):
    """A plain :class:`Outcome`."""

    task_id: str
    task_type: str
    scored: bool
    success: bool
    score: float
    steps: int
    invalid_actions: int
    invalid_formats: int = 0

    @classmethod
    def of(cls, episode: Trajectory) -> Played:
        """What statistics read of a trajectory; a task without a family is of the family ``all``."""
        return cls(
            episode.task_id,
            episode.task_type or "all",
            episode.stop_reason.scored,
            episode.success,
            episode.score,
            episode.num_steps,
            sum(not step.action_valid for step in episode.steps),
            sum(not step.format_valid for step in episode.steps),
        )


def summarise_outcomes(played: Sequence[Outcome], confidence: float = CONFIDENCE) -> dict[str, Any]:
    """The numbers of a set of episodes.

    Args:
        played: Every episode once.
        confidence: Coverage of every interval.

    Returns:
        ``counts`` (``scored``, ``failed``, ``tasks``), ``success`` (micro), ``macro``, ``score``, ``families``,
        ``steps`` and ``repeats``, JSON-ready.
    """
    scored = [episode for episode in played if episode.scored]
    families = by_group(scored, lambda episode: episode.task_type, confidence)
    return {
        "counts": {
            "scored": len(scored),
            "failed": len(played) - len(scored),
            "tasks": len({episode.task_id for episode in scored}),
        },
        "success": _success(scored, len(played), confidence),
        "macro": _macro(families, confidence),
        "score": mean_with_interval(scored, [episode.score for episode in scored], confidence),
        "families": families,
        "steps": _steps(scored),
        "repeats": _repeats(scored),
    }


def mean_with_interval(
    scored: Sequence[Outcome],
    values: Sequence[float],
    confidence: float,
    bounds: tuple[float, float] | None = (0.0, 1.0),
) -> dict[str, Any]:
    """Mean of one number per episode, with its interval; whole tasks are what is sampled.

    Args:
        scored: The episodes.
        values: One number of each.
        confidence: Coverage.
        bounds: Smallest and largest possible value, None where nobody knows them.
    """
    tasks = [episode.task_id for episode in scored]
    interval = (
        t_interval(values, tasks, confidence) if bounds is None else bounded_interval(values, tasks, confidence, bounds)
    )
    return {
        "mean": statistics.fmean(values) if values else None,
        "interval": _list(interval) if values else None,
        "standard_error": cluster_standard_error(values, tasks),
        "method": "Student's t over tasks" if bounds is None else "Gaffke over tasks",
        "n": len(values),
    }


def _success(scored: Sequence[Outcome], played: int, confidence: float) -> dict[str, Any]:
    solved = [float(episode.success) for episode in scored]
    row = mean_with_interval(scored, solved, confidence)
    return {
        "average": "micro (every episode counts the same)",
        "rate": row.pop("mean"),
        **row,
        "solved": int(sum(solved)),
        "rate_if_errors_fail": sum(solved) / played if played else None,
    }


def by_group(
    scored: Sequence[AnyOutcome], name_of: Callable[[AnyOutcome], str], confidence: float
) -> list[dict[str, Any]]:
    """Success, score and steps of groups of episodes, by name.

    Args:
        scored: The episodes.
        name_of: Names the group of an episode.
        confidence: Coverage of every interval.
    """
    groups: dict[str, list[AnyOutcome]] = defaultdict(list)
    for episode in scored:
        groups[name_of(episode)].append(episode)
    rows = []
    for name in sorted(groups):
        group = groups[name]
        part = _success(group, len(group), confidence)
        rows.append(
            {
                "name": name,
                "n": len(group),
                "tasks": len({episode.task_id for episode in group}),
                "solved": part["solved"],
                "rate": part["rate"],
                "interval": part["interval"],
                "score": statistics.fmean(episode.score for episode in group),
                "steps": statistics.fmean(episode.steps for episode in group),
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
        "method": "MOVER of the families' limits",
    }


def _steps(scored: Sequence[Outcome]) -> dict[str, Any]:
    steps = [episode.steps for episode in scored]
    solved = [episode.steps for episode in scored if episode.success]
    total = sum(steps)
    return {
        "mean": statistics.fmean(steps) if steps else None,
        "median": statistics.median(steps) if steps else None,
        "max": max(steps, default=None),
        "mean_when_solved": statistics.fmean(solved) if solved else None,
        "total": total,
        "invalid_format_share": sum(episode.invalid_formats for episode in scored) / total if total else None,
        "invalid_share": sum(episode.invalid_actions for episode in scored) / total if total else None,
    }


def _repeats(scored: Sequence[Outcome]) -> dict[str, Any]:
    """With repeats: how many tasks are solved at least once and every time, over tasks with all their repeats."""
    groups: dict[str, list[bool]] = defaultdict(list)
    for episode in scored:
        groups[episode.task_id].append(episode.success)
    most = max((len(group) for group in groups.values()), default=0)
    full = [group for group in groups.values() if len(group) == most]
    return {
        "per_task": most,
        "tasks": len(full),
        "solved_once": sum(any(group) for group in full) / len(full) if full else None,
        "solved_always": sum(all(group) for group in full) / len(full) if full else None,
    }


def _list(interval: Interval | None) -> list[float] | None:
    return None if interval is None else list(interval)
