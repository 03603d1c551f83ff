"""Line files of runs: what a fresh and a resumed run keep, also of a file that an interruption left torn."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from seed_envs.journal import Journal
from seed_trainer.watching.linelog import LineLog


def steps(path: Path) -> list[int]:
    return [json.loads(line)["step"] for line in path.read_text().splitlines()]


def test_a_fresh_run_replaces_and_a_resumed_run_keeps_what_it_has_seen(tmp_path: Path) -> None:
    path = tmp_path / "run" / "metrics.jsonl"
    for _ in range(2):
        log = LineLog(path)
        for step in (1, 2, 3):
            log.append(step, {"loss": 0.5})
        assert steps(path) == [1, 2, 3]
    resumed = LineLog(path)
    resumed.begin(2)
    assert steps(path) == [1, 2]
    resumed.append(3, {"loss": 0.4})
    assert steps(path) == [1, 2, 3]


@pytest.mark.parametrize("torn", ['{"step": 3, "lo', "{", '[3]\n{"loss": 1}', "\udcff"])
def test_a_torn_line_does_not_stop_a_run_from_resuming(tmp_path: Path, torn: str) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(b'{"step": 1}\n{"step": 2}\n' + torn.encode(errors="surrogateescape"))
    log = LineLog(path)
    log.begin(2)
    log.append(3, {})
    assert steps(path) == [1, 2, 3]


def test_what_was_written_before_training_begins_stays(tmp_path: Path) -> None:
    """An evaluation before the first step belongs to the run."""
    log = LineLog(tmp_path / "evaluations.jsonl")
    log.append(0, {})
    log.begin(0)
    log.append(2, {})
    assert steps(log.path) == [0, 2]


def test_other_writers_wait_for_nobody_and_a_killed_start_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = LineLog(tmp_path / "metrics.jsonl")
    log.path.with_name("metrics.jsonl.new").write_text('{"step": 0, "note": "of a start that was killed"}\n')
    log.append(1, {})
    assert steps(log.path) == [1]
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    with Journal(log.path) as held:
        log.append(2, {})
        LineLog(log.path).begin(2, log.path.stat().st_size)
        assert not synced, "no line waits for the disk"
        assert log.length() == held.path.stat().st_size
        assert len(synced) == 1, "what a checkpoint counts is on the disk"
    assert steps(log.path) == [1, 2]


def test_a_resumed_run_goes_on_at_the_byte_it_had_reached(tmp_path: Path) -> None:
    path = tmp_path / "runs" / "first" / "metrics.jsonl"
    log = LineLog(path)
    assert log.length() == 0
    log.append(1, {"note": "é"})
    reached = log.length()
    assert reached == path.stat().st_size > 0
    log.append(2, {"note": "repeated later"})
    resumed = LineLog(path)
    resumed.begin(1, reached)
    assert steps(path) == [1] and resumed.length() == reached
    torn = LineLog(path)
    torn.begin(1, reached - 1)
    assert path.stat().st_size == reached, "the line feed that was cut off is set again"
    torn.append(2, {"note": "after"})
    assert steps(path) == [1, 2]
