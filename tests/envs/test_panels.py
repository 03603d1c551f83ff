"""Which tasks are played when not all are: fixed, mixed, nested samples, and exact shares."""

from __future__ import annotations

import pytest

from seed_envs.errors import UnknownOption
from seed_envs.statistics.panels import choose_tasks, count_of

IDS = [f"{family}/{number}" for family in ("clean", "cool", "heat") for number in range(40)]


def test_a_limit_is_a_fixed_mixed_nested_sample_in_listed_order():
    ten, thirty = choose_tasks(IDS, 10), choose_tasks(IDS, 30)
    assert set(ten) < set(thirty)
    assert thirty == [task_id for task_id in IDS if task_id in set(thirty)]
    assert {task_id.split("/")[0] for task_id in ten} == {"clean", "cool", "heat"}
    assert choose_tasks(list(reversed(IDS)), 10) == list(reversed(ten))
    assert len(choose_tasks(IDS, 0.1)) == 12
    assert len(choose_tasks(IDS, 0.001)) == 1
    assert choose_tasks(IDS, 1000) == IDS
    with pytest.raises(UnknownOption, match="limit=1.5"):
        choose_tasks(IDS, 1.5)


@pytest.mark.parametrize("hundredths", range(1, 100))
def test_a_share_is_the_decimal_that_was_written(hundredths):
    """0.07 * 100 and 0.29 * 100 are a little more than 7 and 29 in binary."""
    assert count_of(float(f"0.{hundredths:02}"), 100) == hundredths
    assert count_of(float(f"0.{hundredths:02}"), 300) == 3 * hundredths


@pytest.mark.parametrize(
    ("limit", "total", "count"), [(7, 3, 7), (7.0, 3, 7), (1e-5, 10, 1), (0.999, 10, 10), (0.5, 3, 2)]
)
def test_counts_stay_and_shares_are_rounded_up(limit, total, count):
    assert count_of(limit, total) == count


@pytest.mark.parametrize("limit", [1.5, -0.5, -2.25])
def test_what_is_neither_is_explained(limit):
    with pytest.raises(UnknownOption, match="share below 1"):
        count_of(limit, 10)
