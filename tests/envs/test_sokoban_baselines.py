"""The table of random and oracle scores."""

from __future__ import annotations

from seed_envs.vision import baselines


def test_rows_name_setting_scores_and_number_of_episodes() -> None:
    row = baselines.measure("seed/EZPoints-v0", {"rules": "strict"}, repeats=1)
    assert row.startswith("| `seed/EZPoints-v0` | rules='strict' | ")
    assert row.endswith("n = 256) | 100% |")
    assert baselines.measure("seed/Sokoban-v0", {}, repeats=1) == baselines.measure("seed/Sokoban-v0", {}, repeats=1)
