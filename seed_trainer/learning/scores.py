"""What is known about the tokens of some rows: one object that the loss trains on and everything else reads.

Records, the report's colours, value alignment and staleness take gates from here and nowhere else, so that none of them
can disagree with what was trained. :mod:`seed_trainer.learning.scorer` fills it in.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from seed_trainer.learning import losses


@dataclass(frozen=True)
class GateRule:
    """Which gate is trained, and its sharpness in this round.

    Attributes:
        kind: A key of :data:`GATES` (``opd_gate``).
        beta: Sharpness.
    """

    kind: str
    beta: float


@dataclass(frozen=True, eq=False)
class Scores:
    """Log-probabilities and gates of the tokens of some rows, all (B, T) unless said otherwise.

    Attributes:
        student: Under the live policy; carries gradient inside a loss.
        entropies: Entropy of the live policy in nats.
        old: Under the policy that sampled the tokens.
        reference: Under the reference policy, or None without one.
        teacher: Under the teacher; where there is none, the student's own, detached.
        mask: Tokens that are distilled: policy tokens of episodes whose skill teaches. All 0 without a teacher.
        episode_B: Episode of each row.
        rule: The gate.
    """

    student: Tensor
    entropies: Tensor
    old: Tensor
    reference: Tensor | None
    teacher: Tensor
    mask: Tensor
    episode_B: Tensor
    rule: GateRule

    @cached_property
    def shift(self) -> Tensor:
        """``D = sg(l_T - l)``."""
        return losses.shift_BT(self.teacher, self.student)

    @cached_property
    def gates(self) -> Tensor:
        """The detached gate ``g`` of every token under the rule in force."""
        return GATES[self.rule.kind](self, self.rule.beta)

    def under(self, teacher: Tensor, mask: Tensor) -> Scores:
        """Return the scores of the same tokens under another teacher."""
        return replace(self, teacher=teacher, mask=mask)


def _centered(scores: Scores, beta: float) -> Tensor:
    return losses.centered_gate_BT(losses.gate_BT(scores.shift, beta), scores.mask, scores.episode_B)


GATES: dict[str, Callable[[Scores, float], Tensor]] = {
    "gap": lambda scores, beta: losses.gate_BT(scores.shift, beta),
    "entropy": lambda scores, beta: losses.entropy_gate_BT(scores.entropies, beta),
    "soft_or": lambda scores, beta: losses.soft_or_gate_BT(scores.shift, scores.entropies, beta),
    "constant": lambda scores, beta: torch.full_like(scores.shift, 0.5),
    "centered": _centered,
    "permuted": lambda scores, beta: losses.permuted_gate_BT(losses.gate_BT(scores.shift, beta), scores.mask),
    "typical": lambda scores, beta: losses.typical_gate_BT(scores.student, scores.entropies, beta),
}
"""How every ``opd_gate`` is computed."""


def loss_mask(batch: dict[str, Any]) -> Tensor:
    """Return the mask of policy tokens, shape (B, T)."""
    mask: Tensor = batch["completion_mask"]
    return mask * batch["tool_mask"] if "tool_mask" in batch else mask


def distilled_mask(batch: dict[str, Any]) -> Tensor:
    """Return the mask of distilled tokens, shape (B, T): policy tokens where the skill teaches; 0 without a teacher."""
    mask = loss_mask(batch)
    if "opd_mask" not in batch:
        return torch.zeros_like(mask)
    learns: Tensor = batch["opd_mask"].view(len(mask), -1)
    return mask * learns


def batch_scores(
    batch: dict[str, Any], rule: GateRule, student: Tensor, entropies: Tensor, teacher: Tensor | None
) -> Scores:
    """Return the scores of a batch of rows.

    Args:
        batch: Rows as TRL holds them, with our columns.
        rule: The gate.
        student: Live log-probabilities.
        entropies: Live entropies.
        teacher: Teacher log-probabilities, if the rows have a teacher.
    """
    return Scores(
        student,
        entropies,
        batch.get("old_per_token_logps", student.detach()),
        batch.get("ref_per_token_logps"),
        student.detach() if teacher is None else teacher,
        distilled_mask(batch),
        batch["episode"],
        rule,
    )
