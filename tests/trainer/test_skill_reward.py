"""Rewarded skill generation: rewards by hand, the term's gradient, and that it is off by default."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from trl.trainer.utils import shuffle_sequence_dict, split_tensor_dict
from word_world import GROWING, WINDOW, WORDS

from seed_envs.trajectory import Trajectory
from seed_trainer.learning.batches import pad_left, pad_right
from seed_trainer.learning.rounds import Block
from seed_trainer.learning.skill_reward import answer_inputs, skill_rewards_N
from seed_trainer.settings.options import SEEDOptions
from seed_trainer.trainer import SEEDTrainer

TrainerFactory = Callable[..., SEEDTrainer]
REWARDED: dict[str, Any] = {"skill_reward_coef": 1.0, "skill_temperature": 1.0, "opd_coef": 0.1}


def test_rewards_are_the_signed_mean_shift() -> None:
    """Won and endorsed, lost and endorsed, lost and rejected beyond the limit, unusable."""
    block = Block([Trajectory("e", "t", success=won) for won in (True, False, False, True)], 4)
    shift = torch.tensor([[0.2, 0.4], [0.3, 9.0], [-5.0, -5.0], [1.0, 1.0], [0.6, 7.0]])
    mask = torch.tensor([[1.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.0, 0.0], [1.0, 0.0]])
    rewards = skill_rewards_N(block, shift, mask, torch.tensor([0, 1, 2, 3, 0]))
    torch.testing.assert_close(rewards, torch.tensor([0.4, -0.3, 1.0, -1.0]))


@pytest.mark.parametrize("layout", ["episode", "turn"])
def test_gradient_over_all_mini_batches_matches_plain_logits(make_trainer: TrainerFactory, layout: str) -> None:
    """Shuffled and split, every answer counts once: ``-sum A grad l / tokens``, from ordinary logits."""
    trainer = make_trainer(GROWING, rollout_layout=layout, **REWARDED)
    trainer.current_gradient_accumulation_steps = 1
    trainer.model.train()
    batch = trainer._generate_and_score_completions([{"task_id": word} for word in WORDS for _ in range(4)])
    rows = batch["skill_answer_mask"].any(1).nonzero().flatten()
    assert len(rows) == 16 and batch["skill_items"] == batch["skill_answer_mask"].sum()
    assert batch["skill_advantages"].abs().max() > 0.1

    def gradient(loss: torch.Tensor) -> torch.Tensor:
        trainer.model.zero_grad()
        loss.backward()
        return torch.cat([p.grad.flatten() for p in trainer.model.parameters() if p.grad is not None])

    chunks = trainer.args.steps_per_generation
    shuffled: dict[str, Any] = shuffle_sequence_dict(dict(batch))
    parts: list[dict[str, Any]] = split_tensor_dict(shuffled, chunks)
    ours = sum(gradient(trainer.teaching.skill_loss(part)) for part in parts) / chunks
    inputs = answer_inputs(batch, rows)
    keep = inputs.pop("logits_to_keep")
    logits = trainer.model(**inputs).logits[:, -keep - 1 : -1]
    logps = torch.log_softmax(logits, -1).gather(-1, batch["skill_answer_ids"][rows][..., None]).squeeze(-1)
    weights = batch["skill_advantages"][rows, None] * batch["skill_answer_mask"][rows]
    expected = gradient(-(weights * logps).sum() / batch["skill_items"])
    assert expected.abs().max() > 1e-3
    torch.testing.assert_close(ours, expected, atol=2e-6, rtol=0)


def test_it_trains_and_is_logged(make_trainer: TrainerFactory) -> None:
    trainer = make_trainer(**REWARDED, num_iterations=2)
    trainer.train()
    rewards = [line["skill/reward"] for line in trainer.state.log_history if "skill/reward" in line]
    assert len(rewards) == 2 and all(-1 <= reward <= 1 for reward in rewards)


def test_without_a_usable_answer_nothing_is_pushed(make_trainer: TrainerFactory) -> None:
    """The window profile asks in JSON, which this model cannot write: every reward is the lowest, every group tied."""
    trainer = make_trainer(WINDOW, **REWARDED)
    trainer.current_gradient_accumulation_steps = 1
    trainer.model.train()
    batch = trainer._generate_and_score_completions([{"task_id": word} for word in WORDS for _ in range(4)])
    assert not batch["skill_advantages"].any() and float(trainer.teaching.skill_loss(batch).detach()) == 0.0


def test_columns_are_padded_alike_and_keep_their_type() -> None:
    ids, mask = pad_left([[5, 6, 7], [8]], 0, multiple=4)
    assert ids.tolist() == [[0, 5, 6, 7], [0, 0, 0, 8]]
    assert mask.tolist() == [[0, 1, 1, 1], [0, 0, 0, 1]]
    assert pad_right([[0.1]], 2, torch.float64).tolist() == [[0.1, 0.0]], "as exact as asked for"


def test_it_is_off_by_default_and_needs_sampled_own_skills() -> None:
    assert SEEDOptions().skill_reward_coef == 0.0
    for options in ({"skill_temperature": 0.0}, {"skill_source": "generic"}, {"opd_coef": 0.0}):
        with pytest.raises(ValueError, match="it needs skill_source=own, skill_temperature and opd_coef above 0"):
            SEEDOptions(**{**REWARDED, **options}).check_options()
