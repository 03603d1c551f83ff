"""Commands side by side: all run, none outlives a failure or an interruption, and what is shown of them can be read."""

from __future__ import annotations

import io
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from seed_trainer.errors import UserError
from seed_trainer.quickstart import board, jobs
from seed_trainer.quickstart.board import Board, Row
from seed_trainer.quickstart.jobs import Job, run_jobs


def test_jobs_run_and_a_failure_says_what_happened(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = Job("good", ("--version",), tmp_path / "good")
    run_jobs([good], 2)
    assert (tmp_path / "good" / "log.txt").read_text().strip()
    assert [line for line in capsys.readouterr().err.splitlines() if "good" in line][-1].endswith("done")
    bad = Job("bad", ("rll",), tmp_path / "bad")
    with pytest.raises(UserError, match="exit code 2; command: seed-train rll") as caught:
        run_jobs([good, bad], 2)
    assert "Did you mean 'rl'?" in str(caught.value)


def test_commands_are_shown_as_one_would_type_them(tmp_path: Path) -> None:
    assert Job("a", ("rl", "--dry_run"), tmp_path).command == "seed-train rl --dry_run"
    assert Job("a", ("--help",), tmp_path, module="json.tool").command == "python -m json.tool --help"


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Every process that jobs start: ``slow`` ones run until they are stopped, others fail with exit code 3."""
    processes: list[Any] = []
    original = jobs.subprocess.Popen

    def fake(command: list[str], **options: Any) -> Any:
        script = "import time; time.sleep(600)" if "slow" in command else "raise SystemExit(3)"
        processes.append(original([sys.executable, "-c", script], **options))
        return processes[-1]

    monkeypatch.setattr(jobs.subprocess, "Popen", fake)
    return processes


def test_a_failure_stops_the_others(tmp_path: Path, started: list[Any]) -> None:
    waiting = Job("waiting", ("slow",), tmp_path / "c")
    with pytest.raises(UserError, match="exit code 3"):
        run_jobs([Job("slow", ("slow",), tmp_path / "a"), Job("broken", ("broken",), tmp_path / "b"), waiting], 2)
    assert len(started) == 2 and all(process.poll() is not None for process in started)


def test_an_interruption_leaves_nothing_running(
    tmp_path: Path, started: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(jobs.time, "sleep", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run_jobs([Job("slow", ("slow",), tmp_path / "a"), Job("other", ("slow",), tmp_path / "b")], 2)
    assert len(started) == 2 and all(process.poll() is not None for process in started)


def test_children_have_one_thread_and_no_network() -> None:
    child = jobs.environment()
    assert (child["OMP_NUM_THREADS"], child["HF_HUB_OFFLINE"]) == ("1", "1")


def test_the_names_of_files_are_those_of_the_trainer() -> None:
    pytest.importorskip("trl", reason="packages: needs trl")
    from seed_trainer.watching import callbacks

    assert board.METRICS_FILE == callbacks.METRICS_FILE


def test_a_rate_over_nothing_is_not_shown(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_text('{"step": 2, "env/success": null}\n')
    assert "training" not in Row("SEED", tmp_path, 8, started=5.0).line(17.0)


def test_lines_show_progress_and_the_latest_rates(tmp_path: Path) -> None:
    lines = ['{"step": 2, "env/success": 0.4}', '{"step": 4, "env/success": 0.5}', '{"step": 4, "eval_success": 0.25}']
    (tmp_path / "metrics.jsonl").write_text("\n".join([*lines, '{"step": 8, "env']))
    row = Row("SEED", tmp_path, 8, started=5.0)
    assert row.line(17.0) == f"  {'SEED':<18} |{'#' * 12}{'.' * 12}| 4/8 [12 s] training 50%, panel 25%"
    row.ended = 15.0
    assert row.line(99.0).endswith("[10 s] training 50%, panel 25% done")
    assert Row("GRPO", tmp_path, 8).line(17.0) == f"  {'GRPO':<18} waiting"


class Screen(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        """Yes."""
        return True


Size = Callable[[int, int], None]


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Size:
    """Sets columns and lines of the terminal."""
    monkeypatch.setenv("TERM", "xterm")

    def resize(columns: int, lines: int) -> None:
        monkeypatch.setattr(board.shutil, "get_terminal_size", lambda: os.terminal_size((columns, lines)))

    return resize


def rows(folder: Path, count: int) -> list[Row]:
    """Rows that have begun."""
    return [Row(f"run {number}", folder, 8, started=time.monotonic()) for number in range(count)]


def test_on_a_terminal_lines_stay_in_place_and_never_wrap(tmp_path: Path, terminal: Size) -> None:
    terminal(30, 24)
    screen = Screen()
    shown = Board(rows(tmp_path, 2), screen)
    shown.draw()
    shown.draw()
    assert screen.getvalue().count("\x1b[2A") == 1 and screen.getvalue().count("\n") == 4
    assert all(len(line.rpartition("\x1b[K")[2]) < 30 for line in screen.getvalue().splitlines())


@pytest.mark.parametrize(("lines", "term"), [(3, "xterm"), (24, "dumb")])
def test_where_lines_cannot_move_they_are_plain(
    tmp_path: Path, terminal: Size, monkeypatch: pytest.MonkeyPatch, lines: int, term: str
) -> None:
    terminal(100, lines)
    monkeypatch.setenv("TERM", term)
    screen = Screen()
    Board(rows(tmp_path, 3), screen).draw()
    assert "\x1b" not in screen.getvalue() and screen.getvalue().count("\n") == 3


def test_in_a_file_every_command_begins_and_ends_with_a_line(tmp_path: Path) -> None:
    file = io.StringIO()
    commands = rows(tmp_path, 2)
    shown = Board(commands, file)
    for _ in range(3):
        shown.draw()
    commands[0].ended = time.monotonic()
    for _ in range(3):
        shown.draw()
    said = file.getvalue().splitlines()
    assert ["run 0" in line for line in said] == [True, False, True] and said[-1].endswith("done")
