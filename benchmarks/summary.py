"""From episode records to the numbers of a result.

Pure: records in, a JSON-ready dictionary out. What training and evaluation have in common is
``seed_envs.statistics``; here stands what only a planned run has: what is missing, errors, tokens, cost, power.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from seed_envs.statistics.intervals import CONFIDENCE
from seed_envs.statistics.summary import by_group, mean_with_interval, summarise_outcomes

from .paired import tasks_needed_unpaired
from .records import EpisodeRecord

#: Steps in a group of optimal lengths.
_BIN = 5
#: Differences of success rates for which the power hint is given.
_HINT_DIFFERENCES = (0.02, 0.05, 0.1)
#: With fewer tasks the interval of a success rate spans more than 40 points around one half.
SMALL_SPLIT = 20


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
        ``tokens``, ``replies``, ``data``, ``repeats``, ``lengths`` (groups by optimal length, empty where it is not
        known), ``by`` (groups by what the environment tells, such as hops), ``measures`` (means of what else it
        measures) and ``power``.
    """
    played = sorted(records, key=lambda record: record.index)
    scored = [record for record in played if record.scored]
    total = len(played) if planned is None else planned
    common = summarise_outcomes(played, confidence)
    return {
        **common,
        "confidence": confidence,
        "counts": {"planned": total, "missing": total - len(played), **common["counts"]},
        "complete": len(scored) == total,
        "reward": mean_with_interval(scored, [record.reward for record in scored], confidence, None),
        "stop_reasons": dict(sorted(Counter(record.stop_reason for record in played).items())),
        "errors": dict(
            sorted(Counter((record.error or {}).get("type", "?") for record in played if not record.scored).items())
        ),
        "tokens": count_tokens(played),
        "replies": _replies(scored),
        "data": describe_data(played),
        "lengths": _lengths(scored, confidence),
        "by": _by(scored, confidence),
        "measures": _measures(scored, confidence),
        "power": _power(scored, confidence),
    }


def describe_data(records: Sequence[EpisodeRecord]) -> dict[str, Any]:
    """What the tasks were made of.

    Returns:
        ``cards``: every different card with the number of its episodes; ``warning``: said where a split has so few
        tasks that no interval over them means much, else empty.
    """
    cards: dict[str, dict[str, Any]] = {}
    for record in records:
        if record.data:
            card = cards.setdefault(json.dumps(record.data, sort_keys=True), {**record.data, "episodes": 0})
            card["episodes"] += 1
    small = [card for card in cards.values() if card.get("split_size") is not None and card["split_size"] < SMALL_SPLIT]
    said = [f"split {card['split']!r} has {card['split_size']} task(s) in all" for card in small]
    return {"cards": list(cards.values()), "warning": "; ".join(dict.fromkeys(said))}


def count_tokens(records: Sequence[EpisodeRecord]) -> dict[str, Any]:
    """What agents read and wrote, and its price."""
    return {
        "prompt": sum(record.prompt_tokens for record in records),
        "completion": sum(record.completion_tokens for record in records),
        "cost": math.fsum(record.cost for record in records),
    }


def _replies(scored: Sequence[EpisodeRecord]) -> dict[str, Any]:
    """How many replies were cut at the length limit or withheld by a filter."""
    total = sum(record.steps for record in scored)
    cut = sum(record.cut_replies for record in scored)
    return {
        "total": total,
        "cut": cut,
        "filtered": sum(record.filtered_replies for record in scored),
        "cut_share": cut / total if total else None,
    }


def _lengths(scored: Sequence[EpisodeRecord], confidence: float) -> list[dict[str, Any]]:
    """Success by the length of the shortest solution, in groups of five steps."""
    known = [record for record in scored if record.optimal_steps is not None]
    rows = by_group(known, lambda record: f"{_bin(record.optimal_steps):04}", confidence)
    return [{**row, "name": f"{int(row['name'])}-{int(row['name']) + _BIN - 1}"} for row in rows]


def _by(scored: Sequence[EpisodeRecord], confidence: float) -> dict[str, list[dict[str, Any]]]:
    """Success of the groups that the environment names, with the group's means of its measures."""
    names = sorted({name for record in scored for name in record.by})
    return {name: _groups([record for record in scored if name in record.by], name, confidence) for name in names}


def _groups(known: Sequence[EpisodeRecord], name: str, confidence: float) -> list[dict[str, Any]]:
    rows = by_group(known, lambda record: str(record.by[name]), confidence)
    for row in rows:
        group = [record for record in known if str(record.by[name]) == row["name"]]
        row["measures"] = {key: part["mean"] for key, part in _measures(group, confidence).items()}
    return rows


def _measures(scored: Sequence[EpisodeRecord], confidence: float) -> dict[str, dict[str, Any]]:
    """Mean and interval of every measure, over the episodes that have it."""
    found = {}
    for name in sorted({name for record in scored for name in record.measures}):
        known = [record for record in scored if name in record.measures]
        found[name] = mean_with_interval(known, [record.measures[name] for record in known], confidence)
    return found


def _bin(optimal_steps: int | None) -> int:
    """Smallest length of the group."""
    return max((optimal_steps or 0) - 1, 0) // _BIN * _BIN + 1


def _power(scored: Sequence[EpisodeRecord], confidence: float) -> dict[str, Any]:
    """Tasks per run that tell another success rate from this one with 80 % probability."""
    row: dict[str, Any] = {"power": 0.8, "note": "unpaired bound; `seed-bench compare` gives the paired number"}
    if not scored:
        return {**row, "tasks_needed": {}}
    rate = sum(record.success for record in scored) / len(scored)
    needed = {str(step): tasks_needed_unpaired(rate, step, confidence) for step in _HINT_DIFFERENCES}
    return {**row, "tasks_needed": needed}
