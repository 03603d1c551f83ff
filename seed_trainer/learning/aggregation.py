"""``Agg_m[z]``: the mean of a per-token term ``z`` over a mask ``m``, as every loss type of TRL takes its mean.

A loss type averages over units: tokens, rows, or whole micro-batches. ``Agg`` divides by the units of the *round*, over
all micro-batches and processes, that have a token in the mask; each micro-batch contributes its share. So a unit weighs
the same wherever shuffling puts it, and rows that only complete the batch (fillers) weigh nothing. TRL counts tokens
this way, but rows and micro-batches with the fillers among them, which makes its loss too small.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import torch
from torch import Tensor

UNITS = {
    **dict.fromkeys(("dapo", "cispo", "vespo"), "token"),
    **dict.fromkeys(("grpo", "sapo", "dr_grpo", "luspo"), "row"),
    "bnpo": "micro_batch",
}
"""What each loss type takes the mean over."""


def count_units(loss_type: str, masks: Sequence[Tensor]) -> Tensor:
    """Return how many units of a round's micro-batches have a token in their mask, on this process; 0-dim.

    Args:
        loss_type: TRL's loss type.
        masks: One mask (B, T) per micro-batch.
    """
    unit = UNITS[loss_type]
    if unit == "token":
        return torch.stack([mask.sum() for mask in masks]).sum().float()
    filled = [mask.bool().any(dim=1) for mask in masks]
    return torch.stack([rows.sum() if unit == "row" else rows.any() for rows in filled]).sum().float()


def round_counts(loss_type: str, policy: Sequence[Tensor], distilled: Sequence[Tensor]) -> Tensor:
    """Return the units of the policy's mask, those of the distilled one, and those that TRL divides by, shape (3,).

    Args:
        loss_type: TRL's loss type.
        policy: Mask of policy tokens (B, T) of every micro-batch of this process.
        distilled: Mask of distilled tokens of each.
    """
    real = count_units(loss_type, policy)
    with_fillers = {"token": real, "row": sum(map(len, policy)), "micro_batch": len(policy)}[UNITS[loss_type]]
    return torch.stack([real, count_units(loss_type, distilled), torch.as_tensor(with_fillers).to(real)])


def share_counts(parts: Sequence[dict[str, Any]], counts: Tensor) -> None:
    """Give the micro-batches of a round the units of ``Agg`` and the factor that fillers take from TRL's mean.

    Args:
        parts: The micro-batches of this process.
        counts: What :func:`round_counts` returned, summed over processes, shape (3,).
    """
    policy, distilled, with_fillers = counts
    for part in parts:
        part |= {
            "rl_units": policy,
            "opd_units": distilled,
            "filler_factor": with_fillers / policy.clamp(min=1.0),
        }


class HasBeta(Protocol):
    """What carries the weight of the KL term: TRL's trainer."""

    beta: float


@contextmanager
def fillers_undone(trainer: HasBeta, inputs: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Lend inputs with which TRL's mean has fillers among its units and comes out as the mean without them.

    Its policy term is linear in the advantages (the loss types that count fillers are) and in ``beta``; entropy bonus
    and router loss have means of their own and stay as they are.
    """
    factor, beta = inputs["filler_factor"], trainer.beta
    trainer.beta = beta * float(factor)
    try:
        yield {**inputs, "advantages": inputs["advantages"] * factor}
    finally:
        trainer.beta = beta


def _per_row(values_BT: Tensor, mask_BT: Tensor, max_length: int) -> Tensor:
    return ((values_BT * mask_BT).sum(-1) / mask_BT.sum(-1).clamp(min=1.0)).sum()


SUMS: dict[str, Callable[[Tensor, Tensor, int], Tensor]] = {
    **dict.fromkeys(("dapo", "cispo", "vespo"), lambda values, mask, max_length: (values * mask).sum()),
    **dict.fromkeys(("grpo", "sapo"), _per_row),
    "dr_grpo": lambda values, mask, max_length: (values * mask).sum() / max_length,
    "bnpo": lambda values, mask, max_length: (values * mask).sum() / mask.sum().clamp(min=1.0),
}
"""Sum over the units of one micro-batch of the value of each."""


def aggregate(
    loss_type: str, values_BT: Tensor, mask_BT: Tensor, units: Tensor, share: float, max_length: int = 1
) -> Tensor:
    """Return a micro-batch's contribution to ``Agg_m[z]``.

    Args:
        loss_type: TRL's loss type.
        values_BT: The term.
        mask_BT: Tokens that take part.
        units: Units of the round over all processes, 0-dim.
        share: What part of them one process adds up before its optimiser step: ``accumulation / micro-batches of the
            round / processes``. (TRL averages gradients over processes and does not divide by accumulation.)
        max_length: Divisor of ``dr_grpo``.

    Raises:
        ValueError: For a loss type that has no such mean.
    """
    if loss_type not in SUMS:
        raise ValueError(f"loss_type={loss_type!r} has no known normaliser for the distillation term; use dapo")
    return SUMS[loss_type](values_BT, mask_BT, max_length) / (units.clamp(min=1.0) * share)
