"""Does the gate prefer better actions? Eq. 8 of the paper, measured.

Two estimates: a cheap proxy from ordinary rounds (biased: a skill was written knowing the outcome) and a cross-fitted
Monte-Carlo estimate from continuations of restored states. Pure numbers here; playing the continuations is
:mod:`seed_trainer.watching.branching`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def within_group_auc(scores: Sequence[float], outcomes: Sequence[float], groups: Sequence[int]) -> float:
    """Return the probability that a success outscores a failure of its own group, ties counting half.

    Pairs of all groups weigh alike; NaN without a pair.
    """
    x, y, g = np.array(scores, float), np.array(outcomes, float) > 0, np.array(groups)
    better, pairs = 0.0, 0
    for group in np.unique(g):
        won, lost = x[(g == group) & y], x[(g == group) & ~y]
        better += float((won[:, None] > lost).sum() + 0.5 * (won[:, None] == lost).sum())
        pairs += len(won) * len(lost)
    return better / pairs if pairs else math.nan


def within_group_correlation(scores: Sequence[float], outcomes: Sequence[float], groups: Sequence[int]) -> float:
    """Return the correlation of scores and outcomes after subtracting group means; NaN without spread."""
    x, y, g = np.array(scores, float), np.array(outcomes, float), np.array(groups)
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
        faults: Continuations ended by a fault, which are not scored.
    """

    covariance: float
    naive: float
    mean_gate: float
    gain: float
    low: float
    high: float
    states: int
    faults: int = 0


def state_covariances(outcomes_SKM: Array, gates_SKM: Array) -> tuple[Array, Array]:
    """Return cross-fitted and naive covariance of every state, both shape (S,).

    Args:
        outcomes_SKM: Outcome of M continuations of each of K sampled responses in each of S states, NaN after a fault.
        gates_SKM: Mean gate of the branch response, one per continuation (each has its own skill).

    Raises:
        ValueError: Unless there are at least two responses and two continuations.
    """
    if outcomes_SKM.shape != gates_SKM.shape or outcomes_SKM.ndim != 3 or min(outcomes_SKM.shape[1:]) < 2:
        raise ValueError(
            f"expected two equal (S, K >= 2, M >= 2) arrays, got {outcomes_SKM.shape} and {gates_SKM.shape}"
        )

    def covariance(first_SK: Array, second_SK: Array) -> Array:
        centred = (first_SK - first_SK.mean(1, keepdims=True)) * (second_SK - second_SK.mean(1, keepdims=True))
        result: Array = centred.sum(1) / (first_SK.shape[1] - 1)
        return result

    return _crossed_and_naive(outcomes_SKM, gates_SKM, covariance)


def weighted_covariance(outcomes_KM: Array, gates_KM: Array, weights_K: Array) -> tuple[float, float]:
    """Return cross-fitted and naive covariance of one state whose K branches are all there are.

    Args:
        outcomes_KM: Outcome of M continuations of each branch, NaN after a fault.
        gates_KM: Gate of the branch under each continuation's own skill.
        weights_K: Probability of each branch, summing to 1.

    Raises:
        ValueError: Unless there are at least two continuations.
    """
    if outcomes_KM.shape != gates_KM.shape or outcomes_KM.ndim != 2 or outcomes_KM.shape[1] < 2:
        raise ValueError(f"expected two equal (K, M >= 2) arrays, got {outcomes_KM.shape} and {gates_KM.shape}")

    def covariance(first_K: Array, second_K: Array) -> Array:
        result: Array = np.array(weights_K @ ((first_K - weights_K @ first_K) * (second_K - weights_K @ second_K)))
        return result

    crossed, naive = _crossed_and_naive(outcomes_KM, gates_KM, covariance)
    return float(crossed), float(naive)


def _crossed_and_naive(
    outcomes: Array, gates: Array, covariance: Callable[[Array, Array], Array]
) -> tuple[Array, Array]:
    """Return the covariance of means over different halves of the continuations (last axis), and over the same.

    NaN for a state of which one branch has a half without a scored continuation.
    """
    half = outcomes.shape[-1] // 2
    parts = [(slice(0, half), slice(half, None)), (slice(half, None), slice(0, half))]
    gates = np.where(np.isnan(outcomes), np.nan, gates)  # a skill about a fault says nothing either
    crossed = [covariance(mean_scored(outcomes[..., a]), mean_scored(gates[..., b])) for a, b in parts]
    return np.mean(crossed, axis=0), covariance(mean_scored(outcomes), mean_scored(gates))


def mean_scored(values: Array) -> Array:
    """Return the mean over the last axis of what is not NaN; NaN where nothing is left."""
    known = ~np.isnan(values)
    with np.errstate(invalid="ignore"):
        result: Array = np.where(known, values, 0.0).sum(-1) / known.sum(-1)
    return result


def estimate(
    crossed_S: Array,
    naive_S: Array,
    mean_gates_S: Array,
    rng: np.random.Generator,
    resamples: int = 2000,
    faults: int = 0,
) -> Alignment:
    """Return the alignment over states with a bootstrap interval over states; those that are NaN are left out.

    Args:
        crossed_S: Cross-fitted covariance of every state.
        naive_S: Naive covariance of every state.
        mean_gates_S: Mean gate of every state.
        rng: Source of the resamples.
        resamples: Number of them.
        faults: Continuations that were not scored.

    Raises:
        RuntimeError: If no state is left.
    """
    known = ~np.isnan(crossed_S)
    if not known.any():
        raise RuntimeError(f"{faults} continuations ended by a fault and left no state; look at `seed-train rl` first")
    crossed_S, naive_S, mean_gates_S = crossed_S[known], naive_S[known], mean_gates_S[known]
    draws = rng.integers(len(crossed_S), size=(resamples, len(crossed_S)))
    low, high = np.quantile(crossed_S[draws].mean(1), [0.025, 0.975])
    mean_gate, covariance = float(mean_gates_S.mean()), float(crossed_S.mean())
    gain = covariance / mean_gate if mean_gate else math.nan
    naive, states = float(naive_S.mean()), len(crossed_S)
    return Alignment(covariance, naive, mean_gate, gain, float(low), float(high), states, faults)
