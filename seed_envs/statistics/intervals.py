"""What intervals are made of: Wilson's limits of independent trials, errors between clusters, averages of families.

Pure functions of numbers, shared by training and evaluation; nothing here knows a record or a file. Intervals of means
over tasks, which are the ones reported, are in ``means``.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from statistics import NormalDist
from typing import NamedTuple

CONFIDENCE = 0.95


class Interval(NamedTuple):
    """A two-sided confidence interval."""

    low: float
    high: float


def critical_value(confidence: float = CONFIDENCE) -> float:
    """Two-sided quantile of the normal distribution (1.96 for 95 %).

    Raises:
        ValueError: Unless 0 < confidence < 1.
    """
    if not 0 < confidence < 1:
        raise ValueError(f"confidence={confidence}; expected a number between 0 and 1")
    return NormalDist().inv_cdf((1 + confidence) / 2)


def wilson(successes: float, n: float, confidence: float = CONFIDENCE) -> Interval:
    """Wilson score interval of a success rate (Wilson 1927), without continuity correction.

    Args:
        successes: Number of successes; may be fractional when ``n`` is an effective size.
        n: Number of trials; without any the interval is the whole range [0, 1].
        confidence: Coverage.

    Raises:
        ValueError: When the numbers are not 0 <= successes <= n.
    """
    if not 0 <= successes <= n:
        raise ValueError(f"successes={successes}, n={n}; expected 0 <= successes <= n")
    if n == 0:
        return Interval(0.0, 1.0)
    z = critical_value(confidence)
    rate = successes / n
    centre = (rate + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
    return Interval(
        0.0 if successes == 0 else max(0.0, centre - half), 1.0 if successes == n else min(1.0, centre + half)
    )


def cluster_standard_error(values: Sequence[float], clusters: Sequence[Hashable]) -> float | None:
    """Cluster-robust standard error of a mean (Liang and Zeger 1986, factor G / (G - 1)).

    With one value per cluster it is the ordinary standard error of the mean.

    Args:
        values: One number per episode.
        clusters: The task of each episode.

    Returns:
        The standard error, or None with fewer than two clusters.

    Raises:
        ValueError: When the two lengths differ.
    """
    if len(values) != len(clusters):
        raise ValueError(f"{len(values)} values but {len(clusters)} clusters")
    sums = cluster_sums(values, clusters)
    count = len(sums)
    if count < 2:
        return None
    centred = [total - size * (sum(values) / len(values)) for total, size in sums.values()]
    return math.sqrt(count / (count - 1) * math.fsum(value * value for value in centred)) / len(values)


def combine(rates: Sequence[float], intervals: Sequence[Interval], weights: Sequence[float]) -> Interval:
    """Interval of a weighted sum of independent rates from their own intervals (MOVER, Zou and Donner 2008).

    Used for the macro average: the families' limits carry over, so a family without variance still counts as
    uncertain.
    """
    estimate = math.fsum(weight * rate for weight, rate in zip(weights, rates, strict=True))
    parts = list(zip(rates, intervals, weights, strict=True))
    below = math.fsum((weight * (rate - limits.low)) ** 2 for rate, limits, weight in parts)
    above = math.fsum((weight * (limits.high - rate)) ** 2 for rate, limits, weight in parts)
    return Interval(estimate - math.sqrt(below), estimate + math.sqrt(above))


def cluster_sums(values: Sequence[float], clusters: Sequence[Hashable]) -> dict[Hashable, tuple[float, int]]:
    """Sum and number of the values of every cluster."""
    sums: dict[Hashable, tuple[float, int]] = {}
    for value, cluster in zip(values, clusters, strict=True):
        total, size = sums.get(cluster, (0.0, 0))
        sums[cluster] = (total + value, size + 1)
    return sums
