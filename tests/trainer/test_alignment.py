"""Value alignment (Eq. 8) on a toy with known truth, and the metric registry."""

from __future__ import annotations

import math

import numpy as np
import pytest

from seed_trainer import diagnostics, value_alignment

PI = np.array([0.10, 0.35, 0.40, 0.15])
W = np.array([0.20, 0.35, 0.85, 0.70])
Q = np.array([0.10, 0.30, 0.90, 0.60])


def toy(states: int, informative: bool, seed: int = 0) -> tuple[value_alignment.Array, value_alignment.Array]:
    """Draw K = M = 4 continuations with Bernoulli outcomes and gates that also leak the outcome of their own skill."""
    rng = np.random.default_rng(seed)
    responses = rng.choice(4, size=(states, 4), p=PI)
    value = Q[responses][:, :, None]
    outcomes = (rng.random((states, 4, 4)) < value).astype(float)
    gates = (W[responses] if informative else np.full(responses.shape, 0.5))[:, :, None] + 0.2 * (outcomes - value)
    return outcomes, gates


def test_cross_fitted_estimate_finds_the_truth_and_the_naive_one_is_biased() -> None:
    result = value_alignment.estimate(*toy(200_000, True), np.random.default_rng(0), resamples=50)
    assert result.covariance == pytest.approx(0.0758, abs=1e-3)
    assert result.naive == pytest.approx(0.0836, abs=1e-3)
    assert result.low < 0.0758 < result.high
    assert result.gain == pytest.approx(0.1290, abs=3e-3)


def test_uninformative_gate_has_no_alignment_and_the_naive_estimate_invents_one() -> None:
    result = value_alignment.estimate(*toy(200_000, False), np.random.default_rng(0), resamples=50)
    assert result.covariance == pytest.approx(0.0, abs=5e-4)
    assert result.naive == pytest.approx(0.0077, abs=5e-4)


def test_estimate_needs_two_responses_and_two_continuations() -> None:
    with pytest.raises(ValueError, match="K >= 2, M >= 2"):
        value_alignment.state_covariances(np.zeros((3, 1, 4)), np.zeros((3, 1, 4)))


def test_auc_and_correlation() -> None:
    assert value_alignment.auc([0.9, 0.8, 0.1], [1, 0, 0]) == 1.0
    assert value_alignment.auc([0.5, 0.5], [1, 0]) == 0.5
    assert math.isnan(value_alignment.auc([0.5], [1]))
    assert value_alignment.within_group_correlation([1, 2, 11, 12], [0, 1, 0, 1], [0, 0, 1, 1]) == pytest.approx(1.0)
    assert math.isnan(value_alignment.within_group_correlation([1, 1], [0, 1]))


def test_registry_explains_placeholders() -> None:
    assert diagnostics.explains("env/success/pick_and_place") and diagnostics.explains("skill/invalid/loop")
    assert not diagnostics.explains("env/sucess")
    assert "`opd/gate_mean`" in diagnostics.markdown()
