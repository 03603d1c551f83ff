"""The quick start as a command: its folder, what it refuses, how it is interrupted, and how light it is."""

from __future__ import annotations

import importlib.util
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from seed_envs.command_line import INTERRUPTED
from seed_trainer.cli import main
from seed_trainer.errors import UserError
from seed_trainer.quickstart import stages
from seed_trainer.quickstart.cli import MARKER, PACKAGES, prepare


def test_a_foreign_folder_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("x")
    with pytest.raises(UserError, match="not made by this command"):
        prepare(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_an_earlier_demonstration_is_replaced_and_nothing_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "runs" / "demo"
    prepare(folder)
    assert "replaced" not in capsys.readouterr().err
    old = ("before/log.txt", "stage1/model.safetensors", "seed-0/metrics.jsonl", "grpo-11/x", "results.md")
    mine = ("notes.md", "seed-data/x", "plots/a.png")
    for name in (*old, *mine):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("x")
    prepare(folder)
    assert "holds an earlier quick start" in capsys.readouterr().err
    assert not any((folder / name).exists() for name in old)
    assert all((folder / name).exists() for name in (*mine, MARKER))


def test_a_folder_that_cannot_be_made_is_one_clear_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("x")
    for folder in (tmp_path / "file", tmp_path / "file" / "deeper"):
        assert main(["quickstart", "--output_dir", str(folder)]) == 2
        said = capsys.readouterr().err.strip()
        assert "\n" not in said and f"--output_dir {folder} cannot be written to" in said


@pytest.mark.parametrize("package", PACKAGES)
def test_a_missing_package_is_one_line_before_anything_is_made(
    package: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name, *rest: None if name == package else real(name, *rest))
    assert main(["quickstart", "--output_dir", str(tmp_path / "x")]) == 2
    said = capsys.readouterr().err.strip()
    assert "\n" not in said and f"package '{package}'" in said and "pip install 'seed-envs[train]'" in said
    assert not (tmp_path / "x").exists()


def test_sizes_below_one_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["quickstart", "--output_dir", str(tmp_path / "x"), "--seeds", "0"]) == 2
    assert "--seeds 0: expected at least 1" in capsys.readouterr().err


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Ctrl-C raises ``KeyboardInterrupt``, also where the tests were started in the background, which ignores it."""
    earlier = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, earlier)


@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize("request_to_end", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_says_what_it_left(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    request_to_end: signal.Signals,
) -> None:
    earlier = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(stages, "run_jobs", lambda jobs, workers: signal.raise_signal(request_to_end))
    assert main(["quickstart", "--output_dir", str(tmp_path / "x")]) == INTERRUPTED
    said = capsys.readouterr()
    assert "nothing is left running. The same command starts anew" in said.err and "minutes" not in said.out
    assert signal.getsignal(signal.SIGTERM) is earlier


def test_the_watching_process_loads_nothing_heavy() -> None:
    names = "cli, stages, jobs, board, results, transcripts, attempts"
    script = (
        f"import sys; from seed_trainer.quickstart import {names}; from seed_trainer.commands import report; "
        "[stages.steps_per_round(problem) for problem in stages.PROBLEMS.values()]; "
        "print(sorted({'torch', 'transformers', 'trl', 'matplotlib'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
