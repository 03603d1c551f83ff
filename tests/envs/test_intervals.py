"""Intervals against published numbers, closed forms and simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest

from seed_envs.statistics.intervals import (
    Interval,
    cluster_standard_error,
    combine,
    wilson,
)


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [
        (81, 263, 0.2553, 0.3662),  # Newcombe 1998, table I
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
        (20, 20, 0.8389, 1.0),
    ],
)
def test_wilson_gives_newcombes_published_limits(successes: int, n: int, low: float, high: float) -> None:
    assert wilson(successes, n) == pytest.approx((low, high), abs=5e-5)


def test_wilson_of_nothing_is_everything() -> None:
    assert wilson(0, 0) == (0.0, 1.0)


@pytest.mark.parametrize(("successes", "n"), [(-1, 3), (4, 3)])
def test_wilson_refuses_impossible_counts(successes: int, n: int) -> None:
    with pytest.raises(ValueError, match="0 <= successes <= n"):
        wilson(successes, n)


def test_wilson_refuses_a_coverage_of_one() -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        wilson(1, 2, confidence=1.0)


def test_wilson_covers_as_promised() -> None:
    rng = np.random.default_rng(3)
    covered = [low <= 0.3 <= high for low, high in (wilson(int(k), 60) for k in rng.binomial(60, 0.3, size=4000))]
    assert 0.93 < np.mean(covered) < 0.97


def test_cluster_error_is_the_ordinary_one_without_repeats() -> None:
    values = [0.1, 0.4, 0.9, 0.2, 0.2]
    assert cluster_standard_error(values, range(5)) == pytest.approx(np.std(values, ddof=1) / math.sqrt(5))


def test_cluster_error_of_copies_is_that_of_the_tasks() -> None:
    values = [0.0, 1.0, 1.0, 0.0, 1.0]
    once = cluster_standard_error(values, range(5))
    assert cluster_standard_error(values * 4, [*range(5)] * 4) == pytest.approx(once)


def test_cluster_error_by_hand_with_unequal_repeats() -> None:
    # mean 0.5; centred sums: a: 2 - 3 * 0.5 = 0.5, b: 0 - 0.5 = -0.5; sqrt(2 / 1 * 0.5) / 4
    assert cluster_standard_error([1, 1, 0, 0], ["a", "a", "a", "b"]) == pytest.approx(math.sqrt(2 * 0.5) / 4)


def test_cluster_error_of_one_task_does_not_exist() -> None:
    assert cluster_standard_error([1.0, 0.0], ["a", "a"]) is None
    assert cluster_standard_error([], []) is None


def test_macro_interval_of_equal_families_shrinks_with_their_number() -> None:
    limits = Interval(0.3, 0.7)
    assert combine([0.5] * 4, [limits] * 4, [0.25] * 4) == pytest.approx((0.4, 0.6))


def test_macro_interval_keeps_width_when_every_family_is_perfect() -> None:
    low, high = combine([1.0, 1.0], [wilson(5, 5)] * 2, [0.5, 0.5])
    assert low < 0.8
    assert high == 1.0
