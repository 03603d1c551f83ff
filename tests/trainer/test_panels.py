"""Panels: training and evaluation take the same tasks and give the same numbers about the same episodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from seed_benchmarks.plan import build_plan
from seed_benchmarks.records import EpisodeRecord
from seed_benchmarks.summary import summarise as summarise_run
from seed_trainer.errors import UserError
from seed_trainer.settings.tasks import draw_tasks
from seed_trainer.watching.panels import summarise

IDS = [f"type{number % 6}/{number}" for number in range(140)]


@pytest.mark.parametrize("count", [1, 100, 140])
def test_trainer_and_harness_take_the_same_tasks(count: int) -> None:
    assert draw_tasks(IDS, count) == [planned.task_id for planned in build_plan(IDS, limit=count)]


def test_all_tasks_or_too_many() -> None:
    assert draw_tasks(IDS, 0) == IDS
    with pytest.raises(UserError, match="141 tasks were asked for, but the split lists 140"):
        draw_tasks(IDS, 141)


def compact(record: EpisodeRecord) -> dict[str, Any]:
    names = ("task_id", "task_type", "success", "score", "steps", "scored")
    return {
        **{name: getattr(record, name) for name in names},
        "invalid": record.invalid_actions,
        "invalid_formats": record.invalid_formats,
    }


@pytest.mark.parametrize("repeats", [1, 4])
def test_the_same_episodes_give_the_same_numbers(repeats: int) -> None:
    rng = np.random.default_rng(repeats)
    stops = ["success", "max_steps", "env_error", "context_overflow"]
    records = []
    for index, task in enumerate(IDS * repeats):
        won, stop = rng.random() < 0.4, stops[int(rng.integers(1, 4))]
        record = EpisodeRecord(index, task, index // len(IDS), 0, 1, "env", task_type=task.split("/")[0])
        record.success, record.stop_reason, record.score = bool(won), "success" if won else stop, float(rng.random())
        record.steps, record.invalid_actions = int(rng.integers(1, 9)), int(rng.integers(0, 2))
        record.invalid_formats = int(rng.integers(0, 2))
        records.append(record)
    ours, theirs = summarise([compact(record) for record in records]), summarise_run(records)
    assert ours["eval_faults"] == theirs["counts"]["failed"] > 0
    assert ours["eval_episodes"] == theirs["counts"]["scored"]
    assert ours["eval_success"] == theirs["success"]["rate"]
    assert [ours["eval_success_low"], ours["eval_success_high"]] == theirs["success"]["interval"]
    assert ours["eval_success_macro"] == theirs["macro"]["rate"]
    assert (ours["eval_score"], ours["eval_turns"]) == (theirs["score"]["mean"], theirs["steps"]["mean"])
    assert ours["eval_invalid_actions"] == theirs["steps"]["invalid_share"]
    assert ours["eval_invalid_formats"] == theirs["steps"]["invalid_format_share"]
    for family in theirs["families"]:
        assert ours[f"eval_success/{family['name']}"] == family["rate"]


def test_a_panel_of_faults_has_no_rate() -> None:
    fault = EpisodeRecord(0, "a", 0, 0, 1, "env", task_type="t", stop_reason="timeout", steps=3)
    metrics = summarise([compact(fault)] * 4)
    counts = {"eval_episodes": 0.0, "eval_faults": 4.0}
    assert {name: value for name, value in metrics.items() if value is not None} == counts
