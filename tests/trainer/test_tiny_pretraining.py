"""The pre-training loop: loss, optimiser, schedule, determinism, and a recipe in seconds."""

from __future__ import annotations

import dataclasses
import json
import random
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="packages: needs torch")

import torch

from seed_trainer.errors import UserError
from seed_trainer.tiny.cli import main as make_tiny
from seed_trainer.tiny.corpus import Sample
from seed_trainer.tiny.model import build_model
from seed_trainer.tiny.muon import orthogonalised
from seed_trainer.tiny.pretraining import Schedule, batches, pretrain, rate, tensors, weighted_loss
from seed_trainer.tiny.recipe import Recipe, make
from seed_trainer.tiny.sight.recipe import SightRecipe
from seed_trainer.tiny.tokenizer import build_tokenizer

TOKENIZER = build_tokenizer()


def chain(start: int, length: int) -> Sample:
    """Tokens that each decide the next one."""
    ids = [20 + (start + step) % 7 for step in range(length)]
    return Sample(ids, [step >= 2 for step in range(length)])


def test_batches_hold_every_sample_once_and_keep_to_the_budget() -> None:
    samples = [chain(number, 5 + number % 30) for number in range(100)]
    cut = batches(samples, 200, random.Random(0))
    assert sorted(id(sample) for batch in cut for sample in batch) == sorted(map(id, samples))
    assert all(len(batch) * max(len(sample.ids) for sample in batch) <= 200 for batch in cut)


def test_loss_is_the_mean_over_learned_tokens_plus_the_weighted_rest() -> None:
    model = build_model(TOKENIZER, width=32, layers=1)
    samples = [chain(0, 9), chain(3, 6)]
    loss, main = weighted_loss(model, *tensors(samples, TOKENIZER.pad_token_id), 0.3)
    learned: list[float] = []
    read: list[float] = []
    for sample in samples:
        logits = model(torch.tensor([sample.ids])).logits[0, :-1]
        nll = torch.nn.functional.cross_entropy(logits, torch.tensor(sample.ids[1:]), reduction="none")
        for value, flag in zip(nll, sample.learned[1:], strict=True):
            (learned if flag else read).append(value.item())
    mean = sum(learned) / len(learned)
    assert main == pytest.approx(mean, abs=1e-5)
    assert float(loss.detach()) == pytest.approx(mean + 0.3 * sum(read) / len(read), abs=1e-5)


@pytest.mark.parametrize("shape", [(8, 24), (24, 8), (16, 16)])
def test_orthogonalised_has_singular_values_near_one(shape: tuple[int, int]) -> None:
    matrix = torch.randn(*shape, generator=torch.Generator().manual_seed(0))
    values = torch.linalg.svdvals(orthogonalised(matrix))
    assert float(values.min()) > 0.6 and float(values.max()) < 1.3


def test_rate_rises_then_falls_to_a_twentieth() -> None:
    values = [rate(step, 100, 0.1) for step in range(100)]
    assert values[9] == pytest.approx(1.0) and values[0] == pytest.approx(0.1)
    assert values[10:] == sorted(values[10:], reverse=True)
    assert 0.05 <= values[-1] < 0.06


def test_training_learns_and_repeats_exactly() -> None:
    samples = [chain(number, 12) for number in range(60)]
    schedule = Schedule(epochs=8, batch_tokens=120, learning_rate=1e-2)
    losses, weights = [], []
    for _ in range(2):
        model = build_model(TOKENIZER, width=32, layers=1)
        losses.append(pretrain(model, [samples, samples], schedule, seed=3))
        weights.append(torch.cat([value.flatten() for value in model.parameters()]))
    assert losses[0] < 0.3  # guessing among the seven tokens costs 1.95
    assert losses[0] == losses[1] and torch.equal(weights[0], weights[1])


def test_a_small_recipe_makes_a_model_that_loads(tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    recipe = dataclasses.replace(Recipe(width=32, layers=1), schedule=Schedule(epochs=1)).scaled(0.004)
    stages: list[str] = []
    facts = make(recipe, tmp_path, lambda stage, done, total, loss: stages.append(stage))
    assert set(stages) == {"lessons", "training"} and facts["samples"] > 20
    record = json.loads((tmp_path / "recipe.json").read_text())
    assert record["facts"]["weights"] == AutoModelForCausalLM.from_pretrained(tmp_path).num_parameters()
    assert AutoTokenizer.from_pretrained(tmp_path).tokenize("go to desk 1") == ["go to", "desk 1"]


@pytest.mark.parametrize("value", [("--games", "0"), ("--epochs", "-1"), ("--batch_tokens", "0")])
def test_nothing_is_made_of_nothing(tmp_path: Path, value: tuple[str, str]) -> None:
    with pytest.raises(UserError, match="must be above 0"):
        make_tiny(["--vision", "--output_dir", str(tmp_path / "made"), *value])
    assert not (tmp_path / "made").exists()


def test_a_model_is_written_over_only_where_that_is_said(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("mine")
    with pytest.raises(UserError, match=r"is not empty; choose another --output_dir, or add --replace"):
        make_tiny(["--output_dir", str(tmp_path), "--games", "0.004"])
    assert (tmp_path / "config.json").read_text() == "mine"
    small = ["--games", "0.004", "--epochs", "0.01", "--width", "32", "--layers", "1"]
    assert make_tiny(["--output_dir", str(tmp_path), *small, "--replace"]) == 0
    assert json.loads((tmp_path / "config.json").read_text())["hidden_size"] == 32


@pytest.mark.parametrize("arguments", [["--vision", "--help"], ["--help", "--vision"]])
def test_the_help_shows_what_the_model_that_sees_is_made_of(
    capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    with pytest.raises(SystemExit, match="0"):
        make_tiny(arguments)
    shown = " ".join(capsys.readouterr().out.split())
    recipe = SightRecipe()
    assert f"--batch_tokens BATCH_TOKENS default: {recipe.schedule.batch_tokens} " in shown
    assert f"--sight_layers SIGHT_LAYERS default: {recipe.shape.sight_layers} " in shown
