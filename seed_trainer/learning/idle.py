"""Rounds whose gradient is exactly zero: they are recognised, and cost no update pass."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from seed_trainer.learning.scores import distilled_mask


def moves_weights(batch: dict[str, Any], distils: bool) -> Tensor:
    """Return whether a policy, distillation or skill term of the batch has a gradient; bool, 0-dim.

    Args:
        batch: Rows as TRL holds them, with our columns.
        distils: Whether the distillation term is on.
    """
    moves: Tensor = batch["advantages"].any()
    if distils:
        moves = moves | distilled_mask(batch).any()
    if "skill_advantages" in batch:
        moves = moves | batch["skill_advantages"].any()
    return moves


def zero_loss(model: nn.Module) -> Tensor:
    """Return 0 with a gradient of 0 for every trainable parameter, so that an optimiser steps as it would have."""
    zeros = [(parameter * 0.0).sum() for parameter in model.parameters() if parameter.requires_grad]
    return torch.stack(zeros).sum()
