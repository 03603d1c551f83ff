"""The whole quick start on the shipped model, as small as it gets: every command, table, transcript and picture."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("trl", reason="packages: needs trl")
pytest.importorskip("matplotlib", reason="packages: needs matplotlib")

from seed_trainer.cli import main


@pytest.mark.slow
def test_quick_start_runs_and_shows_what_it_measured(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "demo"
    sizes = ["--seeds", "1", "--rounds", "1", "--eval_tasks", "6", "--sft_tasks", "2", "--workers", "2"]
    assert main(["quickstart", "--output_dir", str(folder), *sizes]) == 0
    printed = capfd.readouterr()
    for row in ("before", "after stage 1", "after RL, SEED, seed 0", "after RL, GRPO, all seeds"):
        assert f"| {row} " in printed.out
    assert (
        "One seed is a demonstration and no evidence" in printed.out
        and "skill: " in printed.out
        and "after SEED: compact/test/" in printed.out
    )
    for name in ("report.html", "curves.png", "results.md", "transcript.txt"):
        assert str(folder / name) in printed.out and (folder / name).stat().st_size > 0
    assert "4/4 " in printed.err and "seed-train sft" in printed.err
    assert "Loading weights" not in printed.err + printed.out and "Warning" not in printed.err
    steps = [json.loads(line)["step"] for line in (folder / "seed-0" / "evaluations.jsonl").read_text().splitlines()]
    assert steps == [0, 4]
