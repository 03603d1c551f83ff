"""Sampling that does not depend on the batch: every sequence draws from a generator of its own.

With one shared generator, what an agent says would depend on which other episodes happen to be in its batch, and a
resumed or sharded run could never repeat. Here a seed belongs to one turn of one episode (Gumbel-max trick: adding
Gumbel noise to the scores and taking the largest is a draw from their softmax).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch


class SeededSampler:
    """A logits processor that turns greedy decoding into sampling with one seed per row.

    Args:
        seeds: One pair (episode seed, turn) per row.
        temperature: Above 0.
        top_p: Nucleus in (0, 1].
        device: Where the scores are.
    """

    def __init__(
        self, seeds: Sequence[tuple[int, int]], temperature: float, top_p: float, device: torch.device
    ) -> None:
        self._temperature, self._top_p = temperature, top_p
        self._generators = [torch.Generator(device).manual_seed(_mix(*pair)) for pair in seeds]

    def __call__(self, input_ids: Any, scores: torch.Tensor) -> torch.Tensor:
        """Perturbed scores, shape (rows, vocabulary)."""
        scores = scores.float() / self._temperature
        if self._top_p < 1.0:
            scores = keep_nucleus(scores, self._top_p)
        noise = torch.empty_like(scores)
        for row, generator in zip(noise, self._generators, strict=True):
            row.exponential_(generator=generator)
        return scores - noise.log()


def keep_nucleus(scores: torch.Tensor, top_p: float) -> torch.Tensor:
    """Set everything outside the smallest set of tokens with probability ``top_p`` to minus infinity."""
    ordered, order = scores.sort(dim=-1, descending=True)
    probabilities = ordered.softmax(dim=-1)
    outside = probabilities.cumsum(dim=-1) - probabilities >= top_p
    return scores.masked_fill(outside.scatter(-1, order, outside), float("-inf"))


def _mix(seed: int, turn: int) -> int:
    return int(np.random.SeedSequence([seed, turn]).generate_state(1, np.uint64)[0] >> 1)
