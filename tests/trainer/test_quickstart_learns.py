"""SEED and GRPO get better at the quick start's problem within five rounds, from the shipped policy and settings."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("trl", reason="packages: needs trl")

from seed_trainer.cli import main
from seed_trainer.quickstart.results import read_panels


@pytest.mark.slow
@pytest.mark.parametrize("method", ["seed", "grpo"])
def test_five_rounds_raise_success_on_unseen_goals(tmp_path: Path, method: str) -> None:
    sizes = ["--rounds", "5", "--eval_tasks", "60", "--eval_rounds", "5", "--seed", "0"]
    command = ["rl", "--config", "quickstart", "--method", method, *sizes, "--output_dir", str(tmp_path / method)]
    assert main(command) == 0
    (first, before), (last, after) = read_panels(tmp_path / method)
    assert (first, last) == (0, 20) and before.played == after.played == 60
    assert before.success is not None and after.success is not None
    assert before.success < 0.2 and after.success > before.success + 0.15, (before, after)
