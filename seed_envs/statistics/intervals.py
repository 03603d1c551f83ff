"""Confidence intervals: of a success rate, of a mean, with repeats of tasks, and of an average over families.

Pure functions of numbers, shared by training and evaluation; nothing here knows a record or a file. Decisions for the
edge cases:

* No observation: the estimate is None and the Wilson interval is the whole range [0, 1].
* One cluster: a standard error between clusters does not exist, it is None (never 0).
* All successes or all failures: the interval has positive width (Wilson), also with repeats.
* All values equal: a bootstrap would give an interval of width 0, it is None.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

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
    sums = _cluster_sums(values, clusters)
    count = len(sums)
    if count < 2:
        return None
    centred = [total - size * (sum(values) / len(values)) for total, size in sums.values()]
    return math.sqrt(count / (count - 1) * math.fsum(value * value for value in centred)) / len(values)


def effective_size(outcomes: Sequence[bool], clusters: Sequence[Hashable]) -> float:
    """How many independent trials the repeats of tasks are worth (Kish's design effect).

    Between the number of tasks (repeats of a task always agree) and the number of episodes (they are independent).
    When no variance can be estimated, because all outcomes are equal or there is one task, the cautious end counts.

    Args:
        outcomes: Success of each episode.
        clusters: The task of each episode.
    """
    n, tasks = len(outcomes), len(set(clusters))
    if n == tasks:
        return float(n)
    rate = sum(outcomes) / n
    error = cluster_standard_error([float(value) for value in outcomes], clusters)
    if error is None or rate in (0.0, 1.0):
        return float(tasks)
    if error == 0.0:
        return float(n)
    return min(float(n), max(float(tasks), rate * (1 - rate) / error**2))


def success_interval(
    outcomes: Sequence[bool], clusters: Sequence[Hashable], confidence: float = CONFIDENCE
) -> Interval:
    """Wilson interval of a success rate; with repeats on the effective size instead of the number of episodes."""
    if not outcomes:
        return wilson(0, 0, confidence)
    size = effective_size(outcomes, clusters)
    return wilson(sum(outcomes) / len(outcomes) * size, size, confidence)


def bootstrap_mean(
    values: Sequence[float],
    clusters: Sequence[Hashable],
    confidence: float = CONFIDENCE,
    resamples: int = 10_000,
    seed: int = 0,
) -> Interval | None:
    """Percentile bootstrap interval of a mean; whole tasks are resampled, with all their repeats.

    Args:
        values: One number per episode.
        clusters: The task of each episode.
        confidence: Coverage.
        resamples: Bootstrap samples.
        seed: The same seed gives the same interval.

    Returns:
        The interval, or None with fewer than two tasks or when all values are equal: a sample without variance says
        nothing about it.
    """
    sums = _cluster_sums(values, clusters)
    count = len(sums)
    if count < 2 or len(set(values)) == 1:
        return None
    totals = np.array([total for total, _ in sums.values()])
    sizes = np.array([size for _, size in sums.values()], dtype=float)
    rng = np.random.default_rng(np.random.SeedSequence(seed))
    means = np.empty(resamples)
    rows = max(1, min(resamples, 2_000_000 // count))
    for start in range(0, resamples, rows):
        picks = rng.integers(count, size=(min(rows, resamples - start), count))
        means[start : start + len(picks)] = totals[picks].sum(axis=1) / sizes[picks].sum(axis=1)
    tail = (1 - confidence) / 2
    low, high = np.quantile(means, [tail, 1 - tail])
    return Interval(float(low), float(high))


def combine(rates: Sequence[float], intervals: Sequence[Interval], weights: Sequence[float]) -> Interval:
    """Interval of a weighted sum of independent rates from their own intervals (MOVER, Zou and Donner 2008).

    Used for the macro average: the families' Wilson limits carry over, so a family without variance still counts as
    uncertain.
    """
    estimate = math.fsum(weight * rate for weight, rate in zip(weights, rates, strict=True))
    parts = list(zip(rates, intervals, weights, strict=True))
    below = math.fsum((weight * (rate - limits.low)) ** 2 for rate, limits, weight in parts)
    above = math.fsum((weight * (limits.high - rate)) ** 2 for rate, limits, weight in parts)
    return Interval(estimate - math.sqrt(below), estimate + math.sqrt(above))


def _cluster_sums(values: Sequence[float], clusters: Sequence[Hashable]) -> dict[Hashable, tuple[float, int]]:
    sums: dict[Hashable, tuple[float, int]] = {}
    for value, cluster in zip(values, clusters, strict=True):
        total, size = sums.get(cluster, (0.0, 0))
        sums[cluster] = (total + value, size + 1)
    return sums
