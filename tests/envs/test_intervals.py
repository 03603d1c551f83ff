"""Intervals against published numbers, closed forms and simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest

from seed_envs.statistics.intervals import (
    Interval,
    bootstrap_mean,
    cluster_standard_error,
    combine,
    effective_size,
    success_interval,
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


def test_effective_size_lies_between_tasks_and_episodes() -> None:
    same = [True, True, False, False]
    assert effective_size(same, ["a", "a", "b", "b"]) == 2
    mixed = [True, False, True, False]
    assert effective_size(mixed, ["a", "a", "b", "b"]) == 4


def test_repeats_without_variance_count_as_tasks() -> None:
    assert success_interval([True] * 40, [*range(10)] * 4) == wilson(10, 10)
    assert success_interval([False] * 4, ["a"] * 4) == wilson(0, 1)


def test_repeated_tasks_are_covered_as_promised() -> None:
    rng = np.random.default_rng(5)
    tasks = np.repeat(np.arange(50), 4)
    covered = []
    for _ in range(400):
        difficulty = rng.beta(0.5, 0.5, size=50)
        outcomes = rng.random(200) < difficulty[tasks]
        low, high = success_interval(outcomes.tolist(), tasks.tolist())
        covered.append(low <= 0.5 <= high)
    naive = np.mean([low <= 0.5 <= high for low, high in [wilson(100, 200)]])
    assert naive == 1.0
    assert np.mean(covered) > 0.92


def test_bootstrap_is_seeded_and_near_the_normal_interval() -> None:
    values = np.random.default_rng(0).normal(2.0, 1.0, size=400).tolist()
    interval = bootstrap_mean(values, range(400))
    assert interval == bootstrap_mean(values, range(400))
    half = 1.96 * np.std(values, ddof=1) / 20
    assert interval == pytest.approx((np.mean(values) - half, np.mean(values) + half), abs=0.02)


def test_bootstrap_resamples_tasks_not_episodes() -> None:
    wide = bootstrap_mean([0.0] * 10 + [1.0] * 10, ["a"] * 10 + ["b"] * 10)
    assert wide == (0.0, 1.0)
    assert bootstrap_mean([0.5, 0.7], ["a", "a"]) is None
    assert bootstrap_mean([], []) is None
    assert bootstrap_mean([0.3, 0.3, 0.3], ["a", "b", "c"]) is None


def test_macro_interval_of_equal_families_shrinks_with_their_number() -> None:
    limits = Interval(0.3, 0.7)
    assert combine([0.5] * 4, [limits] * 4, [0.25] * 4) == pytest.approx((0.4, 0.6))


def test_macro_interval_keeps_width_when_every_family_is_perfect() -> None:
    low, high = combine([1.0, 1.0], [wilson(5, 5)] * 2, [0.5, 0.5])
    assert low < 0.8
    assert high == 1.0
