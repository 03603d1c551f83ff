"""Randomness by name: what a continuation draws depends on its stream, not on who is sampled beside it.

A stream names the run's seed, round, task, repeat and turn. So 1, 2 and 4 processes play the same episodes, and a
resumed run those it would have played.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor


def draws_BL(streams: Sequence[str], length: int, device: torch.device) -> Tensor:
    """Return uniform numbers in [0, 1), one row per stream, shape (B, length); a shorter row is a longer one's start.

    Multiples of 2**-24, which single precision holds exactly and never rounds up to 1.
    """
    rows = [np.random.default_rng(_entropy(stream)).integers(2**24, size=length) for stream in streams]
    return torch.tensor(np.stack(rows) * 2.0**-24, dtype=_precise(device), device=device)


def inverse_cdf_B(probabilities_BV: Tensor, draw_B: Tensor) -> Tensor:
    """Return the index that each draw falls on when the probabilities of its row are laid end to end, shape (B,).

    An index of probability 0 is never returned, however the sums were rounded.
    """
    probabilities_BV = probabilities_BV.to(draw_B.dtype)
    sums_BV = probabilities_BV.cumsum(-1)
    reached_BV = (sums_BV > draw_B[:, None] * sums_BV.amax(-1, keepdim=True)) & (probabilities_BV > 0)
    return reached_BV.to(torch.uint8).argmax(-1)  # of equal ones the first


def _entropy(stream: str) -> int:
    return int.from_bytes(hashlib.sha256(stream.encode()).digest()[:16], "big")


def _precise(device: torch.device) -> torch.dtype:
    return torch.float32 if device.type == "mps" else torch.float64  # which Apple's GPUs do not have
