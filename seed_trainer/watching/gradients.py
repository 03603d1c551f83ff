"""Gradients of the loss terms, compared on demand: how large the distillation term is, and where it points.

Each comparison costs a backward pass per term and holds one vector as long as the model; nothing here changes a weight
or a stored gradient. Reentrant gradient checkpointing cannot be combined with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from trl import GRPOTrainer

from seed_trainer.learning import losses
from seed_trainer.learning.teacher import student_inputs
from seed_trainer.watching.measures import append_metrics


def gradient_vector(term: Tensor, parameters: Iterable[nn.Parameter]) -> Tensor:
    """Return the gradient of a scalar as one vector over all trainable parameters; the graph is kept."""
    trainable = [parameter for parameter in parameters if parameter.requires_grad]
    found = torch.autograd.grad(term, trainable, retain_graph=True, allow_unused=True)
    parts = [
        torch.zeros_like(parameter) if gradient is None else gradient
        for parameter, gradient in zip(trainable, found, strict=True)
    ]
    return torch.cat([part.flatten().float() for part in parts])


def ratio_and_cosine(first: Tensor, second: Tensor) -> tuple[float, float]:
    """Return ``|first| / |second|`` and the cosine between them; NaN where a norm is 0."""
    first, second = first.double(), second.double()
    norms = float(first.norm()), float(second.norm())
    ratio = norms[0] / norms[1] if norms[1] > 0 else float("nan")
    cosine = float(first @ second) / (norms[0] * norms[1]) if min(norms) > 0 else float("nan")
    return ratio, cosine


def log_gradients(trainer: Any, policy_loss: Tensor, distillation: Tensor) -> None:
    """Log the norm of the weighted distillation gradient against the policy gradient of one mini-batch.

    Args:
        trainer: The trainer.
        policy_loss: ``L_rl``, KL included.
        distillation: ``lambda L_opd``.
    """
    parameters = list(trainer.model.parameters())
    ratio, cosine = ratio_and_cosine(
        gradient_vector(distillation, parameters), gradient_vector(policy_loss, parameters)
    )
    append_metrics(trainer, {"opd/grad_ratio": ratio, "opd/grad_cosine": cosine})


def distillation_cosine(
    trainer: Any, batch: Mapping[str, Any], fresh_BT: Tensor, stale_BT: Tensor, mask_BT: Tensor
) -> float:
    """Return the cosine of ``grad L_opd`` under two sets of gates on the same tokens.

    Args:
        trainer: The trainer.
        batch: The rows of the round.
        fresh_BT: Gates of today's skills.
        stale_BT: Gates of an older analyzer's skills.
        mask_BT: Tokens that take part.
    """
    arguments = student_inputs(dict(batch))
    logps = GRPOTrainer._get_per_token_logps_and_entropies(trainer, trainer.model, **arguments)[0]
    parameters = list(trainer.model.parameters())
    zeros = torch.zeros_like(logps)
    vectors = [
        gradient_vector((losses.gated_distillation_BT(logps, zeros, gates) * mask_BT).sum(), parameters)
        for gates in (fresh_BT, stale_BT)
    ]
    return ratio_and_cosine(vectors[0], vectors[1])[1]
