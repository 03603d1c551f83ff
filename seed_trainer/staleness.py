"""How much an old analyzer's skills change the gate on today's episodes, and whether Proposition 3 bounds it.

For every age k: the analyzer of k rounds ago writes skills about today's episodes, today's teacher scores the same
tokens under them, and the gates are compared token by token. Measures only; costs one analysis and one teacher pass
per age. Age 0 is an exact zero by construction and is not measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from seed_trainer import losses, theory
from seed_trainer.batches import add_teacher_prompts
from seed_trainer.gradients import distillation_cosine
from seed_trainer.measures import append_metrics
from seed_trainer.rounds import Block
from seed_trainer.skills.prompts import outcome_of
from seed_trainer.teacher import loss_mask, student_inputs, teacher_columns, teacher_inputs


def staleness_metrics(fresh_shift: Tensor, stale_shift: Tensor, beta: float, age: int) -> dict[str, float]:
    """Return gap, bound, their ratio and the share of tokens that break the bound.

    Args:
        fresh_shift: ``D_kk`` of the compared tokens.
        stale_shift: ``D_kj`` of the same tokens.
        beta: Sharpness of the gate.
        age: k - j.
    """
    gap = (losses.gate_BT(fresh_shift, beta) - losses.gate_BT(stale_shift, beta)).abs()
    distance = (fresh_shift - stale_shift).abs()
    bound = theory.staleness_bound(beta, distance)
    mean_bound = float(bound.mean())
    return {
        f"stale/gate_gap/{age}": float(gap.mean()),
        f"stale/bound/{age}": mean_bound,
        f"stale/ratio/{age}": float(gap.mean()) / mean_bound if mean_bound > 0 else float("nan"),
        f"stale/violations/{age}": float((gap > bound + 1e-6).float().mean()),
    }


def log_staleness(trainer: Any, block: Block, batch: Mapping[str, Any]) -> None:
    """Measure every configured age that is old enough and log it."""
    args, device = trainer.args, trainer.accelerator.device
    student = trainer._score_chunks(trainer.model, student_inputs(dict(batch)), args.steps_per_generation)
    fresh = trainer._score_chunks(
        trainer.model, teacher_inputs(dict(batch), trainer._image_pad_token_id), args.steps_per_generation
    )
    own = [row.teacher_prompt_ids for row in block.rows]
    told = [outcome_of(episode) for episode in block.episodes]
    for age in args.ages:
        if trainer.round_index - age not in trainer.weights.rounds:
            continue
        with trainer.weights.at(trainer._unwrapped, trainer.round_index - age):
            skills = trainer._writer().write(block.episodes, told)
        texts = [skill.text if skill.valid else "" for skill in skills]
        add_teacher_prompts(block.rows, texts, trainer.profile, trainer.encoder, None)
        both = [new.valid and today.valid for new, today in zip(skills, block.skills, strict=True)]
        columns = teacher_columns(block.rows, both, trainer._tokenizer.pad_token_id, trainer.pad_to_multiple_of, device)
        stale = trainer._score_chunks(
            trainer.model, teacher_inputs({**batch, **columns}, trainer._image_pad_token_id), args.steps_per_generation
        )
        chosen = (loss_mask(dict(batch)) * columns["opd_mask"][:, None]) > 0
        if bool(chosen.any()):
            shifts = [losses.shift_BT(teacher, student)[chosen] for teacher in (fresh, stale)]
            append_metrics(trainer, staleness_metrics(shifts[0], shifts[1], trainer.gate_beta, age))
            if args.staleness_gradients:
                gates = [
                    losses.gate_BT(losses.shift_BT(teacher, student), trainer.gate_beta) for teacher in (fresh, stale)
                ]
                cosine = distillation_cosine(trainer, batch, gates[0], gates[1], chosen.float())
                append_metrics(trainer, {f"stale/grad_cosine/{age}": cosine})
    for row, ids in zip(block.rows, own, strict=True):
        row.teacher_prompt_ids = ids
    torch.clear_autocast_cache()
