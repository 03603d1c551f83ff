"""The paper's statements as functions of a single decision: what the gate does in expectation.

Everything is for one context with V possible tokens; nothing here touches a model. Symbols: ``pi`` policy, ``w``
expected gate of each token, ``Q`` value of each token.
"""

from __future__ import annotations

from torch import Tensor


def gate_mass(pi_V: Tensor, w_V: Tensor) -> Tensor:
    """Return ``Z = sum_v pi(v) w(v)``."""
    return (pi_V * w_V).sum()


def tilted_policy(pi_V: Tensor, w_V: Tensor) -> Tensor:
    """Return ``r = pi w / Z``, the policy towards which the gated term moves (Proposition 1)."""
    return pi_V * w_V / gate_mass(pi_V, w_V)


def logit_gradient(pi_V: Tensor, w_V: Tensor) -> Tensor:
    """Return the expected gradient of the gated term in the logits, ``dL/dz(v) = pi(v) [Z - w(v)]`` (Eq. 10)."""
    return pi_V * (gate_mass(pi_V, w_V) - w_V)


def covariance(pi_V: Tensor, first_V: Tensor, second_V: Tensor) -> Tensor:
    """Return ``Cov_pi(first, second)``."""
    return (pi_V * first_V * second_V).sum() - (pi_V * first_V).sum() * (pi_V * second_V).sum()


def expected_gain(pi_V: Tensor, w_V: Tensor, q_V: Tensor) -> Tensor:
    """Return ``E_r[Q] - E_pi[Q] = Cov_pi(Q, w) / Z`` (Eq. 8): positive only if the gate prefers better tokens."""
    return covariance(pi_V, q_V, w_V) / gate_mass(pi_V, w_V)
