"""Losses against hand numbers, finite differences, and what must not carry gradient."""

from __future__ import annotations

from collections.abc import Callable

import propositions
import pytest
import torch
from torch import Tensor

from seed_trainer.learning import losses

PI = torch.tensor([0.10, 0.35, 0.40, 0.15], dtype=torch.float64)
W = torch.tensor([0.20, 0.35, 0.85, 0.70], dtype=torch.float64)
Q = torch.tensor([0.10, 0.30, 0.90, 0.60], dtype=torch.float64)
TRACE_L = torch.tensor([[-0.35, -0.90, -1.10]], dtype=torch.float64)
TRACE_T = torch.tensor([[-0.33, -1.40, -2.60]], dtype=torch.float64)


def close(actual: Tensor | None, expected: object, atol: float = 1e-6) -> None:
    assert actual is not None
    torch.testing.assert_close(
        actual, torch.as_tensor(expected, dtype=actual.dtype).expand(actual.shape), atol=atol, rtol=0
    )


def finite_difference(function: Callable[[Tensor], Tensor], point: Tensor, step: float = 1e-5) -> Tensor:
    gradient = torch.zeros_like(point)
    flat = gradient.view(-1)
    for index in range(point.numel()):
        offset = torch.zeros_like(point)
        offset.view(-1)[index] = step
        flat[index] = (function(point + offset) - function(point - offset)) / (2 * step)
    return gradient


def test_proposition_1_tilted_policy_and_kl() -> None:
    close(propositions.gate_mass(PI, W), 0.5875)
    tilted = propositions.tilted_policy(PI, W)
    close(tilted, [0.034043, 0.208511, 0.578723, 0.178723])
    close(tilted / PI, [0.340426, 0.595745, 1.446809, 1.191489])
    close((tilted * (tilted / PI).log()).sum(), 0.100391)
    close((PI * (PI / tilted).log()).sum(), 0.115011)


def test_equation_8_gain_is_covariance_over_mass() -> None:
    tilted = propositions.tilted_policy(PI, W)
    close((PI * Q).sum(), 0.565)
    close((tilted * Q).sum(), 0.694043)
    close(propositions.covariance(PI, Q, W), 0.075813)
    close(propositions.expected_gain(PI, W, Q), 0.129043)
    close((tilted * Q).sum() - (PI * Q).sum(), float(propositions.expected_gain(PI, W, Q)), atol=1e-12)


def test_proposition_2_logit_gradient_of_our_loss() -> None:
    logits = PI.log().clone().requires_grad_()
    logps = torch.log_softmax(logits, -1)
    # The expectation over the token is taken exactly: every token once, weighted by pi.
    loss = (PI * losses.gated_distillation_BT(logps, torch.zeros(4, dtype=torch.float64), W)).sum()
    (gradient,) = torch.autograd.grad(loss, logits)
    close(gradient, [0.038750, 0.083125, -0.105000, -0.016875])
    close(gradient, propositions.logit_gradient(PI, W), atol=1e-12)
    close((gradient**2 / PI).sum(), 0.064219)
    close((gradient**2 / PI).sum(), float(propositions.covariance(PI, W, W)), atol=1e-12)


def test_proposition_2_by_central_differences() -> None:
    def expected(logits: Tensor) -> Tensor:
        return (PI * losses.gated_distillation_BT(torch.log_softmax(logits, -1), torch.zeros_like(PI), W)).sum()

    close(finite_difference(expected, PI.log()), propositions.logit_gradient(PI, W), atol=3e-11 * 100)


def test_constant_gate_has_zero_expected_gradient() -> None:
    close(propositions.logit_gradient(PI, torch.full_like(W, 0.5)), 0.0, atol=1e-12)


def test_proposition_3_gap_within_bound() -> None:
    fresh, stale = torch.tensor([0.80, 0.30], dtype=torch.float64)
    gap = (losses.gate_BT(fresh, 5.0) - losses.gate_BT(stale, 5.0)).abs()
    close(losses.gate_BT(fresh, 5.0), 0.982014)
    close(losses.gate_BT(stale, 5.0), 0.817574)
    close(gap, 0.164439)
    assert gap <= losses.staleness_bound(5.0, (fresh - stale).abs()) == pytest.approx(0.625)
    tight = losses.gate_BT(torch.tensor(0.05), 5.0) - losses.gate_BT(torch.tensor(-0.05), 5.0)
    close(tight, 0.124353)
    assert tight <= 0.125


@pytest.mark.parametrize(
    ("round_k", "gate", "discrepancy"),
    [
        (0, 0.8176, 0.0),
        (2, 0.8808, 0.0632),
        (4, 0.9241, 0.1066),
        (6, 0.9526, 0.1350),
        (8, 0.9707, 0.1531),
        (10, 0.9820, 0.1644),
    ],
)
def test_staleness_table(round_k: int, gate: float, discrepancy: float) -> None:
    now = losses.gate_BT(torch.tensor(0.3 + 0.05 * round_k, dtype=torch.float64), 5.0)
    start = losses.gate_BT(torch.tensor(0.3, dtype=torch.float64), 5.0)
    close(now, gate, atol=5.1e-5)
    close(now - start, discrepancy, atol=5.1e-5)
    assert now - start <= losses.staleness_bound(5.0, torch.tensor(0.05 * round_k)) + 1e-9


@pytest.mark.parametrize(
    ("shift", "gates"),
    [
        (0.10, [0.525, 0.622, 0.731, 0.881]),
        (0.30, [0.574, 0.818, 0.953, 0.998]),
        (0.50, [0.622, 0.924, 0.993, 1.000]),
        (0.80, [0.690, 0.982, 1.000, 1.000]),
    ],
)
def test_gate_table(shift: float, gates: list[float]) -> None:
    for beta, expected in zip([1.0, 5.0, 10.0, 20.0], gates, strict=True):
        close(losses.gate_BT(torch.tensor(shift, dtype=torch.float64), beta), expected, atol=5.1e-4)


def test_worked_trace() -> None:
    logps = TRACE_L.clone().requires_grad_()
    shift = losses.shift_BT(TRACE_T, logps)
    gates = losses.gate_BT(shift, 5.0)
    close(gates, [[0.524979, 0.075858, 0.000553]])
    close(gates * shift, [[0.010500, -0.037929, -0.000829]])
    loss = losses.gated_distillation_BT(logps, TRACE_T, gates).mean()
    close(loss, -0.009420)
    (gradient,) = torch.autograd.grad(loss, logps)
    close(gradient, [[-0.174993, -0.025286, -0.000184]])
    close(gates.mean(), 0.200463)
    close((gates > 0.5).double().mean(), 1 / 3)
    close(shift.mean(), -0.66)
    close(-1 + 0.01 * gates, [[-0.994750, -0.999241, -0.999994]])
    flat = losses.gate_BT(shift, 0.0)
    close(losses.gated_distillation_BT(logps, TRACE_T, flat).mean(), -0.33)


def test_gated_term_gradient_is_only_minus_gate() -> None:
    logps = TRACE_L.clone().requires_grad_()
    teacher = TRACE_T.clone().requires_grad_()
    gates = losses.gate_BT(losses.shift_BT(teacher, logps), 5.0)
    assert not gates.requires_grad
    losses.gated_distillation_BT(logps, teacher, gates).sum().backward()
    assert teacher.grad is None
    close(logps.grad, -gates, atol=1e-12)


def test_printed_review_variant_would_have_no_gradient() -> None:
    """Detaching the whole difference (one public reading of Eq. 1) trains nothing; ours does."""
    logps = TRACE_L.clone().requires_grad_()
    assert not losses.shift_BT(TRACE_T, logps).requires_grad
    assert losses.gated_distillation_BT(logps, TRACE_T, torch.ones(1, 3)).requires_grad


@pytest.mark.parametrize(
    ("advantage", "ratio", "expected"), [(1, 1.5, -1.2), (1, 0.5, -0.5), (-1, 1.5, 1.5), (-1, 0.5, 0.8), (-1, 4.0, 3.0)]
)
def test_dual_clip_numbers(advantage: float, ratio: float, expected: float) -> None:
    old = torch.zeros(1, 1, dtype=torch.float64)
    new = old + torch.tensor(ratio, dtype=torch.float64).log()
    close(losses.policy_loss_BT(new, old, torch.tensor([[float(advantage)]]), dual_clip=3.0), expected)


@pytest.mark.parametrize(
    ("advantage", "ratio", "expected"), [(2.0, 1.5, -2.4), (2.0, 0.5, -1.0), (-3.0, 1.5, 4.5), (-3.0, 0.5, 2.4)]
)
def test_the_clipped_surrogate_is_proportional_to_the_advantage(
    advantage: float, ratio: float, expected: float
) -> None:
    logps = torch.tensor([[ratio]]).log()
    loss = losses.policy_loss_BT(logps, torch.zeros(1, 1), torch.tensor([[advantage]]), epsilon=0.2)
    assert float(loss) == pytest.approx(expected, abs=1e-6)


def test_the_gate_of_the_gated_term_is_a_number_and_no_path_for_gradients() -> None:
    gates = torch.tensor([[0.3]], requires_grad=True)
    logps = torch.tensor([[-1.0]], requires_grad=True)
    losses.gated_distillation_BT(logps, torch.tensor([[-0.5]]), gates).sum().backward()
    assert gates.grad is None and logps.grad is not None and float(logps.grad) == pytest.approx(-0.3)


def test_policy_loss_detaches_old_and_advantage() -> None:
    new = torch.full((1, 1), -1.0, requires_grad=True)
    old = torch.full((1, 1), -1.0, requires_grad=True)
    advantage = torch.ones(1, 1, requires_grad=True)
    losses.policy_loss_BT(new, old, advantage).sum().backward()
    assert old.grad is None and advantage.grad is None
    close(new.grad, -1.0)


def test_skill_sd_numbers_and_gradient() -> None:
    teacher, old = torch.tensor([[-0.4]], dtype=torch.float64), torch.tensor([[-1.2]], dtype=torch.float64)
    logps = torch.tensor([[-1.0]], dtype=torch.float64, requires_grad=True)
    value = losses.skill_sd_BT(logps, teacher, old)
    close(value, 0.271297)
    (gradient,) = torch.autograd.grad(value.sum(), logps)
    close(gradient, -0.732842)
    close(gradient, finite_difference(lambda x: losses.skill_sd_BT(x, teacher, old).sum(), logps.detach()), atol=1e-8)


@pytest.mark.parametrize(
    ("advantage", "shift", "expected"),
    [(1, 0.1, 1.0526), (1, 0.5, 1.1), (-1, 0.1, -0.9524), (-1, -0.5, -1.1), (0, 0.7, 0.0)],
)
def test_rlsd_numbers(advantage: float, shift: float, expected: float) -> None:
    advantages = torch.tensor([[float(advantage)]], dtype=torch.float64)
    result = losses.rlsd_advantages_BT(advantages, torch.tensor([[shift]], dtype=torch.float64), weight=0.5)
    close(result, expected, atol=5.1e-5)


def test_opid_step_skill_replaces_or_adds() -> None:
    advantages, episode = torch.ones(1, 2), torch.tensor([[1.0, 2.0]])
    step, mask = torch.tensor([[5.0, 7.0]]), torch.tensor([[0.0, 1.0]])
    close(losses.opid_advantages_BT(advantages, episode, 0.1), [[1.1, 1.2]])
    close(losses.opid_advantages_BT(advantages, episode, 0.1, step, 0.1, mask), [[1.1, 1.7]])
    close(losses.opid_advantages_BT(advantages, episode, 0.1, step, 0.1, mask, adds=True), [[1.1, 1.9]])


@pytest.mark.parametrize(("mix", "expected"), [(0.0, 0.100391), (0.5, 0.026371), (1.0, 0.115011)])
def test_jsd_numbers(mix: float, expected: float) -> None:
    close(losses.jsd_BT(PI.log(), propositions.tilted_policy(PI, W).log(), mix), expected)


@pytest.mark.parametrize("mix", [0.0, 0.3, 0.5, 1.0])
def test_jsd_gradient_by_differences_and_teacher_detached(mix: float) -> None:
    teacher = propositions.tilted_policy(PI, W).log().clone().requires_grad_()
    student = PI.log().clone().requires_grad_()
    losses.jsd_BT(student, teacher, mix).backward()
    assert teacher.grad is None
    close(
        student.grad,
        finite_difference(lambda z: losses.jsd_BT(z, teacher.detach(), mix), PI.log()),
        atol=1e-8,
    )


def test_sampled_token_gradient_is_reverse_kl_gradient_in_expectation() -> None:
    target = propositions.tilted_policy(PI, W).log()
    logits = PI.log().clone().requires_grad_()
    logps = torch.log_softmax(logits, -1)
    loss = (PI * losses.sampled_reverse_kl_BT(logps, target)).sum()
    (sampled,) = torch.autograd.grad(loss, logits)
    close(sampled, [0.096255, 0.141026, -0.193749, -0.043532])
    full = PI.log().clone().requires_grad_()
    (reverse,) = torch.autograd.grad(losses.jsd_BT(full, target, 1.0), full)
    close(sampled, reverse, atol=1e-10)


def test_jsd_top_k_equals_full_when_k_is_vocabulary() -> None:
    teacher = propositions.tilted_policy(PI, W).log()
    close(losses.jsd_BT(PI.log(), teacher, 0.5, top_k=4), losses.jsd_BT(PI.log(), teacher, 0.5), atol=1e-12)
    assert losses.jsd_BT(PI.log(), teacher, 0.5, top_k=2) != losses.jsd_BT(PI.log(), teacher, 0.5)


def test_jsd_is_even_unless_told_otherwise() -> None:
    student, teacher = torch.tensor([[[0.0, 1.0]]]), torch.tensor([[[2.0, -1.0]]])
    assert torch.equal(losses.jsd_BT(student, teacher), losses.jsd_BT(student, teacher, 0.5))
    assert not torch.equal(losses.jsd_BT(student, teacher), losses.jsd_BT(student, teacher, 0.55))


def test_jsd_of_doubles_is_as_exact_as_doubles() -> None:
    student, teacher = (torch.tensor([[values]], dtype=torch.float64) for values in ([0.1, 1.0], [2.0, -1.0]))
    s, t = student.softmax(-1), teacher.softmax(-1)
    m = 0.7 * s + 0.3 * t
    expected = 0.3 * (t * (t / m).log()).sum(-1) + 0.7 * (s * (s / m).log()).sum(-1)
    torch.testing.assert_close(losses.jsd_BT(student, teacher, 0.3), expected, atol=1e-14, rtol=0)


def test_jsd_refuses_mix_outside_unit_interval() -> None:
    with pytest.raises(ValueError, match="between 0 and 1, got 1.5"):
        losses.jsd_BT(PI.log(), PI.log(), 1.5)


def test_sdar_gates() -> None:
    entropy, shift = torch.tensor([[0.0, 0.8]]), torch.tensor([[-3.0, 0.2]])
    assert (losses.entropy_gate_BT(entropy, 5.0) >= 0.5).all()
    close(losses.entropy_gate_BT(entropy, 5.0), [[0.5, 0.982014]])
    close(
        losses.soft_or_gate_BT(shift, entropy, 5.0),
        torch.sigmoid(5.0 * (1 - (1 - entropy) * (1 - shift))),
    )


def test_centered_gate_uses_other_episodes_only() -> None:
    gates = torch.tensor([[0.9, 0.1], [0.4, 0.6], [0.2, 0.2]])
    mask = torch.tensor([[1.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    centred = losses.centered_gate_BT(gates, mask, torch.tensor([0, 0, 1]))
    close(centred[0], gates[0] - 0.2)
    close(centred[1], gates[1] - 0.2)
    close(centred[2], gates[2] - (0.9 + 0.1 + 0.4) / 3)
    close(losses.centered_gate_BT(gates, mask, torch.zeros(3)), gates - 0.5)


def test_opid_loss_keeps_the_weight_of_sampling_time() -> None:
    logps = TRACE_L.clone().requires_grad_()
    old = TRACE_L + 0.1
    loss = losses.opid_loss_BT(logps, TRACE_T, old)
    close(loss, -(TRACE_T - old) * TRACE_L)
    loss.sum().backward()
    close(logps.grad, -(TRACE_T - old), atol=1e-12)
    clipped = losses.opid_loss_BT(TRACE_L, TRACE_T, old, clip=0.5)
    close(clipped, [[-0.08 * 0.35, -0.5 * 0.90, -0.5 * 1.10]], 1e-9)


TERMS: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
    "policy": lambda s, t, o: losses.policy_loss_BT(s, o, torch.tensor([[1.0, -1.0, 0.5]], dtype=torch.float64)),
    "policy, dual clip": lambda s, t, o: losses.policy_loss_BT(s, o, -torch.ones_like(o), dual_clip=1.05),
    "gated": lambda s, t, o: losses.gated_distillation_BT(s, t, torch.full_like(s, 0.3).detach()),
    "skill_sd": losses.skill_sd_BT,
    "opid": losses.opid_loss_BT,
}
"""Every per-token term as a function of student, teacher and behaviour log-probabilities, with its gates held fixed."""


@pytest.mark.parametrize("name", TERMS)
def test_gradients_by_finite_differences_and_only_through_the_student(name: str) -> None:
    term = TERMS[name]
    old = (TRACE_L + torch.tensor([[0.05, -0.1, 0.4]], dtype=torch.float64)).requires_grad_()
    student, teacher = TRACE_L.clone().requires_grad_(), TRACE_T.clone().requires_grad_()
    term(student, teacher, old).sum().backward()
    assert teacher.grad is None and old.grad is None
    expected = finite_difference(lambda x: term(x, teacher.detach(), old.detach()).sum(), TRACE_L)
    close(student.grad, expected, atol=1e-7)
    assert expected.abs().max() > 0


def test_sampled_reverse_kl_detaches_its_weight() -> None:
    """Its gradient is that of ``-(l_T - l) l`` with the factor in front held fixed."""
    student, teacher = TRACE_L.clone().requires_grad_(), TRACE_T.clone().requires_grad_()
    losses.sampled_reverse_kl_BT(student, teacher).sum().backward()
    assert teacher.grad is None
    close(student.grad, -(TRACE_T - TRACE_L), atol=1e-12)


@pytest.mark.parametrize(
    "gate",
    [
        lambda s, t, h: losses.gate_BT(t - s, 5.0),
        lambda s, t, h: losses.shift_BT(t, s),
        lambda s, t, h: losses.entropy_gate_BT(h, 5.0),
        lambda s, t, h: losses.soft_or_gate_BT(t - s, h, 5.0),
        lambda s, t, h: losses.centered_gate_BT(torch.sigmoid(t - s), torch.ones_like(s), torch.zeros(1)),
        lambda s, t, h: losses.permuted_gate_BT(torch.sigmoid(t - s), torch.ones_like(s)),
        lambda s, t, h: losses.typical_gate_BT(s, h, 5.0),
        lambda s, t, h: losses.rlsd_advantages_BT(h, t - s, 0.5),
        lambda s, t, h: losses.opid_advantages_BT(h, t - s, 0.5),
        lambda s, t, h: losses.opid_advantages_BT(h, t - s, 0.5, t - s, 0.5, torch.ones_like(s)),
    ],
    ids=["gap", "shift", "entropy", "soft_or", "centered", "permuted", "typical", "rlsd", "opid", "opid steps"],
)
def test_gates_and_shaped_advantages_carry_no_gradient(gate: Callable[[Tensor, Tensor, Tensor], Tensor]) -> None:
    inputs = [tensor.clone().requires_grad_() for tensor in (TRACE_L, TRACE_T, torch.ones_like(TRACE_L))]
    assert not gate(*inputs).requires_grad


def test_permuted_gates_stay_in_their_row_and_leave_unmasked_tokens_alone() -> None:
    gates = torch.tensor([[0.1, 0.2, 0.3, 0.4, 0.5], [0.6, 0.7, 0.8, 0.9, 1.0]])
    mask = torch.tensor([[1, 0, 1, 1, 1], [0, 0, 1, 0, 0]])
    expected = torch.tensor([[0.4, 0.2, 0.5, 0.1, 0.3], [0.6, 0.7, 0.8, 0.9, 1.0]])
    close(losses.permuted_gate_BT(gates, mask), expected)


def test_the_typical_gate_holds_down_what_is_less_likely_than_usual() -> None:
    likely, usual, rare = losses.typical_gate_BT(torch.tensor([-0.1, -0.7, -3.0]), torch.full((3,), 0.7), 5.0)
    assert float(likely) > float(usual) == 0.5 > float(rare)


def test_beta_zero_is_an_inert_teacher() -> None:
    """The released GRPO+OPSD: every gate is one half, so that the gradient does not know the teacher."""
    for teacher in (TRACE_T, TRACE_T * 3 - 1):
        logps = TRACE_L.clone().requires_grad_()
        gates = losses.gate_BT(losses.shift_BT(teacher, logps), 0.0)
        losses.gated_distillation_BT(logps, teacher, gates).mean().backward()
        close(logps.grad, -1 / 6)
