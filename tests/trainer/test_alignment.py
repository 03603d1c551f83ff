"""Value alignment (Eq. 8) on a toy with known truth, and the metric registry."""

from __future__ import annotations

import math

import numpy as np
import propositions
import pytest
import torch

from seed_trainer.learning.distillation import distillation_BT
from seed_trainer.learning.scores import GateRule, Scores, batch_scores
from seed_trainer.settings.options import SEEDOptions
from seed_trainer.watching import diagnostics, gate_watch, value_alignment
from seed_trainer.watching.gate_proxy import GateProxy

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


def estimate(outcomes: value_alignment.Array, gates: value_alignment.Array) -> value_alignment.Alignment:
    found = value_alignment.state_covariances(outcomes, gates)
    return value_alignment.estimate(*found, gates.mean((1, 2)), np.random.default_rng(0), resamples=50)


def test_cross_fitted_estimate_finds_the_truth_and_the_naive_one_is_biased() -> None:
    result = estimate(*toy(200_000, True))
    assert result.covariance == pytest.approx(0.0758, abs=1e-3)
    assert result.naive == pytest.approx(0.0836, abs=1e-3)
    assert result.low < 0.0758 < result.high
    assert result.gain == pytest.approx(0.1290, abs=3e-3)


def test_uninformative_gate_has_no_alignment_and_the_naive_estimate_invents_one() -> None:
    result = estimate(*toy(200_000, False))
    assert result.covariance == pytest.approx(0.0, abs=5e-4)
    assert result.naive == pytest.approx(0.0077, abs=5e-4)


def test_estimate_needs_two_responses_and_two_continuations() -> None:
    with pytest.raises(ValueError, match="K >= 2, M >= 2"):
        value_alignment.state_covariances(np.zeros((3, 1, 4)), np.zeros((3, 1, 4)))


def test_faults_leave_out_continuations_and_bias_nothing() -> None:
    """Counted as lost, a fifth of faults would shrink the covariance by as much."""
    outcomes, gates = toy(200_000, True)
    faults = np.random.default_rng(1).random(outcomes.shape) < 0.2
    outcomes[faults], gates[faults] = np.nan, 0.0
    found = value_alignment.state_covariances(outcomes, gates)
    means = value_alignment.mean_scored(np.where(faults, np.nan, gates).reshape(len(gates), -1))
    rng, lost = np.random.default_rng(0), int(faults.sum())
    result = value_alignment.estimate(found[0], found[1], means, rng, resamples=50, faults=lost)
    assert result.covariance == pytest.approx(0.0758, abs=1.5e-3)
    assert result.mean_gate == pytest.approx(PI @ W, abs=1e-3)
    assert 0.6 < result.states / 200_000 < 0.8 and result.faults == faults.sum()
    with pytest.raises(RuntimeError, match="left no state"):
        nothing = np.full(2, np.nan)
        value_alignment.estimate(nothing, nothing, nothing, np.random.default_rng(0), faults=7)


def test_token_level_estimate_weighs_branches_by_their_probability() -> None:
    """All four tokens are forced, so that no correction for sampling is due; the naive bias is again E[Cov] / M."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(40_000):
        outcomes = (rng.random((4, 4)) < Q[:, None]).astype(float)
        found.append(value_alignment.weighted_covariance(outcomes, W[:, None] + 0.2 * (outcomes - Q[:, None]), PI))
    crossed, naive = np.mean(found, axis=0)
    bias = float((PI * (1 - PI) * 0.2 * Q * (1 - Q)).sum()) / 4
    assert crossed == pytest.approx(0.0758, abs=1e-3)
    assert naive == pytest.approx(0.0758 + bias, abs=1e-3) and bias > 4e-3
    with pytest.raises(ValueError, match="M >= 2"):
        value_alignment.weighted_covariance(np.zeros((4, 1)), np.zeros((4, 1)), PI)


def test_auc_and_correlation_compare_within_groups_alone() -> None:
    auc, correlation = value_alignment.within_group_auc, value_alignment.within_group_correlation
    assert auc([0.9, 0.8, 0.1], [1, 0, 0], [0, 0, 0]) == 1.0
    assert auc([0.5, 0.5], [1, 0], [0, 0]) == 0.5
    assert auc([0.2, 0.1, 0.9, 0.8], [1, 0, 1, 0], [0, 0, 1, 1]) == 1.0, (
        "an easy task must not count against a hard one"
    )
    assert math.isnan(auc([0.5, 0.1], [1, 0], [0, 1]))
    assert correlation([1, 2, 11, 12], [0, 1, 0, 1], [0, 0, 1, 1]) == pytest.approx(1.0)
    assert math.isnan(correlation([1, 1], [0, 1], [0, 0]))


def scores(gates: torch.Tensor, episodes: list[int]) -> Scores:
    ones, flat = torch.ones_like(gates), torch.zeros_like(gates)
    teacher = torch.logit(gates)  # with beta 1 and a student at 0 the gates are as given
    return Scores(flat, ones, flat, None, teacher, ones, torch.tensor(episodes), GateRule("gap", 1.0))


def test_proxy_sums_the_gates_of_an_episode_over_shuffled_mini_batches() -> None:
    """Episodes 0 and 1 belong to one task, 2 and 3 to another; rows of an episode come in several mini-batches."""
    proxy = GateProxy(process=0, group_size=2)
    won = {0: 1.0, 1: 0.0, 2: 0.0, 3: 1.0}
    for episodes, gates in (
        ([0, 3], [[0.9, 0.7], [0.2, 0.2]]),
        ([1, 0], [[0.7, 0.7], [0.5, 0.5]]),
        ([2], [[0.1, 0.2]]),
    ):
        values = torch.tensor(gates)
        batch = {"success": torch.tensor([won[e] for e in episodes]), "action_tokens": torch.tensor([[0.0, 1.0]])}
        proxy.add(scores(values, episodes), batch, round_index=0)
    found = proxy.flush()
    assert found["align/auc"] == 0.5, "0.65 against 0.7 is wrong, 0.2 against 0.15 right"
    assert found["align/auc_think"] == 0.75 and found["align/auc_action"] == 0.25
    assert -1 <= found["align/correlation"] <= 1
    assert proxy.flush() == {}


def test_a_term_over_whole_distributions_is_not_made_up_from_sampled_tokens() -> None:
    zeros = torch.zeros(1, 2)
    scores = Scores(zeros, zeros, zeros, None, zeros, zeros, torch.zeros(1), GateRule("gap", 1.0))
    with pytest.raises(ValueError, match="opd_term='jsd' cannot be computed from sampled tokens"):
        distillation_BT(SEEDOptions(opd_term="jsd"), scores)


def test_the_sampling_policy_is_the_stored_one_or_the_student_as_a_number() -> None:
    student = torch.zeros(1, 2, requires_grad=True)
    batch = {"completion_mask": torch.ones(1, 2), "episode": torch.zeros(1)}
    assert not batch_scores(batch, GateRule("gap", 1.0), student, student, None).old.requires_grad
    stored = {**batch, "old_per_token_logps": torch.ones(1, 2)}
    assert batch_scores(stored, GateRule("gap", 1.0), student, student, None).old.tolist() == [[1.0, 1.0]]


def test_entropy_check_of_the_toy() -> None:
    pi, w = torch.tensor(PI), torch.tensor(W)
    assert float(propositions.covariance(pi, pi.log(), w)) == pytest.approx(0.0483, abs=5e-5)
    tokens = torch.tensor(np.repeat(np.arange(4), np.rint(PI * 1000).astype(int)))
    assert gate_watch._covariance(pi.log()[tokens], w[tokens]) == pytest.approx(0.0483, abs=5e-5)


def test_registry_explains_placeholders() -> None:
    assert diagnostics.explains("env/success/pick_and_place") and diagnostics.explains("skill/invalid/loop")
    assert not diagnostics.explains("env/sucess")
    assert "`opd/gate_mean`" in diagnostics.markdown()
