"""Paired comparisons against hand counts, published numbers and simulation."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from seed_benchmarks.paired import (
    compare_paired,
    detectable,
    holm,
    mcnemar_exact,
    newcombe_paired,
    sign_flip_test,
    tasks_needed,
    tasks_needed_unpaired,
)


def _pairs(both: int, only_first: int, only_second: int, neither: int) -> tuple[list[float], list[float]]:
    first = [1.0] * (both + only_first) + [0.0] * (only_second + neither)
    second = [1.0] * both + [0.0] * only_first + [1.0] * only_second + [0.0] * neither
    return first, second


@pytest.mark.parametrize(
    ("only_first", "only_second", "p"), [(0, 0, 1.0), (0, 5, 0.0625), (1, 9, 22 / 1024), (4, 4, 1.0), (10, 0, 2 / 1024)]
)
def test_mcnemar_is_the_exact_binomial(only_first: int, only_second: int, p: float) -> None:
    assert mcnemar_exact(only_first, only_second) == pytest.approx(p)


@pytest.mark.parametrize(
    ("cells", "low", "high"),
    [
        ((36, 12, 2, 0), -0.3404, -0.0569),  # Newcombe 1998 (paired data), method 10; second minus first
        ((0, 0, 0, 30), -0.1135, 0.1135),  # no success at all: the Wilson limits of 0/30
    ],
)
def test_newcombe_interval_is_the_published_one(cells: tuple[int, int, int, int], low: float, high: float) -> None:
    assert newcombe_paired(*_pairs(*cells)) == pytest.approx((low, high), abs=5e-5)


def test_newcombe_covers_as_promised() -> None:
    cells = np.random.default_rng(4).multinomial(60, [0.5, 0.05, 0.2, 0.25], size=1000)
    covered = []
    for both, only_first, only_second, neither in cells.tolist():
        low, high = newcombe_paired(*_pairs(both, only_first, only_second, neither))
        covered.append(low <= 0.15 <= high)
    assert 0.93 < np.mean(covered) < 0.99


def test_sign_flips_agree_with_a_plain_enumeration() -> None:
    values = [0.5, -0.25, 1.0, 0.75, 0.0, 0.25]
    nonzero = [value for value in values if value]
    sums = [
        abs(sum(s * v for s, v in zip(signs, nonzero, strict=True))) for signs in itertools.product([1, -1], repeat=5)
    ]
    expected = np.mean([total >= abs(sum(values)) - 1e-9 for total in sums])
    assert sign_flip_test(values)[0] == pytest.approx(expected)


def test_sampled_sign_flips_are_near_mcnemar() -> None:
    p, method = sign_flip_test([1.0] * 16 + [-1.0] * 6, resamples=50_000)
    assert p == pytest.approx(mcnemar_exact(6, 16), abs=0.01)
    assert "50,000" in method


def test_sampled_p_value_is_never_zero() -> None:
    assert sign_flip_test([1.0] * 60, resamples=1000)[0] == pytest.approx(1 / 1001)


def test_equal_runs_differ_by_nothing_but_not_with_certainty() -> None:
    first, second = _pairs(10, 0, 0, 10)
    result = compare_paired(first, second, binary=True)
    assert (result.difference, result.p_value, result.tasks_needed) == (0.0, 1.0, None)
    assert result.interval is not None
    assert result.interval.low < 0 < result.interval.high


def test_a_clear_difference_is_found() -> None:
    result = compare_paired(*_pairs(40, 5, 30, 25), binary=True)
    assert result.difference == pytest.approx(0.25)
    assert (result.only_first, result.only_second, result.tasks) == (5, 30, 100)
    assert result.p_value is not None and result.p_value < 1e-4
    assert result.interval is not None and result.interval.low > 0.1


def test_repeats_use_task_means() -> None:
    rng = np.random.default_rng(1)
    first = rng.binomial(4, 0.4, size=80) / 4
    second = np.clip(first + rng.choice([0, 0.25], size=80), 0, 1)
    result = compare_paired(first.tolist(), second.tolist(), binary=False)
    assert result.p_value is not None and result.p_value < 0.001
    assert "Student" in result.interval_method


def test_no_and_one_common_task_are_decided() -> None:
    nothing = compare_paired([], [], binary=True)
    assert (nothing.tasks, nothing.difference, nothing.p_value, nothing.interval) == (0, None, None, None)
    one = compare_paired([0.0], [1.0], binary=True)
    assert (one.difference, one.p_value, one.interval, one.tasks_needed) == (1.0, 1.0, None, None)


def test_wrong_input_is_refused() -> None:
    with pytest.raises(ValueError, match="same tasks"):
        compare_paired([1.0], [1.0, 0.0], binary=True)
    with pytest.raises(ValueError, match="neither 0 nor 1"):
        compare_paired([0.5], [1.0], binary=True)
    with pytest.raises(ValueError, match="cannot be detected"):
        tasks_needed(0.5, 0.0)


def test_power_hint_delivers_the_power_it_promises() -> None:
    n = tasks_needed(0.6, 0.1)
    assert n == 283  # (1.95996 + 0.84162)^2 * 0.36 / 0.01, rounded up
    assert detectable(0.6, n) == pytest.approx(0.1, abs=5e-4)
    rng = np.random.default_rng(2)
    samples = rng.normal(0.1, 0.6, size=(2000, n))
    detected = np.abs(samples.mean(axis=1)) > 1.96 * samples.std(axis=1, ddof=1) / np.sqrt(n)
    assert np.mean(detected) == pytest.approx(0.8, abs=0.03)


def test_unpaired_hint_is_the_textbook_number() -> None:
    assert tasks_needed_unpaired(0.5, 0.1) == 385  # (2.8016)^2 * (0.25 + 0.24) / 0.01
    assert tasks_needed_unpaired(1.0, 0.05) == 150  # against 0.95; 2.8016^2 * 0.0475 / 0.0025, rounded up


def test_corrected_p_values_are_holms():
    values = [0.01, 0.04, 0.03, 0.005]
    assert holm(values) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.9]) == [1.0, 1.0] and holm([]) == [] and holm([0.2]) == [0.2]


def test_corrected_p_values_keep_their_order_and_never_shrink():
    rng = np.random.default_rng(0)
    for _ in range(200):
        values = rng.random(rng.integers(1, 8)).tolist()
        corrected = holm(values)
        assert all(a <= b <= 1 for a, b in zip(values, corrected, strict=True))
        order = np.argsort(values)
        assert all(np.diff(np.array(corrected)[order]) >= 0)
