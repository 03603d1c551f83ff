"""The table of random and oracle scores."""

from __future__ import annotations

import pytest

from seed_envs.vision import baselines


def test_wilson_interval_of_known_counts() -> None:
    low, high = baselines.wilson(5, 10)
    assert (low, high) == (pytest.approx(0.2366, abs=1e-4), pytest.approx(0.7634, abs=1e-4))
    assert baselines.wilson(0, 100)[0] == pytest.approx(0.0)


def test_rows_name_setting_scores_and_number_of_episodes() -> None:
    row = baselines.measure("seed/EZPoints-v0", {"rules": "strict"}, repeats=1)
    assert row.startswith("| `seed/EZPoints-v0` | rules='strict' | ")
    assert row.endswith("n = 256) | 100% |")
    assert baselines.measure("seed/Sokoban-v0", {}, repeats=1) == baselines.measure("seed/Sokoban-v0", {}, repeats=1)
