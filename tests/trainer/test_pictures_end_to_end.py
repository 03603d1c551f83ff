"""From pixels, end to end on the shipped model: one round of both games and a blind panel; the whole quick start."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("trl", reason="packages: needs trl")
pytest.importorskip("matplotlib", reason="packages: needs matplotlib")

import torch
from safetensors.torch import load_file

from seed_trainer.cli import main
from seed_trainer.commands.building import resolve_model
from seed_trainer.quickstart.problems import PROBLEMS
from seed_trainer.quickstart.results import read_panels

PICTURES = [name for name, problem in PROBLEMS.items() if problem.blind]
TOWER, LANGUAGE = "vision_tower", "language_model"


@pytest.mark.parametrize("problem", PICTURES)
def test_a_round_trains_both_halves_and_the_result_plays_blind(tmp_path: Path, problem: str) -> None:
    chosen = PROBLEMS[problem]
    common = ["rl", "--config", chosen.config, *chosen.arguments, "--eval_tasks", "6", "--eval_repeats", "2"]
    size = ["--rounds", "1", "--num_generations", "4", "--per_device_train_batch_size", "4"]
    run, blind = tmp_path / "run", tmp_path / "blind"
    assert main([*common, *size, "--eval_rounds", "1", "--output_dir", str(run)]) == 0
    assert [(step, panel.played) for step, panel in read_panels(run)] == [(0, 12), (4, 12)]
    before, after = (load_file(Path(folder) / "model.safetensors") for folder in (resolve_model(chosen.model), run))
    assert before.keys() == after.keys()
    for half in (TOWER, LANGUAGE):
        assert any(half in name and not torch.equal(before[name], after[name]) for name in before), half
    shuffled = ["--method", "vanilla", "--env_blind", "shuffle", "--model_name_or_path", str(run)]
    assert main([*common, *shuffled, "--output_dir", str(blind)]) == 0
    ((_, panel),) = read_panels(blind)
    assert panel.played == 12


@pytest.mark.slow
def test_rooms_are_learned_by_looking(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The table has what the same policies win before the pictures of other rooms: less, and no more than before."""
    folder = tmp_path / "demo"
    assert main(["quickstart", "--problem", "rooms", "--output_dir", str(folder), "--seeds", "1"]) == 0
    printed = capfd.readouterr()
    for row in ("before", "after RL, SEED, seed 0", "after RL, GRPO, seed 0, another task's pictures"):
        assert f"| {row} " in printed.out
    runs = {name: read_panels(folder / name)[-1][1].success for name in ("before", "seed-0", "shuffle-seed-0")}
    before, after, blind = runs.values()
    assert before is not None and after is not None and blind is not None
    assert after > before + 0.1 and blind < before, runs
