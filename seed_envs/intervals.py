"""The interval that every success rate of this project is shown with.

Pure functions of counts, shared by training and evaluation. What repeats of a task do to an interval, and intervals of
means and differences, belong to the harness.
"""

from __future__ import annotations

import math
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
