"""How much an old analyzer's skills change the gate on today's episodes, and whether Proposition 3 bounds it.

For every age k: the analyzer of k rounds ago writes skills about today's episodes, today's teacher scores the same
tokens under them, and the gates are compared token by token. Age 0 writes today's skills again and has to give exactly
0 with a greedy analyzer. Measures only; costs one analysis and one teacher pass per age.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from seed_trainer.learning import losses
from seed_trainer.learning.batches import add_teacher_prompts
from seed_trainer.learning.rounds import Block
from seed_trainer.learning.teacher import loss_mask, student_inputs, teacher_columns, teacher_inputs
from seed_trainer.skills.parsing import HindsightSkill
from seed_trainer.skills.prompts import outcome_of
from seed_trainer.watching import theory
from seed_trainer.watching.gradients import distillation_cosine
from seed_trainer.watching.measures import append_metrics


def staleness_metrics(fresh_shift: Tensor, stale_shift: Tensor, beta: float, age: str) -> dict[str, float]:
    """Return gap, bound, their ratio and the share of tokens that break the bound.

    Args:
        fresh_shift: ``D_kk`` of the compared tokens.
        stale_shift: ``D_kj`` of the same tokens.
        beta: Sharpness of the gate.
        age: k - j, or :data:`NOISE`.
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


NOISE = "noise"
"""In place of an age: today's analyzer, sampling its skills anew. No age can be told from less than this."""


def log_staleness(trainer: Any, block: Block, batch: Mapping[str, Any]) -> None:
    """Measure every configured age that is old enough, and the noise floor, and log them.

    Every process goes through the same steps, whatever its own skills are, because logging is collective.
    """
    args = trainer.args
    student = trainer._score_chunks(trainer.model, student_inputs(dict(batch)), args.steps_per_generation)
    fresh = _teacher_logps(trainer, batch)
    own = [row.teacher_prompt_ids for row in block.rows]
    for age in args.ages:
        if age == 0 or trainer.round_index - age in trainer.weights.rounds:
            with trainer.weights.at(trainer._unwrapped, trainer.round_index - age):
                skills = trainer._writer().write(block.episodes, list(map(outcome_of, block.episodes)))
            append_metrics(trainer, _compare(trainer, block, batch, (student, fresh), skills, str(age)))
    if args.staleness_noise_temperature:
        writer = trainer._writer(args.staleness_noise_temperature)
        skills = writer.write(block.episodes, list(map(outcome_of, block.episodes)))
        append_metrics(trainer, _compare(trainer, block, batch, (student, fresh), skills, NOISE))
    for row, ids in zip(block.rows, own, strict=True):
        row.teacher_prompt_ids = ids
    # Autocast keeps casted copies of weights, which were exchanged meanwhile.
    torch.clear_autocast_cache()


def _teacher_logps(trainer: Any, batch: Mapping[str, Any]) -> Tensor:
    inputs = teacher_inputs(dict(batch), trainer._image_pad_token_id)
    with trainer.teacher_weights.lent(trainer._unwrapped):
        logps: Tensor = trainer._score_chunks(trainer.model, inputs, trainer.args.steps_per_generation)
    return logps


def _compare(
    trainer: Any,
    block: Block,
    batch: Mapping[str, Any],
    today: tuple[Tensor, Tensor],
    skills: Sequence[HindsightSkill],
    name: str,
) -> dict[str, float]:
    """Return the metrics of other skills about the same episodes; empty if no episode has two usable skills.

    Args:
        trainer: The trainer.
        block: The round, whose rows are given the other skills' teacher prompts.
        batch: Its rows as tensors.
        today: Student and teacher log-probabilities under today's skills, both (B, T).
        skills: The other skill of every episode.
        name: Age, or :data:`NOISE`.
    """
    student, fresh = today
    texts = [skill.text if skill.valid else "" for skill in skills]
    too_long = add_teacher_prompts(block.rows, texts, trainer.profile, trainer.encoder, trainer.context_limit)
    both = [
        other.valid and known.valid and index not in too_long
        for index, (other, known) in enumerate(zip(skills, block.skills, strict=True))
    ]
    device = trainer.accelerator.device
    columns = teacher_columns(block.rows, both, trainer._tokenizer.pad_token_id, trainer.pad_to_multiple_of, device)
    other = _teacher_logps(trainer, {**batch, **columns})
    chosen = (loss_mask(dict(batch)) * columns["opd_mask"][:, None]) > 0
    if not bool(chosen.any()):
        return {}
    shifts = [losses.shift_BT(teacher, student) for teacher in (fresh, other)]
    metrics = staleness_metrics(shifts[0][chosen], shifts[1][chosen], trainer.gate_beta, name)
    if trainer.args.staleness_gradients and name != NOISE:
        gates = [losses.gate_BT(shift, trainer.gate_beta) for shift in shifts]
        cosine = distillation_cosine(trainer, batch, gates[0], gates[1], chosen.float())
        metrics[f"stale/grad_cosine/{name}"] = cosine
    return metrics
