"""Teachers with weights of their own: the initial policy and a moving average."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, TrainerCallback
from trl.trainer.utils import split_tensor_dict
from word_world import WORDS

from seed_trainer.learning.losses import jsd_BT
from seed_trainer.learning.scores import loss_mask
from seed_trainer.learning.teacher import completion_logits, student_inputs, teacher_inputs
from seed_trainer.settings.options import SEEDOptions
from seed_trainer.trainer import SEEDTrainer

TrainerFactory = Callable[..., SEEDTrainer]
SKILL_OPTIONS: dict[str, Any] = {"skill_source": "generic", "opd_coef": 0.5, "tasks": 16}


def parameters(model: Any) -> torch.Tensor:
    return torch.cat([p.detach().flatten().clone() for p in model.parameters()])


def micro_batch(trainer: SEEDTrainer) -> dict[str, Any]:
    trainer.model.train()
    trainer.current_gradient_accumulation_steps = 1
    batch = trainer._generate_and_score_completions([{"task_id": word} for word in WORDS for _ in range(4)])
    parts: list[dict[str, Any]] = split_tensor_dict(batch, trainer.args.steps_per_generation)
    trainer._count(parts)
    return parts[0]


class Record(TrainerCallback):
    """The parameters before the first and after every optimiser step."""

    def __init__(self) -> None:
        self.seen: list[torch.Tensor] = []

    def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, **kwargs: Any) -> None:
        self.seen.append(parameters(model))

    on_step_end = on_train_begin


def test_initial_teacher_scores_as_the_model_did_before_training(make_trainer: TrainerFactory, model_path: str) -> None:
    trainer = make_trainer(teacher_policy="initial", **SKILL_OPTIONS)
    trainer.train()
    trained = parameters(trainer.model)
    micro = micro_batch(trainer)
    untrained = AutoModelForCausalLM.from_pretrained(model_path)
    assert not torch.equal(trained, parameters(untrained))
    mask = loss_mask(micro).bool()
    taught = trainer.scorer.teacher(trainer.model, micro)
    with torch.no_grad():
        logits = completion_logits(untrained, teacher_inputs(micro), 1.0)
    expected = logits.log_softmax(-1).gather(-1, micro["completion_ids"][..., None])[..., 0]
    current = trainer.scorer.logps(trainer.model, teacher_inputs(micro))
    torch.testing.assert_close(taught[mask], expected[mask], atol=1e-6, rtol=0)
    assert (taught - current)[mask].abs().max() > 1e-3
    assert torch.equal(parameters(trainer.model), trained)


def test_averaged_teacher_follows_every_optimiser_step(make_trainer: TrainerFactory) -> None:
    trainer, record = make_trainer(teacher_policy="ema", teacher_ema_decay=0.6, **SKILL_OPTIONS), Record()
    trainer.add_callback(record)
    trainer.train()
    assert len(record.seen) == 5
    average = record.seen[0]
    for seen in record.seen[1:]:
        average = 0.6 * average + 0.4 * seen
    with trainer.teacher_weights.lent(trainer.model):
        torch.testing.assert_close(parameters(trainer.model), average, atol=1e-6, rtol=0)
    assert torch.equal(parameters(trainer.model), record.seen[-1])


@pytest.mark.parametrize(
    "batches",
    [
        {"num_iterations": 2},
        {"gradient_accumulation_steps": 2, "num_iterations": 2},
        {"gradient_accumulation_steps": 4},
    ],
    ids=["two epochs", "two epochs, accumulated", "two rounds a step"],
)
@pytest.mark.parametrize("policy", ["snapshot", "live"])
def test_what_the_teacher_is_in_every_mini_batch_of_a_round(
    make_trainer: TrainerFactory, policy: str, batches: dict[str, Any]
) -> None:
    """A snapshot scores with the weights the round began with, a live teacher with those of the mini-batch."""
    trainer = make_trainer(teacher_policy=policy, **SKILL_OPTIONS, **batches)
    at_start: dict[int, torch.Tensor] = {}
    moved: list[bool] = []
    score, loss = trainer._score, trainer._compute_loss

    def begin(block: Any) -> dict[str, Any]:
        at_start[trainer.round_index] = parameters(trainer.model)
        return score(block)

    def check(model: Any, inputs: dict[str, Any]) -> torch.Tensor:
        result = loss(model, inputs)
        now = parameters(trainer.model)
        start = at_start[trainer.round_index]
        moved.append(not torch.equal(now, start))
        torch.nn.utils.vector_to_parameters(start if policy == "snapshot" else now, trainer.model.parameters())
        expected = trainer.scorer.logps(trainer.model, teacher_inputs(inputs))
        torch.nn.utils.vector_to_parameters(now, trainer.model.parameters())
        mask = loss_mask(inputs).bool()
        torch.testing.assert_close(trainer.scorer.teacher(model, inputs)[mask], expected[mask], atol=1e-5, rtol=0)
        return result

    trainer._score, trainer._compute_loss = begin, check  # type: ignore[method-assign]
    trainer.train()
    assert sorted(at_start) == [0, 1]
    assert any(moved) == (trainer.args.steps_per_round > 1), "several optimiser steps make the two differ"


@pytest.mark.parametrize("policy", ["initial", "ema", "snapshot"])
def test_resumed_run_has_the_same_teacher(make_trainer: TrainerFactory, tmp_path: Path, policy: str) -> None:
    options = {"rounds": 4, "save_strategy": "steps", "save_rounds": 2, "teacher_policy": policy, **SKILL_OPTIONS}
    if policy == "snapshot":  # and the memory of older skills, which is state of a run, too
        options |= {"skill_source": "stale_text(1)"}
    whole = make_trainer(output_dir=str(tmp_path / "whole"), **options)
    whole.train()
    make_trainer(output_dir=str(tmp_path / "parts"), **{**options, "max_steps": 4}).train()
    second = make_trainer(output_dir=str(tmp_path / "parts"), **options)
    second.train(resume_from_checkpoint=str(tmp_path / "parts" / "checkpoint-4"))
    torch.testing.assert_close(parameters(second.model), parameters(whole.model), atol=0, rtol=0)
    for name, tensor in whole.teacher_weights.values.items():
        assert torch.equal(second.teacher_weights.values[name], tensor)


@pytest.mark.parametrize("policy", ["initial", "ema"])
def test_adapters_share_their_base_with_the_teacher(make_trainer: TrainerFactory, policy: str) -> None:
    from peft import LoraConfig

    lora = LoraConfig(r=2, target_modules=["q_proj"], lora_dropout=0.05)
    trainer = make_trainer(teacher_policy=policy, teacher_ema_decay=0.5, peft_config=lora, **SKILL_OPTIONS)
    trainer.train()
    assert trainer.teacher_weights.values and all("lora" in name for name in trainer.teacher_weights.values)
    trained = parameters(trainer.model)
    micro = micro_batch(trainer)
    mask = loss_mask(micro).bool()
    live = trainer.scorer.logps(trainer.model, teacher_inputs(micro))
    assert (trainer.scorer.teacher(trainer.model, micro) - live)[mask].abs().max() > 1e-6
    assert torch.equal(parameters(trainer.model), trained)


def test_a_checkpoint_without_the_teacher_is_refused(make_trainer: TrainerFactory, tmp_path: Path) -> None:
    options = {"save_strategy": "steps", "save_rounds": 1, **SKILL_OPTIONS}
    make_trainer(**options).train()
    other = make_trainer(**options, teacher_policy="initial", resume_anyway=True)
    with pytest.raises(ValueError, match="was saved without a teacher of its own; teacher_policy=initial"):
        other.train(resume_from_checkpoint=str(tmp_path / "run" / "checkpoint-2"))


def test_divergence_to_the_initial_teacher_reaches_the_student_alone(
    make_trainer: TrainerFactory, model_path: str
) -> None:
    """Loss and gradient equal those with a second model as teacher, though both use the same parameters."""
    options = {**SKILL_OPTIONS, "opd_term": "jsd", "opd_coef": 1.0, "rl_coef": 0.0, "beta": 0.0}
    trainer = make_trainer(teacher_policy="initial", **options)
    trainer.train()
    micro = micro_batch(trainer)
    trainer.model.zero_grad()
    trainer._compute_loss(trainer.model, micro).backward()
    found = torch.cat([p.grad.flatten() for p in trainer.model.parameters() if p.grad is not None])
    untrained = AutoModelForCausalLM.from_pretrained(model_path)
    with torch.no_grad():
        teacher = completion_logits(untrained, teacher_inputs(micro), 1.0)
    trainer.model.zero_grad()
    term = jsd_BT(completion_logits(trainer.model, student_inputs(micro), 1.0), teacher)
    trainer.teaching.aggregate(term, loss_mask(micro) * micro["opd_mask"][:, None], micro).backward()
    expected = torch.cat([p.grad.flatten() for p in trainer.model.parameters() if p.grad is not None])
    assert expected.abs().max() > 1e-4
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize("decay", [1.0, -0.1])
def test_an_average_that_never_moves_or_overshoots_is_refused(decay: float) -> None:
    with pytest.raises(ValueError, match=f"teacher_ema_decay={decay} must be at least 0 and below 1"):
        SEEDOptions(teacher_ema_decay=decay).check_options()
