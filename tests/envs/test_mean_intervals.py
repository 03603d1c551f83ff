"""Intervals of means over tasks: published limits, closed forms, and what must hold of any data."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from seed_envs.statistics.means import bounded_interval, t_interval, t_quantile


def _episodes(solved: int, tasks: int, repeats: int) -> tuple[list[float], list[int]]:
    """The first ``solved`` episodes succeed; all tasks once before any is repeated."""
    total = tasks * repeats
    return [1.0] * solved + [0.0] * (total - solved), [*range(tasks)] * repeats


@pytest.mark.parametrize(
    ("solved", "n", "low", "high"),
    [
        (81, 263, 0.2527, 0.3676),  # Newcombe 1998, table I, method 5 (Clopper and Pearson)
        (15, 148, 0.0578, 0.1617),
        (0, 20, 0.0, 0.1684),
        (1, 29, 0.0009, 0.1776),
    ],
)
def test_one_episode_per_task_gives_the_published_exact_limits(solved: int, n: int, low: float, high: float) -> None:
    assert bounded_interval(*_episodes(solved, n, 1)) == pytest.approx((low, high), abs=5e-5)


@pytest.mark.parametrize("tasks", [1, 2, 30, 500, 3000])
def test_limits_without_any_success_have_a_closed_form(tasks: int) -> None:
    none = bounded_interval(*_episodes(0, tasks, 1))
    assert none == pytest.approx((0.0, 1 - 0.025 ** (1 / tasks)), abs=2e-6)
    every = bounded_interval(*_episodes(tasks, tasks, 1))
    assert every == pytest.approx((0.025 ** (1 / tasks), 1.0), abs=2e-6)


def test_limits_rise_with_every_success_and_never_jump() -> None:
    solved = [*range(20), *range(170, 180), *range(340, 361)]
    limits = {count: bounded_interval(*_episodes(count, 30, 12)) for count in solved}
    for fewer, more in itertools.pairwise(solved):
        before, after = limits[fewer], limits[more]
        assert before.low < after.low or fewer == 0 == before.low
        assert before.high < after.high or more == 360
        if more == fewer + 1:
            assert max(after.low - before.low, after.high - before.high) < 0.01
    assert limits[1].high > 0.11  # one success of 360 says nothing about tasks that were not seen
    assert limits[359].low < 0.89


@pytest.mark.parametrize("repeats", [1, 3, 8])
def test_no_single_outcome_moves_a_limit_the_wrong_way(repeats: int) -> None:
    rng = np.random.default_rng(repeats)
    for rate in (0.02, 0.3):
        values = (rng.random(8 * repeats) < rate).astype(float).tolist()
        tasks = [*range(8)] * repeats
        before = bounded_interval(values, tasks)
        for place, value in enumerate(values):
            changed = [*values[:place], 1.0 - value, *values[place + 1 :]]
            after = bounded_interval(changed, tasks)
            if value == 0.0:
                assert after.low >= before.low and after.high >= before.high
            else:
                assert after.low <= before.low and after.high <= before.high


def test_order_and_names_of_tasks_do_not_matter() -> None:
    values, tasks = [0.1, 0.9, 0.4, 0.4, 1.0, 0.0], ["a", "b", "c", "a", "b", "c"]
    turned = bounded_interval(values[::-1], [name.upper() for name in tasks[::-1]])
    assert turned == pytest.approx(bounded_interval(values, tasks), abs=1e-12)


def test_repeats_that_always_agree_add_nothing_and_others_something() -> None:
    once = bounded_interval(*_episodes(4, 10, 1))
    assert bounded_interval([1.0] * 4 * 5 + [0.0] * 6 * 5, np.repeat(range(10), 5).tolist()) == pytest.approx(once)
    mixed = bounded_interval(*_episodes(20, 10, 5))
    assert mixed.high - mixed.low < once.high - once.low


def test_missing_repeats_weigh_less() -> None:
    even = bounded_interval([1.0] * 5 + [0.0] * 5, ["a"] * 5 + ["b"] * 5)
    uneven = bounded_interval([1.0] * 5 + [0.0], ["a"] * 5 + ["b"])
    assert uneven.low > even.low and uneven.high > even.high


def test_nothing_and_one_task() -> None:
    assert bounded_interval([], []) == (0.0, 1.0)
    assert bounded_interval([1.0] * 9, ["a"] * 9) == pytest.approx((0.025, 1.0))


def test_values_beyond_the_bounds_are_refused() -> None:
    with pytest.raises(ValueError, match=r"value 1\.5; expected 0\.0 to 1\.0"):
        bounded_interval([1.5], ["a"])
    assert bounded_interval([5.0], ["a"], bounds=(0.0, 10.0)).high < 10.0
    with pytest.raises(ValueError, match="between 0 and 1"):
        bounded_interval([1.0], ["a"], confidence=1.0)


@pytest.mark.parametrize(
    ("confidence", "freedom", "quantile"),
    [(0.95, 1, 12.7062), (0.95, 4, 2.7764), (0.95, 30, 2.0423), (0.99, 9, 3.2498), (0.95, 1000, 1.9623)],
)
def test_students_quantiles_are_the_tabulated_ones(confidence: float, freedom: int, quantile: float) -> None:
    assert t_quantile(confidence, freedom) == pytest.approx(quantile, abs=5e-5)


def test_students_interval_by_hand() -> None:
    # mean 2, standard deviation 1, error 1 / sqrt(3), 2 degrees of freedom: 4.3027
    half = 4.3027 / math.sqrt(3)
    assert t_interval([1.0, 2.0, 3.0], "abc") == pytest.approx((2 - half, 2 + half), abs=1e-4)
    assert t_interval([1.0, 2.0, 3.0] * 4, "abc" * 4) == pytest.approx((2 - half, 2 + half), abs=1e-4)
    assert t_interval([2.0, 2.0], "ab") is None
    assert t_interval([1.0, 2.0], "aa") is None
    assert t_interval([], "") is None
