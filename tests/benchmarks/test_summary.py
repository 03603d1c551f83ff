"""Summaries by hand: averages, faults, families, repeats, and runs with nothing in them."""

from __future__ import annotations

import json

import pytest

from seed_benchmarks.fields import find_fault
from seed_benchmarks.markdown import summary_markdown
from seed_benchmarks.records import EpisodeRecord, encode_line, latest
from seed_benchmarks.summary import summarise
from seed_envs.tables import table, with_interval


def record(index, family="a", success=True, repeat=0, stop="success", **fields):
    stop = stop if success or stop != "success" else "max_steps"
    error = {"type": "RuntimeError", "message": "x", "traceback": ""} if stop == "env_error" else None
    values = {"task_type": family, "success": success, "score": float(success), "stop_reason": stop, "steps": 4}
    return EpisodeRecord(index, f"{family}/{index}", repeat, 0, 1, "env", error=error, **{**values, **fields})


def test_micro_and_macro_differ_where_families_differ_in_size():
    records = [record(n, "big", n < 2) for n in range(8)] + [record(8, "small", True), record(9, "small", True)]
    numbers = summarise(records)
    assert numbers["success"]["rate"] == pytest.approx(0.4)
    assert numbers["macro"]["rate"] == pytest.approx((0.25 + 1.0) / 2)
    assert "micro" in numbers["success"]["average"] and "macro" in numbers["macro"]["average"]
    assert [(row["name"], row["n"], row["solved"]) for row in numbers["families"]] == [("big", 8, 2), ("small", 2, 2)]
    assert numbers["success"]["interval"] == pytest.approx([0.1216, 0.7376], abs=1e-4)
    low, high = numbers["macro"]["interval"]
    # 2/8 is [.0319, .6509], 2/2 is [.1581, 1]; half the root of the squared distances on either side
    assert (low, high) == pytest.approx((0.1902, 0.8254), abs=1e-4)


def test_faults_enter_no_average_and_are_counted_by_type():
    records = [
        record(0),
        record(1),
        record(2, success=False, stop="env_error"),
        record(3, success=False, stop="timeout"),
    ]
    numbers = summarise(records, planned=6)
    assert numbers["counts"] == {"planned": 6, "scored": 2, "failed": 2, "missing": 2, "tasks": 2}
    assert numbers["success"]["rate"] == 1.0
    assert numbers["success"]["rate_if_errors_fail"] == 0.5
    assert numbers["errors"] == {"?": 1, "RuntimeError": 1}
    assert not numbers["complete"]


def test_a_context_overflow_is_the_agents_failure():
    numbers = summarise([record(0), record(1, success=False, stop="context_overflow")])
    assert numbers["complete"] and numbers["success"]["rate"] == 0.5


def test_repeats_widen_the_interval_and_are_summed_up():
    agree = [record(n, success=n < 5, repeat=r) for n in range(10) for r in range(4)]
    numbers = summarise(agree)
    assert numbers["success"]["n"] == 40
    wide = numbers["success"]["interval"]
    assert wide == pytest.approx([0.1871, 0.8129], abs=1e-4)  # that of 5 of 10
    assert numbers["repeats"] == {"per_task": 4, "tasks": 10, "solved_once": 0.5, "solved_always": 0.5}
    mixed = summarise([record(n, success=(n + r) % 2 == 0, repeat=r) for n in range(10) for r in range(4)])
    assert mixed["repeats"]["solved_once"] == 1.0 and mixed["repeats"]["solved_always"] == 0.0
    narrow = mixed["success"]["interval"]
    assert wide[0] < narrow[0] < 0.5 < narrow[1] < wide[1]


def test_scores_between_0_and_1_get_an_interval_within_them():
    numbers = summarise([record(n, success=False, score=n / 20) for n in range(20)])["score"]
    assert numbers["mean"] == pytest.approx(0.475)
    assert numbers["interval"][0] < 0.475 < numbers["interval"][1]
    assert "Gaffke" in numbers["method"]


def test_nothing_played_gives_no_numbers_instead_of_zeros():
    numbers = summarise([], planned=5)
    for part, key in (("success", "rate"), ("macro", "rate"), ("score", "mean"), ("steps", "mean")):
        assert numbers[part][key] is None
    assert numbers["success"]["interval"] is None and numbers["power"]["tasks_needed"] == {}
    json.dumps(numbers, allow_nan=False)
    page = summary_markdown({**numbers, "suite": "s", "agent": "a"})
    assert "0 of 5 episodes scored" in page and "%" not in page.replace("95 %", "")


def test_the_power_hint_asks_for_more_tasks_for_smaller_differences():
    needed = summarise([record(n, success=n % 2 == 0) for n in range(100)])["power"]["tasks_needed"]
    assert needed["0.1"] == 385 and needed["0.02"] > needed["0.05"] > needed["0.1"]


def test_a_scored_record_is_never_replaced():
    good, bad = record(0), record(0, success=False, stop="env_error")
    assert latest([bad, good]) == {good.key: good}
    assert latest([good, bad]) == {good.key: good}
    again = record(0, success=False, stop="timeout")
    assert latest([bad, again]) == {bad.key: again}


def test_lines_are_strict_ascii_json_whatever_is_in_them():
    import numpy as np

    extras = {"n": np.float32(0.5), "nan": float("nan"), "thing": object(), 3: (1, 2), "text": "\ud800 \u2028 \n"}
    line = encode_line(record(0), {"steps": [], "final_observation": "", "extras": extras})
    assert line.isascii() and b"\n" not in line
    found = json.loads(line, parse_constant=lambda name: pytest.fail(name))["transcript"]["extras"]
    assert found == {"n": 0.5, "nan": None, "thing": "<object>", "3": [1, 2], "text": "\ud800 \u2028 \n"}


def test_tables_align_numbers_right_and_survive_bars():
    text = table(["a", "b"], [["x|y", "1"], ["z", "22"]])
    assert text.splitlines() == ["| a    |  b |", "| ---- | -: |", "| x\\|y |  1 |", "| z    | 22 |"]
    assert with_interval(None, None) == "-"
    assert with_interval(0.5, None) == "50.0 % [-]"


def test_the_summary_says_what_tasks_are_made_of_and_warns_of_a_small_split():
    card = {
        "kind": "real",
        "files": {"goals.json": "ab" * 32},
        "split": "test",
        "goals": "human",
        "skipped": {"odd": 3},
    }
    few = [record(i, data={**card, "split_size": 1}) for i in range(3)]
    summary = summarise(few)
    assert summary["data"]["cards"] == [{**card, "split_size": 1, "episodes": 3}]
    text = summary_markdown({**summary, "suite": "s", "agent": "a", "attempts": []})
    assert "- tasks: real data; human goals; split test of 1 tasks; goals.json abababababab; left out: odd: 3" in text
    assert "- warning: split 'test' has 1 task(s) in all" in text
    many = summarise([record(i, data={**card, "split_size": 500}) for i in range(3)])
    assert many["data"]["warning"] == "" and summarise([record(0)])["data"] == {"cards": [], "warning": ""}


def test_success_is_given_by_optimal_length_where_it_is_known():
    lengths = {1: True, 5: True, 6: False, 10: True, 11: False, 23: False}
    records = [record(n, success=won, optimal_steps=steps) for n, (steps, won) in enumerate(lengths.items())]
    numbers = summarise([*records, record(9), record(10, success=False, stop="env_error", optimal_steps=2)])
    rows = [(row["name"], row["n"], row["solved"]) for row in numbers["lengths"]]
    assert rows == [("1-5", 2, 2), ("6-10", 2, 1), ("11-15", 1, 0), ("21-25", 1, 0)]
    assert "optimal length" in summary_markdown({**numbers, "suite": "s", "agent": "a", "attempts": []})
    assert summarise([record(0)])["lengths"] == []


def test_groups_and_measures_of_the_environment_are_reported():
    found = {0: 1.0, 1: 0.5, 2: 0.25, 3: 0.75}
    records = [record(n, success=n < 2, by={"hops": 1 + n // 2}, measures={"recall": r}) for n, r in found.items()]
    numbers = summarise([*records, record(4), record(5, stop="env_error", by={"hops": 9}, measures={"recall": 0.0})])
    rows = [(row["name"], row["n"], row["rate"], row["measures"]) for row in numbers["by"]["hops"]]
    assert rows == [("1", 2, 1.0, {"recall": 0.75}), ("2", 2, 0.0, {"recall": 0.5})]
    assert numbers["measures"]["recall"]["mean"] == 0.625 and numbers["measures"]["recall"]["n"] == 4
    text = summary_markdown({**numbers, "suite": "s", "agent": "a", "attempts": []})
    assert "| recall, micro" in text and "| hops | tasks" in text and " recall |\n| -" in text
    nothing = summarise([record(0)])
    assert nothing["by"] == {} and nothing["measures"] == {}


@pytest.mark.parametrize(
    ("field", "value"), [("by", {"hops": 1.5}), ("by", [2]), ("measures", {"recall": 2}), ("measures", {"recall": "x"})]
)
def test_groups_and_measures_are_checked_when_read(field, value):
    assert find_fault({field: value}).startswith(f"{field}: ")
    assert find_fault({"by": {"hops": 2, "set": "nq"}, "measures": {"recall": 0.5}}) == ""
