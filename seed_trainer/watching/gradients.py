"""Gradients of the loss terms, compared on demand: how large the distillation term is, and where it points.

Each comparison costs a backward pass per term and holds one vector as long as the model; nothing here changes a weight
or a stored gradient. Reentrant gradient checkpointing cannot be combined with it.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from seed_trainer.learning import losses
from seed_trainer.learning.scorer import Batch, Scorer
from seed_trainer.learning.scores import Scores
from seed_trainer.learning.teacher import student_inputs
from seed_trainer.watching.sink import MetricSink


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


def log_gradients(sink: MetricSink, model: nn.Module, policy_loss: Tensor, distillation: Tensor) -> None:
    """Log the norm of the weighted distillation gradient against the policy gradient of one mini-batch.

    Args:
        sink: Where metrics go.
        model: The policy.
        policy_loss: ``L_rl``, KL included.
        distillation: ``lambda L_opd``.
    """
    parameters = list(model.parameters())
    ratio, cosine = ratio_and_cosine(
        gradient_vector(distillation, parameters), gradient_vector(policy_loss, parameters)
    )
    sink.append({"opd/grad_ratio": ratio, "opd/grad_cosine": cosine})


def distillation_cosine(scorer: Scorer, batch: Batch, fresh: Scores, stale: Scores) -> float:
    """Return the cosine of ``grad L_opd`` under two teachers of the same tokens.

    Args:
        scorer: Forward passes.
        batch: The rows of the round.
        fresh: Their scores under today's skills.
        stale: Their scores under an older analyzer's skills; its mask counts.
    """
    logps, _ = scorer.live(scorer.model, student_inputs(batch))
    parameters, zeros = list(scorer.model.parameters()), torch.zeros_like(logps)
    vectors = [
        gradient_vector((losses.gated_distillation_BT(logps, zeros, scores.gates) * stale.mask).sum(), parameters)
        for scores in (fresh, stale)
    ]
    return ratio_and_cosine(vectors[0], vectors[1])[1]
