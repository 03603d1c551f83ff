"""Two agents on the same tasks: the difference, its interval, its p-value, and how many tasks would show it.

Pure functions of per-task means. A task counts once however often it was repeated: repeats make its mean less noisy,
they are not further tasks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from seed_envs.statistics.intervals import CONFIDENCE, Interval, critical_value, wilson
from seed_envs.statistics.means import t_interval

#: Up to this many differing tasks the sign-flip test enumerates every assignment.
EXACT_LIMIT = 16


@dataclass(frozen=True)
class PairedResult:
    """The comparison of two runs on one set of tasks (second minus first).

    Attributes:
        tasks: Tasks that count.
        first: Mean of the first run.
        second: Mean of the second run.
        difference: ``second - first``.
        interval: Confidence interval of the difference, None with fewer than two tasks.
        p_value: Two-sided; None without a task.
        only_first: Tasks on which the first run is better.
        only_second: Tasks on which the second run is better.
        interval_method: How the interval was made.
        test: How the p-value was made.
        minimal_difference: Smallest true difference that this many tasks detect with the stated power, or None.
        tasks_needed: Tasks that would detect the observed difference with the stated power, or None.
    """

    tasks: int
    first: float | None
    second: float | None
    difference: float | None
    interval: Interval | None
    p_value: float | None
    only_first: int
    only_second: int
    interval_method: str
    test: str
    minimal_difference: float | None
    tasks_needed: int | None


def compare_paired(
    first: Sequence[float],
    second: Sequence[float],
    *,
    binary: bool,
    confidence: float = CONFIDENCE,
    power: float = 0.8,
    seed: int = 0,
) -> PairedResult:
    """Compare per-task means of two runs.

    Args:
        first: Mean of each task in the first run.
        second: Mean of the same tasks in the second run.
        binary: Every mean is 0 or 1 (one repeat): exact McNemar test and Newcombe's interval; otherwise a sign-flip
            permutation test and Student's interval over tasks.
        confidence: Coverage of the interval; ``1 - confidence`` is the level of the power calculation.
        power: Wanted probability of detection.
        seed: For permutations.

    Raises:
        ValueError: When the lengths differ, or ``binary`` does not fit the values.
    """
    if len(first) != len(second):
        raise ValueError(f"{len(first)} tasks against {len(second)}; a paired comparison needs the same tasks")
    if binary and not set(first) | set(second) <= {0.0, 1.0}:
        raise ValueError("binary=True, but some task means are neither 0 nor 1")
    n = len(first)
    differences = [b - a for a, b in zip(first, second, strict=True)]
    only_first, only_second = sum(d < 0 for d in differences), sum(d > 0 for d in differences)
    if n == 0:
        return PairedResult(0, None, None, None, None, None, 0, 0, "none", "none", None, None)
    if binary:
        interval: Interval | None = newcombe_paired(first, second, confidence) if n > 1 else None
        p_value, method, test = mcnemar_exact(only_first, only_second), "Newcombe, paired score", "McNemar, exact"
    else:
        interval = t_interval(differences, range(n), confidence)
        p_value, test = sign_flip_test(differences, seed=seed)
        method = "Student's t over tasks"
    spread = float(np.std(differences, ddof=1)) if n > 1 else None
    difference = math.fsum(differences) / n
    return PairedResult(
        tasks=n,
        first=math.fsum(first) / n,
        second=math.fsum(second) / n,
        difference=difference,
        interval=interval,
        p_value=p_value,
        only_first=only_first,
        only_second=only_second,
        interval_method=method,
        test=test,
        minimal_difference=detectable(spread, n, confidence, power) if spread else None,
        tasks_needed=tasks_needed(spread, difference, confidence, power) if spread and difference else None,
    )


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values corrected for their number (Holm 1979), in the given order: no more than the level errs in any of them.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    corrected, least = [0.0] * len(p_values), 0.0
    for rank, index in enumerate(order):
        least = max(least, min(1.0, (len(p_values) - rank) * p_values[index]))
        corrected[index] = least
    return corrected


def mcnemar_exact(only_first: int, only_second: int) -> float:
    """Two-sided exact McNemar test from the discordant counts; 1 when there are none."""
    n = only_first + only_second
    if n == 0:
        return 1.0
    tail = sum(math.comb(n, k) for k in range(min(only_first, only_second) + 1))
    return min(1.0, 2 * tail / 2**n)


def sign_flip_test(differences: Sequence[float], resamples: int = 100_000, seed: int = 0) -> tuple[float, str]:
    """Permutation test of a zero mean: under the null each task's difference is as likely with the other sign.

    Returns:
        The two-sided p-value and the name of the method (all sign assignments, or random ones).
    """
    values = np.array([value for value in differences if value != 0.0])
    if len(values) == 0:
        return 1.0, "sign-flip permutation, exact"
    observed = abs(values.sum()) * (1 - 1e-12)
    if len(values) <= EXACT_LIMIT:
        codes = np.arange(2 ** len(values))[:, None] >> np.arange(len(values))
        sums = ((codes & 1) * 2 - 1) @ values
        return float(np.mean(np.abs(sums) >= observed)), "sign-flip permutation, exact"
    rng = np.random.default_rng(np.random.SeedSequence(seed))
    hits, rows = 0, max(1, 4_000_000 // len(values))
    for start in range(0, resamples, rows):
        signs = rng.integers(2, size=(min(rows, resamples - start), len(values)), dtype=np.int8) * 2 - 1
        hits += int(np.sum(np.abs(signs @ values) >= observed))
    return (hits + 1) / (resamples + 1), f"sign-flip permutation, {resamples:,} samples"


def newcombe_paired(first: Sequence[float], second: Sequence[float], confidence: float = CONFIDENCE) -> Interval:
    """Interval of a difference of paired rates (Newcombe 1998, method 10): Wilson limits and the correlation.

    Args:
        first: 0 or 1 per task.
        second: 0 or 1 for the same tasks.
        confidence: Coverage.
    """
    n = len(first)
    a = sum(1 for x, y in zip(first, second, strict=True) if x and y)
    b = sum(1 for x, y in zip(first, second, strict=True) if x and not y)
    c = sum(1 for x, y in zip(first, second, strict=True) if y and not x)
    d = n - a - b - c
    rate_1, rate_2 = (a + b) / n, (a + c) / n
    low_1, high_1 = wilson(a + b, n, confidence)
    low_2, high_2 = wilson(a + c, n, confidence)
    product = (a + b) * (c + d) * (a + c) * (b + d)
    excess = float(a * d - b * c)
    if excess > 0:
        excess = max(excess - n / 2, 0.0)
    phi = excess / math.sqrt(product) if product else 0.0
    under_2, over_1 = rate_2 - low_2, high_1 - rate_1
    over_2, under_1 = high_2 - rate_2, rate_1 - low_1
    below = math.sqrt(max(0.0, under_2**2 - 2 * phi * under_2 * over_1 + over_1**2))
    above = math.sqrt(max(0.0, over_2**2 - 2 * phi * over_2 * under_1 + under_1**2))
    difference = rate_2 - rate_1
    return Interval(max(-1.0, difference - below), min(1.0, difference + above))


def detectable(spread: float, n: int, confidence: float = CONFIDENCE, power: float = 0.8) -> float:
    """Smallest true difference that ``n`` tasks detect with the given power.

    Args:
        spread: Standard deviation of the per-task difference.
        n: Number of tasks.
        confidence: One minus the two-sided level.
        power: Wanted probability of detection.
    """
    return (critical_value(confidence) + NormalDist().inv_cdf(power)) * spread / math.sqrt(n)


def tasks_needed(spread: float, difference: float, confidence: float = CONFIDENCE, power: float = 0.8) -> int:
    """Tasks needed to detect a true ``difference`` with the given power; see :func:`detectable`.

    Raises:
        ValueError: For a difference of zero, which no number of tasks shows.
    """
    if difference == 0:
        raise ValueError("difference=0 cannot be detected with any number of tasks")
    return max(2, math.ceil(((critical_value(confidence) + NormalDist().inv_cdf(power)) * spread / difference) ** 2))


def tasks_needed_unpaired(rate: float, difference: float, confidence: float = CONFIDENCE, power: float = 0.8) -> int:
    """Tasks per run to tell a success rate from one ``difference`` away when nothing is known about the pairing.

    An upper bound for a paired comparison of agents that tend to solve the same tasks.

    Args:
        rate: Success rate of the run at hand.
        difference: The difference to resolve, e.g. 0.05.
        confidence: One minus the two-sided level.
        power: Wanted probability of detection.
    """
    other = rate + difference if rate + difference <= 1 else rate - difference
    spread = math.sqrt(max(rate * (1 - rate) + other * (1 - other), 1e-12))
    return tasks_needed(spread, difference, confidence, power)
