"""Commands side by side: both run, a failing one stops the others and shows its own words."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from seed_trainer.cli import UserError
from seed_trainer.quickstart import jobs
from seed_trainer.quickstart.jobs import Job, read_metrics, run_jobs


def test_jobs_run_and_a_failure_says_what_happened(tmp_path: Path) -> None:
    good = Job("good", ("--version",), tmp_path / "good")
    assert set(run_jobs([good], 2)) == {"good"}
    assert (tmp_path / "good" / "log.txt").read_text().strip()
    bad = Job("bad", ("rll",), tmp_path / "bad")
    with pytest.raises(UserError, match="exit code 2") as caught:
        run_jobs([good, bad], 2)
    assert "Did you mean 'rl'?" in str(caught.value)


def test_a_failure_stops_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = []
    original = jobs.subprocess.Popen

    def fake(command: list[str], **options: object) -> object:
        script = "import time; time.sleep(60)" if "slow" in command else "raise SystemExit(3)"
        process = original([sys.executable, "-c", script], **options)  # type: ignore[call-overload]
        started.append(process)
        return process

    monkeypatch.setattr(jobs.subprocess, "Popen", fake)
    began = time.monotonic()
    with pytest.raises(UserError, match="exit code 3"):
        run_jobs([Job("slow", ("slow",), tmp_path / "a"), Job("broken", ("broken",), tmp_path / "b")], 2)
    assert time.monotonic() - began < 30
    assert all(process.poll() is not None for process in started)


def test_metrics_being_written_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_text('{"step": 4, "env/success": 0.5}\n{"step": 8, "env')
    assert [line["step"] for line in read_metrics(tmp_path)] == [4]


def test_children_have_one_thread_and_no_network() -> None:
    child = jobs.environment()
    assert (child["OMP_NUM_THREADS"], child["HF_HUB_OFFLINE"]) == ("1", "1")


def test_the_names_of_files_are_those_of_the_trainer() -> None:
    pytest.importorskip("trl")
    from seed_trainer import callbacks, evaluation
    from seed_trainer.quickstart import results

    assert jobs.METRICS_FILE == callbacks.METRICS_FILE
    assert results.EVALUATIONS_FILE == evaluation.EVALUATIONS_FILE


def test_lines_show_progress_and_the_latest_rates(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_text('{"step": 4, "env/success": 0.5}\n{"step": 4, "eval_success": 0.25}\n')
    state = jobs._State(Job("SEED", (), tmp_path, 8), seconds=12.0)
    assert state.line() == f"  {'SEED':<18} |{'#' * 12}{'.' * 12}| 4/8 [12 s] training 50%, panel 25% done"
    assert "waiting" in jobs._State(Job("GRPO", (), tmp_path, 8)).line()
