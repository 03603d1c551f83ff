"""Confidence intervals of a mean over tasks, each task played once or several times.

Tasks are the independent observations, repeats only make their means less noisy. Two methods:

* :func:`bounded_interval` for successes and scores, which lie in [0, 1]. The limits are those of Gaffke (2005, "Three
  test statistics for a nonparametric one-sided hypothesis on the mean of a nonnegative variable"; see also
  Learned-Miller and Thomas 2019, arXiv:1905.06208): one more task at the worst possible value joins the observed ones,
  all get Dirichlet weights, and the limit is a quantile of the weighted mean. They need no model of how repeats agree,
  never move against a single outcome that changes, and are Clopper and Pearson's where every task mean is 0 or 1.
  What they cover is simulated by ``python -m benchmarks.coverage``.
* :func:`t_interval` for rewards and differences, whose range is not known.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from seed_envs.statistics.intervals import CONFIDENCE, Interval, cluster_standard_error, cluster_sums

Floats = NDArray[np.float64]

#: A quantile is found when it, or its probability, is known this closely.
_CLOSE = 1e-13
_TRIALS = 200


def bounded_interval(
    values: Sequence[float],
    clusters: Sequence[Hashable],
    confidence: float = CONFIDENCE,
    bounds: tuple[float, float] = (0.0, 1.0),
) -> Interval:
    """Interval of the mean of values that cannot leave their bounds.

    Args:
        values: One number per episode.
        clusters: The task of each episode.
        confidence: Coverage.
        bounds: Smallest and largest possible value.

    Returns:
        The interval; the whole range without any value.

    Raises:
        ValueError: For a value beyond its bounds, or ``confidence`` not between 0 and 1.
    """
    if not 0 < confidence < 1:
        raise ValueError(f"confidence={confidence}; expected a number between 0 and 1")
    low, high = bounds
    outside = [value for value in values if not low <= value <= high]
    if outside:
        raise ValueError(f"value {outside[0]}; expected {low} to {high}")
    if not values:
        return Interval(low, high)
    sums = cluster_sums(values, clusters).values()
    rows, counts = np.unique([(total / size, size) for total, size in sums], axis=0, return_counts=True)
    means, weights = rows[:, 0], rows[:, 1] / (len(values) / len(sums))
    tail = (1 - confidence) / 2
    return Interval(
        _quantile(tail, np.append(means, low), np.append(weights, 1.0), np.append(counts, 1)),
        _quantile(1 - tail, np.append(means, high), np.append(weights, 1.0), np.append(counts, 1)),
    )


def t_interval(
    values: Sequence[float], clusters: Sequence[Hashable], confidence: float = CONFIDENCE
) -> Interval | None:
    """Student's interval of a mean, from the error between tasks.

    Args:
        values: One number per episode.
        clusters: The task of each episode.
        confidence: Coverage.

    Returns:
        The interval, or None with fewer than two tasks or without variance: such a sample says nothing about it.
    """
    error = cluster_standard_error(values, clusters)
    if not error:
        return None
    mean = math.fsum(values) / len(values)
    half = t_quantile(confidence, len(set(clusters)) - 1) * error
    return Interval(mean - half, mean + half)


def t_quantile(confidence: float, freedom: int) -> float:
    """Two-sided quantile of Student's distribution (2.776 for 95 % and 4 degrees of freedom)."""
    angles, steps = _nodes()
    whole = float(np.sum(steps * np.cos(angles) ** (freedom - 1)))

    def share(angle: float) -> float:
        """P(|T| < sqrt(freedom) tan(angle))."""
        scale = 2 * angle / math.pi
        return float(np.sum(steps * np.cos(angles * scale) ** (freedom - 1))) * scale / whole

    low, high = 0.0, math.pi / 2
    while high - low > _CLOSE:
        middle = (low + high) / 2
        low, high = (middle, high) if share(middle) < confidence else (low, middle)
    return math.sqrt(freedom) * math.tan(low)


def weighted_mean_cdf(at: float, values: Floats, weights: Floats, counts: Floats) -> Floats:
    """P(weighted mean <= ``at``) when every task's weight is multiplied by an exponential variable of its own.

    Divided by their sum, such variables have the flat Dirichlet distribution. The mean is at most ``at`` where the sum
    of ``E w (value - at)`` is at most 0, whose probability is one integral over its characteristic function (Imhof
    1961, with exponentials for chi-squares).

    Args:
        at: The point.
        values: ``(k,)`` distinct values.
        weights: ``(k,)`` weight of a task with this value.
        counts: ``(samples, k)`` how many tasks of each sample have this value.

    Returns:
        ``(samples,)`` probabilities.
    """
    shifts = weights * (values - at)
    present = counts > 0
    scale = math.sqrt(float(np.mean(counts @ shifts**2))) or 1.0
    angles, steps = _nodes()
    points = np.outer(np.tan(angles) / scale, shifts)
    phase = counts @ np.arctan(points).T
    decay = np.exp(-0.5 * (counts @ np.log1p(points**2).T))
    inside = 0.5 - (np.sin(phase) * decay) @ (steps / (np.sin(angles) * np.cos(angles))) / math.pi
    above = np.any(present & (shifts > 0), axis=1)
    below = np.any(present & (shifts < 0), axis=1)
    return np.where(above, np.where(below, np.clip(inside, 0.0, 1.0), 0.0), 1.0)


def _quantile(level: float, values: Floats, weights: Floats, counts: Floats) -> float:
    """Where :func:`weighted_mean_cdf` reaches ``level``, by false position with halved ends (Illinois)."""

    def excess(at: float) -> float:
        return float(weighted_mean_cdf(at, values, weights, counts[None].astype(float))[0]) - level

    ends = [float(values.min()), float(values.max())]
    heights = [-level, 1 - level]
    kept = -1
    for _ in range(_TRIALS):
        if ends[1] - ends[0] <= _CLOSE:
            break
        point = (ends[0] * heights[1] - ends[1] * heights[0]) / (heights[1] - heights[0])
        height = excess(point)
        if abs(height) <= _CLOSE:
            return point
        side = int(height >= 0)
        ends[side], heights[side] = point, height
        if kept == side:
            heights[1 - side] /= 2
        kept = side
    return ends[int(level > 0.5)]


@functools.lru_cache(maxsize=1)
def _nodes() -> tuple[Floats, Floats]:
    """Gauss-Legendre nodes and weights on (0, pi / 2)."""
    nodes, weights = np.polynomial.legendre.leggauss(512)
    return (nodes + 1) * math.pi / 4, weights * math.pi / 4
