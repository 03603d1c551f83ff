"""Does the gate prefer better actions? Eq. 8 of the paper, measured.

Two estimates: a cheap proxy from ordinary rounds (biased: a skill was written knowing the outcome) and a cross-fitted
Monte-Carlo estimate from continuations of restored states. Pure numbers here; playing the continuations is
:mod:`seed_trainer.branching`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def auc(scores: Sequence[float], outcomes: Sequence[float]) -> float:
    """Return the probability that a success outscores a failure, ties counting half; NaN without one of each."""
    won = np.array([s for s, o in zip(scores, outcomes, strict=True) if o > 0])
    lost = np.array([s for s, o in zip(scores, outcomes, strict=True) if o <= 0])
    if not len(won) or not len(lost):
        return math.nan
    return float((won[:, None] > lost).mean() + 0.5 * (won[:, None] == lost).mean())


def within_group_correlation(
    scores: Sequence[float], outcomes: Sequence[float], groups: Sequence[int] | None = None
) -> float:
    """Return the correlation of scores and outcomes after subtracting group means; NaN without spread."""
    x, y = np.array(scores, float), np.array(outcomes, float)
    g = np.zeros(len(x)) if groups is None else np.array(groups)
    for group in np.unique(g):
        x[g == group] -= x[g == group].mean()
        y[g == group] -= y[g == group].mean()
    scale = math.sqrt(float((x * x).sum() * (y * y).sum()))
    return float((x * y).sum()) / scale if scale > 1e-12 else math.nan


@dataclass(frozen=True)
class Alignment:
    """Value alignment over S states.

    Attributes:
        covariance: Cross-fitted estimate of Cov_pi(Q, w).
        naive: The estimate from the same continuations, biased upwards by E[Cov(R, g | response)] / M.
        mean_gate: Estimate of Z.
        gain: Covariance over mean gate, the expected gain of Eq. 8.
        low: Lower end of a 95 % bootstrap interval of the covariance over states.
        high: Upper end.
        states: Number of states.
    """

    covariance: float
    naive: float
    mean_gate: float
    gain: float
    low: float
    high: float
    states: int


def state_covariances(outcomes_SKM: Array, gates_SKM: Array) -> tuple[Array, Array]:
    """Return cross-fitted and naive covariance of every state, both shape (S,).

    Args:
        outcomes_SKM: Outcome of M continuations of each of K sampled responses in each of S states.
        gates_SKM: Mean gate of the branch response, one per continuation (each has its own skill).

    Raises:
        ValueError: Unless there are at least two responses and two continuations.
    """
    if outcomes_SKM.shape != gates_SKM.shape or outcomes_SKM.ndim != 3 or min(outcomes_SKM.shape[1:]) < 2:
        raise ValueError(
            f"expected two equal (S, K >= 2, M >= 2) arrays, got {outcomes_SKM.shape} and {gates_SKM.shape}"
        )
    half = outcomes_SKM.shape[2] // 2
    parts = [(slice(0, half), slice(half, None)), (slice(half, None), slice(0, half))]

    def covariance(first_SK: Array, second_SK: Array) -> Array:
        centred = (first_SK - first_SK.mean(1, keepdims=True)) * (second_SK - second_SK.mean(1, keepdims=True))
        result: Array = centred.sum(1) / (first_SK.shape[1] - 1)
        return result

    crossed = np.mean([covariance(outcomes_SKM[:, :, a].mean(2), gates_SKM[:, :, b].mean(2)) for a, b in parts], axis=0)
    return crossed, covariance(outcomes_SKM.mean(2), gates_SKM.mean(2))


def estimate(outcomes_SKM: Array, gates_SKM: Array, rng: np.random.Generator, resamples: int = 2000) -> Alignment:
    """Return the alignment over states with a bootstrap interval over states."""
    crossed, naive = state_covariances(outcomes_SKM, gates_SKM)
    draws = rng.integers(len(crossed), size=(resamples, len(crossed)))
    low, high = np.quantile(crossed[draws].mean(1), [0.025, 0.975])
    mean_gate = float(gates_SKM.mean())
    covariance = float(crossed.mean())
    gain = covariance / mean_gate if mean_gate else math.nan
    return Alignment(covariance, float(naive.mean()), mean_gate, gain, float(low), float(high), len(crossed))
