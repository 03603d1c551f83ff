"""The distillation term of a configuration, put together from :mod:`seed_trainer.learning.losses`.

It picks formulas by configuration and computes none itself. Full-vocabulary terms are given their logits by the
trainer.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from seed_trainer.learning import losses
from seed_trainer.settings.options import SEEDOptions


@dataclass
class Scores:
    """What is known about the tokens of one mini-batch, all (B, T) unless said otherwise.

    Attributes:
        logps: Student log-probabilities, with gradient.
        old_logps: Behaviour log-probabilities.
        teacher_logps: Teacher log-probabilities.
        entropies: Student entropies.
        mask: Tokens that are distilled (policy tokens of episodes with a valid skill).
        episode_B: Episode number of each row.
    """

    logps: Tensor
    old_logps: Tensor
    teacher_logps: Tensor
    entropies: Tensor
    mask: Tensor
    episode_B: Tensor


def gates_BT(options: SEEDOptions, scores: Scores, beta: float) -> Tensor:
    """Return the detached gate of every token under the configured rule."""
    shift_BT = losses.shift_BT(scores.teacher_logps, scores.logps)
    if options.opd_gate == "entropy":
        return losses.entropy_gate_BT(scores.entropies, beta)
    if options.opd_gate == "soft_or":
        return losses.soft_or_gate_BT(shift_BT, scores.entropies, beta)
    if options.opd_gate == "constant":
        return torch.full_like(shift_BT, 0.5)
    gap_BT = losses.gate_BT(shift_BT, beta)
    if options.opd_gate == "centered":
        return losses.centered_gate_BT(gap_BT, scores.mask, scores.episode_B)
    return gap_BT


def distillation_BT(options: SEEDOptions, scores: Scores, gates: Tensor) -> Tensor:
    """Return the distillation term per token, before its weight and its mask.

    Raises:
        ValueError: For ``jsd``, which needs logits and is computed by the trainer.
    """
    if options.opd_term == "gated":
        return losses.gated_distillation_BT(scores.logps, scores.teacher_logps, gates)
    if options.opd_term == "sampled":
        return losses.sampled_reverse_kl_BT(scores.logps, scores.teacher_logps)
    if options.opd_term == "skill_sd":
        return losses.skill_sd_BT(scores.logps, scores.teacher_logps, scores.old_logps)
    if options.opd_term == "opid":
        return losses.opid_loss_BT(scores.logps, scores.teacher_logps, scores.old_logps, options.opd_shift_clip or None)
    raise ValueError(f"opd_term={options.opd_term!r} cannot be computed from sampled tokens")
