"""The pre-training loop: next-token loss on batches of similar length, in plain PyTorch.

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
        epochs: Passes over the samples of each course.
        batch_tokens: Padded tokens of one batch.
        learning_rate: Peak for embeddings and norms (AdamW).
        matrix_learning_rate: Peak for all other matrices (Muon).
        warmup: Share of the steps with rising learning rate.
        weight_decay: Of both.
        context_weight: Weight of the tokens that are only read; learning to expect them makes copying come early.
    """

    epochs: float = 2.0
    batch_tokens: int = 4_000
    learning_rate: float = 4e-3
    matrix_learning_rate: float = 0.02
    warmup: float = 0.04
    weight_decay: float = 0.01
    context_weight: float = 0.3


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


def weighted_loss(
    model: Any, ids: Any, labels: Any, context_weight: float, pictures: dict[str, Any] | None = None
) -> tuple[Any, float]:
    """Mean negative log-likelihood of the learned tokens plus, weighted, of the tokens that are only read.

    Rows are padded on the right, so causal attention needs no mask.

    Args:
        model: A causal language model with ``model`` and ``lm_head``.
        ids: Token ids, shape (rows, longest).
        labels: Learned tokens, of the same shape.
        context_weight: Weight of the tokens that are only read; 0 leaves them out.
        pictures: What the model is given beside the ids.

    Returns:
        The loss, and its first part as a number, in nats a token.
    """
    import torch

    hidden = model.model(input_ids=ids, use_cache=False, **(pictures or {})).last_hidden_state[:, :-1]
    targets, learned = ids[:, 1:], labels[:, 1:] != IGNORED
    chosen = targets != model.config.get_text_config().pad_token_id if context_weight else learned
    nll = torch.nn.functional.cross_entropy(model.lm_head(hidden[chosen]), targets[chosen], reduction="none")
    learned = learned[chosen]
    main = nll[learned].mean()
    rest = context_weight * nll[~learned].mean() if context_weight else 0.0
    return main + rest, float(main.detach())


def optimizers(model: Any, schedule: Schedule) -> list[Any]:
    """Muon for the matrices inside the blocks, AdamW for the rest."""
    import torch

    from seed_trainer.tiny.muon import Muon

    matrices = [weight for name, weight in model.named_parameters() if ".layers." in name and weight.ndim == 2]
    taken = {id(weight) for weight in matrices}
    rest = [weight for weight in model.parameters() if id(weight) not in taken]
    return [
        Muon(matrices, lr=schedule.matrix_learning_rate, weight_decay=schedule.weight_decay),
        torch.optim.AdamW(rest, lr=schedule.learning_rate, betas=(0.9, 0.95), weight_decay=schedule.weight_decay),
    ]


def rate(step: int, total: int, warmup: float) -> float:
    """Share of the peak learning rate at a step: linear warm-up, then a cosine down to 5 %."""
    rising = max(1, round(warmup * total))
    share = max(0.0, (step - rising) / max(1, total - rising))
    return min(1.0, (step + 1) / rising) * (0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * share)))


def pretrain(
    model: Any,
    courses: Sequence[Sequence[Sample]],
    schedule: Schedule,
    *,
    seed: int,
    on_step: Callable[[int, int, float], None] | None = None,
    look: Callable[[list[Any]], dict[str, Any]] | None = None,
) -> float:
    """Train in place.

    Args:
        model: A causal language model with ``model`` and ``lm_head``.
        courses: Samples, one course after the other under one learning-rate schedule.
        schedule: How.
        seed: Order of the batches.
        on_step: Called with step, number of steps and loss.
        look: Turns the pictures of a batch (arrays) into what the model is given of them.

    Returns:
        Mean loss of the last tenth of the steps, in nats a learned token.
    """
    import torch

    rng = random.Random(seed)
    plan = [batch for samples in courses for batch in _plan(samples, schedule, rng)]
    chosen = optimizers(model, schedule)
    peaks = [[group["lr"] for group in optimizer.param_groups] for optimizer in chosen]
    losses: list[float] = []
    pad = model.config.get_text_config().pad_token_id
    model.train()
    for step, batch in enumerate(plan):
        share = rate(step, len(plan), schedule.warmup)
        for optimizer, values in zip(chosen, peaks, strict=True):
            for group, peak in zip(optimizer.param_groups, values, strict=True):
                group["lr"] = peak * share
            optimizer.zero_grad()
        pixels = [picture.pixels() for sample in batch for picture in sample.pictures]
        seen = look(pixels) if look is not None and pixels else None
        loss, value = weighted_loss(model, *tensors(batch, pad), schedule.context_weight, seen)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimizer in chosen:
            optimizer.step()
        losses.append(value)
        if on_step is not None:
            on_step(step + 1, len(plan), value)
    model.eval()
    tail = losses[-max(1, len(losses) // 10) :]
    return sum(tail) / len(tail)


def _plan(samples: Sequence[Sample], schedule: Schedule, rng: random.Random) -> Iterator[list[Sample]]:
    left = schedule.epochs
    while left > 0:
        order = batches(samples, schedule.batch_tokens, rng)
        yield from order[: max(1, round(len(order) * min(1.0, left)))]
        left -= 1.0
