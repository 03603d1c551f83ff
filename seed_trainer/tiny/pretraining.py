"""The pre-training loop: next-token loss on the learned tokens of packed-by-length batches, in plain PyTorch.

No trainer class, no validation set, no mixed precision: a few minutes on one core. The same samples, seed and thread
count give the same weights.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from seed_trainer.tiny.corpus import Sample

IGNORED = -100


@dataclass(frozen=True)
class Schedule:
    """How long and how fast to train.

    Attributes:
        epochs: Passes over the samples.
        batch_tokens: Padded tokens of one batch.
        learning_rate: Peak of the cosine schedule.
        warmup: Share of the steps with rising learning rate.
        weight_decay: AdamW's.
    """

    epochs: float = 1.0
    batch_tokens: int = 4_000
    learning_rate: float = 4e-3
    warmup: float = 0.05
    weight_decay: float = 0.01


def batches(samples: Sequence[Sample], batch_tokens: int, rng: random.Random) -> list[list[Sample]]:
    """Cut one pass into batches of similar length, in random order."""
    order = sorted(samples, key=lambda sample: len(sample.ids) + rng.random() * 16)
    cut: list[list[Sample]] = []
    current: list[Sample] = []
    for sample in order:
        longest = max(len(sample.ids), *(len(other.ids) for other in current)) if current else len(sample.ids)
        if current and longest * (len(current) + 1) > batch_tokens:
            cut.append(current)
            current = []
        current.append(sample)
    cut.append(current)
    rng.shuffle(cut)
    return cut


def tensors(batch: Sequence[Sample], pad_token_id: int) -> tuple[Any, Any]:
    """Right-padded input ids and labels, shape (rows, longest)."""
    import torch

    longest = max(len(sample.ids) for sample in batch)
    ids = torch.full((len(batch), longest), pad_token_id)
    labels = torch.full((len(batch), longest), IGNORED)
    for row, sample in enumerate(batch):
        tokens = torch.tensor(sample.ids)
        ids[row, : len(tokens)] = tokens
        labels[row, : len(tokens)] = torch.where(torch.tensor(sample.learned), tokens, IGNORED)
    return ids, labels


def masked_loss(model: Any, ids: Any, labels: Any) -> Any:
    """Mean negative log-likelihood of the learned tokens; only their positions go through the vocabulary head.

    Rows are padded on the right, so causal attention needs no mask.
    """
    import torch

    hidden = model.model(input_ids=ids, use_cache=False).last_hidden_state[:, :-1]
    targets = labels[:, 1:]
    chosen = targets != IGNORED
    return torch.nn.functional.cross_entropy(model.lm_head(hidden[chosen]), targets[chosen])


def pretrain(
    model: Any,
    samples: Sequence[Sample],
    schedule: Schedule,
    *,
    seed: int,
    on_step: Callable[[int, int, float], None] | None = None,
) -> float:
    """Train in place.

    Args:
        model: A causal language model with ``model`` and ``lm_head``.
        samples: What to learn.
        schedule: How.
        seed: Order of the batches.
        on_step: Called with step, number of steps and loss.

    Returns:
        Mean loss of the last tenth of the steps, in nats a token.
    """
    import torch

    pad = model.config.pad_token_id
    plan = list(_plan(samples, schedule, random.Random(seed)))
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=schedule.learning_rate, betas=(0.9, 0.95), weight_decay=schedule.weight_decay
    )
    warmup = max(1, round(schedule.warmup * len(plan)))
    losses: list[float] = []
    model.train()
    for step, batch in enumerate(plan):
        share = max(0.0, (step - warmup) / max(1, len(plan) - warmup))
        rate = min(1.0, (step + 1) / warmup) * (0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * share)))
        for group in optimizer.param_groups:
            group["lr"] = schedule.learning_rate * rate
        loss = masked_loss(model, *tensors(batch, pad))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(float(loss.detach()))
        if on_step is not None:
            on_step(step + 1, len(plan), losses[-1])
    model.eval()
    tail = losses[-max(1, len(losses) // 10) :]
    return sum(tail) / len(tail)


def _plan(samples: Sequence[Sample], schedule: Schedule, rng: random.Random) -> Iterator[list[Sample]]:
    left = schedule.epochs
    while left > 0:
        order = batches(samples, schedule.batch_tokens, rng)
        yield from order[: max(1, round(len(order) * min(1.0, left)))]
        left -= 1.0
