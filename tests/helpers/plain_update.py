"""One update of SEED in plain PyTorch, from rows without padding: the reference that the trainer is compared with.

It shares no code with the package: its own advantages, clip, k3, gate, distillation and means. A row is scored alone,
by the model's ordinary logits. Fillers are not among its rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
import trl.trainer.utils
from torch import Tensor
from transformers.models.llama.modeling_llama import LlamaRMSNorm


@dataclass(frozen=True)
class Recipe:
    """What an update depends on.

    Attributes:
        loss_type: TRL's name of the loss.
        micro_batches: Micro-batches of a round on one process.
        accumulation: Micro-batches of an optimiser step.
        processes: Number of processes.
        opd_coef: Weight of the distillation term.
        beta: Weight of the KL to the reference.
        gate_beta: Sharpness of the gate.
        epsilon: Clip range.
        max_length: Divisor of ``dr_grpo``.
    """

    loss_type: str
    micro_batches: int
    accumulation: int
    processes: int = 1
    opd_coef: float = 0.3
    beta: float = 0.05
    gate_beta: float = 5.0
    epsilon: float = 0.2
    max_length: int = 1


@dataclass
class PlainRow:
    """One row without padding; ``mask`` marks the sampled tokens, ``taught`` whether its episode's skill is valid."""

    prompt: list[int]
    completion: list[int]
    mask: Tensor
    teacher_prompt: list[int]
    taught: bool
    advantage: float
    old: Tensor = field(init=False)
    reference: Tensor = field(init=False)
    teacher: Tensor = field(init=False)


def advantages(returns: Sequence[float], group: int) -> list[float]:
    """Return ``(R - mean) / (population sigma + 1e-6)`` within groups, 0 where all returns are equal."""
    result = []
    for start in range(0, len(returns), group):
        values = returns[start : start + group]
        mean = sum(values) / len(values)
        sigma = math.sqrt(sum((value - mean) ** 2 for value in values) / len(values))
        result += [(value - mean) / (sigma + 1e-6) if max(values) > min(values) else 0.0 for value in values]
    return result


def plain_rows(part: dict[str, Any], by_episode: Sequence[float], taught: Sequence[bool]) -> list[PlainRow]:
    """Take the padding and the fillers off a micro-batch."""
    rows = []
    for at, episode in enumerate(part["episode"].tolist()):
        shown = part["completion_mask"][at].bool()
        mask = (part["completion_mask"] * part["tool_mask"])[at][shown]
        if mask.any():
            prompt = part["prompt_ids"][at][part["prompt_mask"][at].bool()].tolist()
            teacher = part["teacher_prompt_ids"][at][part["teacher_prompt_mask"][at].bool()].tolist()
            completion = part["completion_ids"][at][shown].tolist()
            rows.append(PlainRow(prompt, completion, mask.double(), teacher, taught[episode], by_episode[episode]))
    return rows


def score(model: Any, prompt: list[int], completion: list[int]) -> Tensor:
    """Return the log-probability of every completion token."""
    logits = model(input_ids=torch.tensor([prompt + completion])).logits[0, len(prompt) - 1 : -1]
    return torch.log_softmax(logits, -1)[range(len(completion)), completion]


class Head:
    """Scores of hidden states as TRL's fused head gives them, by autograd and in the precision of the states."""

    @staticmethod
    def apply(
        hidden: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, temperature: float, chunk_size: int,
        softcap: float | None, scale: float, outputs: tuple[str, ...],
    ) -> tuple[Tensor, Tensor | None, None, None, None]:  # fmt: skip
        """Return log-probabilities and, if asked for, entropies of N positions."""
        assert softcap is None and set(outputs) <= {"log_probs", "entropy"}
        logps = torch.log_softmax(torch.nn.functional.linear(hidden, weight, bias) * scale / temperature, -1)
        entropies = -(logps.exp() * logps).sum(-1) if "entropy" in outputs else None
        return logps.gather(-1, targets[:, None]).squeeze(-1), entropies, None, None, None


def norm(layer: Any, hidden: Tensor) -> Tensor:
    """Return what Llama's norm gives, in the precision of the states."""
    return torch.nn.functional.rms_norm(hidden, layer.weight.shape, layer.weight, layer.variance_epsilon)


def keep_precision(replace: Callable[[Any, str, Any], None]) -> None:
    """Replace TRL's head and Llama's norm, which compute in single precision whatever the model's."""
    replace(trl.trainer.utils, "_ChunkedLogProbFunction", Head)
    replace(LlamaRMSNorm, "forward", norm)


@torch.no_grad()
def freeze(rows: Sequence[PlainRow], model: Any, reference: Any) -> None:
    """Store what a round keeps: behaviour, reference and the snapshot's teacher."""
    for row in rows:
        row.old, row.reference = score(model, row.prompt, row.completion), score(reference, row.prompt, row.completion)
        row.teacher = score(model, row.teacher_prompt, row.completion)


def policy_term(recipe: Recipe, row: PlainRow, logps: Tensor) -> Tensor:
    """Return the loss of every token but for the mean."""
    ratio = torch.exp(logps - row.old)
    low, high, advantage = 1 - recipe.epsilon, 1 + recipe.epsilon, row.advantage
    if recipe.loss_type == "cispo":  # the cap is epsilon itself
        loss = -ratio.detach().clamp(max=recipe.epsilon) * advantage * logps
    elif recipe.loss_type == "sapo":
        heat = 1.0 if advantage > 0 else 1.05
        loss = -torch.sigmoid(heat * (ratio - 1)) * 4 / heat * advantage
    elif recipe.loss_type == "vespo":
        k, rate = (2.0, 3.0) if advantage >= 0 else (3.0, 2.0)
        log_w = ((logps - row.old).detach() * row.mask).sum()
        loss = -torch.exp(rate + k * log_w - rate * torch.exp(log_w)) * advantage * logps
    else:
        loss = -torch.minimum(ratio * advantage, ratio.clamp(low, high) * advantage)
    gap = row.reference - logps
    return loss + recipe.beta * (torch.exp(gap) - gap - 1)


def micro_loss(
    recipe: Recipe, model: Any, part: Sequence[PlainRow], everyone: Sequence[Sequence[PlainRow]], live: bool
) -> Tensor:
    """Return the loss of one micro-batch.

    Args:
        recipe: The update.
        model: The policy.
        part: Real rows of the micro-batch.
        everyone: Real rows of every micro-batch of the round, on all processes.
        live: Whether the teacher is the policy of this moment.
    """
    scored = [(row, score(model, row.prompt, row.completion)) for row in part]
    policy = mean_share(recipe, [(row.mask, policy_term(recipe, row, logps)) for row, logps in scored], everyone, False)
    distilled = []
    for row, logps in scored:
        if row.taught:
            with torch.no_grad():
                teacher = score(model, row.teacher_prompt, row.completion) if live else row.teacher
                gate = 1 / (1 + torch.exp(-recipe.gate_beta * (teacher - logps)))
            distilled.append((row.mask, gate * (teacher - logps)))
    return policy + recipe.opd_coef * mean_share(recipe, distilled, everyone, True)


def mean_share(
    recipe: Recipe, terms: Sequence[tuple[Tensor, Tensor]], everyone: Sequence[Sequence[PlainRow]], taught: bool
) -> Tensor:
    """Return what a micro-batch adds to the mean over the round's units, such that a step's sum is a mean."""
    chosen = [[row for row in part if row.taught or not taught] for part in everyone]
    tokens = sum(float(row.mask.sum()) for part in chosen for row in part)
    rows = sum(len(part) for part in chosen)
    batches = sum(bool(part) for part in chosen)
    total = torch.zeros((), dtype=torch.float64)
    for mask, values in terms:
        inside = (mask * values).sum()
        if recipe.loss_type in ("dapo", "cispo", "vespo"):
            total = total + inside / tokens
        elif recipe.loss_type in ("grpo", "sapo"):
            total = total + inside / mask.sum() / rows
        elif recipe.loss_type == "dr_grpo":
            total = total + inside / recipe.max_length / rows
        else:
            total = total + inside / sum(float(other.sum()) for other, _ in terms) / batches
    # A process averages its gradient with the others' and adds up `accumulation` of the round's micro-batches.
    return total * recipe.processes * recipe.micro_batches / recipe.accumulation
