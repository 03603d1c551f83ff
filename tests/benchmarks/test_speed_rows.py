"""Speed comparisons: ratios that mean "better", tables, and comparisons that cannot run. Nothing is timed here."""

from __future__ import annotations

import json

import pytest

from seed_benchmarks.speed.rows import SpeedRow, compare_rates, measure_rate
from seed_benchmarks.speed.running import comparison_names, format_results, main, run_comparison


def test_a_ratio_above_one_is_better_whatever_the_unit():
    assert SpeedRow("steps", 200.0, 50.0, "steps/s").ratio == 4.0
    assert SpeedRow("wait", 2.0, 8.0, "ms", higher_is_better=False).ratio == 4.0
    assert SpeedRow("alone", 2.0, None, "ms").ratio is None
    assert SpeedRow("free", 0.0, 8.0, "ms", higher_is_better=False).ratio == float("inf")


def test_rates_count_the_work_that_was_done():
    calls = []

    def work():
        calls.append(1)
        return 7

    rate = measure_rate(work, seconds=0.02)
    assert rate > 0 and len(calls) >= 1
    ours, original = compare_rates(work, work, seconds=0.01, repeats=2)
    assert ours > 0 and original > 0


def test_every_comparison_has_one_entry_point():
    import importlib

    names = comparison_names()
    assert "harness" in names and "rows" not in names and "running" not in names
    for name in names:
        assert callable(importlib.import_module(f"seed_benchmarks.speed.{name}").measure)


def test_a_comparison_that_breaks_or_is_unknown_is_reported(capsys):
    result = run_comparison("not_there")
    assert result["rows"] == [] and "ModuleNotFoundError" in result["error"]
    assert main(["harnes"]) == 2
    assert "Did you mean 'harness'" in capsys.readouterr().err
    assert main(["harness", "--json", "nowhere/speed.json"]) == 2
    assert "the folder nowhere does not exist" in capsys.readouterr().err


def test_the_table_shows_rows_and_what_was_skipped():
    row = SpeedRow("steps", 1234567.0, 3.5, "steps/s", "Original 1.0", "CPU time", note="same games")
    results = [
        {"name": "a", "rows": [row.to_json()], "skipped": "", "error": ""},
        {"name": "b", "rows": [], "skipped": "run: pip install x", "error": ""},
    ]
    text = format_results(json.loads(json.dumps(results)))
    assert "1,234,567" in text and "3.5" in text and "352,733.4x" in text and "CPU time; same games" in text
    assert "- b: skipped: run: pip install x" in text


@pytest.mark.parametrize("field", ["workload", "ours", "original", "unit", "original_name", "how", "ratio", "note"])
def test_json_rows_are_complete(field):
    assert field in SpeedRow("steps", 2.0, 1.0, "steps/s").to_json()
