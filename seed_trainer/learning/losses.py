"""Loss functions of SEED and its relatives, as pure tensor functions.

Every function says its formula, where gradients stop and its source. Nothing here knows a trainer, a model or a
tokenizer; nothing here takes a mean over tokens (:mod:`seed_trainer.learning.aggregation` does).

Notation, used in all docstrings: ``l`` log-probability of the sampled token under the live policy (the only quantity
that carries gradient), ``l_old`` under the behaviour policy, ``l_ref`` under the reference, ``l_T`` under the teacher
(the same weights reading the same history plus a skill), ``D = l_T - l``, ``sg`` = stop-gradient. Axes: B rows, T
tokens, V vocabulary. Logarithms are natural. "Paper" is arXiv 2607.14777.
"""

from __future__ import annotations

import torch
from torch import Tensor

LOG_RATIO_CAP = 20.0
"""Largest exponent inside ``exp`` in :func:`skill_sd_BT`, as in the method's own definition."""


def policy_loss_BT(
    logps_BT: Tensor,
    logps_old_BT: Tensor,
    advantages_BT: Tensor,
    epsilon: float = 0.2,
    dual_clip: float | None = None,
) -> Tensor:
    """Return the clipped surrogate per token, ``-min(rho A, clip(rho, 1-e, 1+e) A)``, with ``rho = exp(l - l_old)``.

    PPO's clip (arXiv 1707.06347); the dual clip is arXiv 1912.09729's.

    Args:
        logps_BT: Live log-probabilities ``l``.
        logps_old_BT: Behaviour log-probabilities; detached here.
        advantages_BT: Advantages, broadcastable to (B, T); detached here.
        epsilon: Clip range.
        dual_clip: If given (3.0 in the released recipe), the loss of a negative advantage is at most ``-c A``.

    Returns:
        Loss per token, shape (B, T).
    """
    advantages_BT = advantages_BT.detach()
    ratio_BT = torch.exp(logps_BT - logps_old_BT.detach())
    clipped_BT = ratio_BT.clamp(1 - epsilon, 1 + epsilon)
    if dual_clip is not None:
        # Only negative advantages feel this cap: for positive ones the minimum below takes the tighter clip anyway.
        ratio_BT = ratio_BT.clamp(max=dual_clip)
    return -torch.min(ratio_BT * advantages_BT, clipped_BT * advantages_BT)


def shift_BT(teacher_logps_BT: Tensor, logps_BT: Tensor) -> Tensor:
    """Return ``D = sg(l_T - l)``: how much more likely the skill made each sampled token."""
    return (teacher_logps_BT - logps_BT).detach()


def gate_BT(shift: Tensor, beta: float) -> Tensor:
    """Return SEED's gate ``g = sg(sigmoid(beta D))`` in (0, 1); exactly 0.5 where the skill changes nothing."""
    return torch.sigmoid(beta * shift).detach()


def staleness_bound(beta: float, mean_abs_shift_difference: Tensor) -> Tensor:
    """Return ``(beta / 4) E|D_kk - D_kj|``, the bound on ``E|g_kk - g_kj|`` of Proposition 3 (Eq. 14)."""
    return beta / 4 * mean_abs_shift_difference


def entropy_gate_BT(entropies_BT: Tensor, beta: float) -> Tensor:
    """Return SDAR's entropy gate ``sg(sigmoid(beta h))``, ``h`` the student's entropy in nats; never below 0.5.

    Source: arXiv 2605.15155.
    """
    return torch.sigmoid(beta * entropies_BT).detach()


def soft_or_gate_BT(shift: Tensor, entropies_BT: Tensor, beta: float) -> Tensor:
    """Return SDAR's soft-or gate ``sg(sigmoid(beta [1 - (1 - h)(1 - D)]))`` of entropy ``h`` and shift ``D``.

    Source: arXiv 2605.15155.
    """
    return torch.sigmoid(beta * (1.0 - (1.0 - entropies_BT) * (1.0 - shift))).detach()


def centered_gate_BT(gates_BT: Tensor, mask_BT: Tensor, episode_B: Tensor) -> Tensor:
    """Return ``g - b`` where ``b`` is the mean gate over the masked tokens of the *other* episodes in the batch.

    The baseline of a token never depends on that token, so the expected gradient at the sampling policy is unchanged
    while negative pushes become possible. With a single episode in the batch ``b`` is 0.5. A control of ours; detached.

    Args:
        gates_BT: Gates.
        mask_BT: 1 where a token takes part in distillation.
        episode_B: Episode number of every row; rows of one episode are not independent of each other.
    """
    same_BB = (episode_B[:, None] == episode_B[None, :]).to(gates_BT.dtype)
    sums_B, counts_B = (gates_BT * mask_BT).sum(-1), mask_BT.to(gates_BT.dtype).sum(-1)
    # Everything minus the own episode, whose rows depend on the same sampled tokens.
    others_sum_B = sums_B.sum() - same_BB @ sums_B
    others_count_B = counts_B.sum() - same_BB @ counts_B
    half_B = torch.full_like(others_sum_B, 0.5)
    baseline_B = torch.where(others_count_B > 0, others_sum_B / others_count_B.clamp(min=1.0), half_B)
    return (gates_BT - baseline_B[:, None]).detach()


def permuted_gate_BT(gates_BT: Tensor, mask_BT: Tensor) -> Tensor:
    """Return gates that every masked token borrows from the one half a row away; detached.

    A control of ours: the gates of a row, and so its mean push, stay the same; which token deserved which is gone.

    Args:
        gates_BT: Gates.
        mask_BT: 1 where a token takes part in distillation; a row with one such token keeps its gate.
    """
    permuted_BT = gates_BT.detach().clone()
    for gates_T, mask_T in zip(permuted_BT, mask_BT, strict=True):
        chosen_N = mask_T.nonzero().flatten()
        gates_T[chosen_N] = gates_T[chosen_N].roll(len(chosen_N) // 2)
    return permuted_BT


def typical_gate_BT(logps_BT: Tensor, entropies_BT: Tensor, beta: float) -> Tensor:
    """Return ``sg(sigmoid(beta (l + h)))``, ``h`` the student's entropy in nats: no teacher has a say in it.

    A control of ours: ``l + h`` is 0 on average over what the policy samples and negative for tokens less likely than
    usual, which are pushed less. Tests whether distillation works by holding down unlikely tokens (arXiv 2608.31046).
    """
    return torch.sigmoid(beta * (logps_BT + entropies_BT)).detach()


def gated_distillation_BT(logps_BT: Tensor, teacher_logps_BT: Tensor, gates_BT: Tensor) -> Tensor:
    """Return SEED's term per token, ``g (sg(l_T) - l)`` (paper, Eq. 1).

    Gate and teacher are detached, ``l`` is not: the gradient is ``-g grad l``, a gate-weighted log-likelihood. The
    value may have either sign and is a monitor only.
    """
    return gates_BT.detach() * (teacher_logps_BT.detach() - logps_BT)


def sampled_reverse_kl_BT(logps_BT: Tensor, teacher_logps_BT: Tensor) -> Tensor:
    """Return ``-sg(l_T - l) l``: the policy-gradient form of KL(student || teacher) on the sampled token.

    Source: OPSD, arXiv 2601.18734. The whole weight is detached; gradient flows through the last ``l`` alone.
    """
    return -shift_BT(teacher_logps_BT, logps_BT) * logps_BT


def jsd_BT(
    student_logits_BTV: Tensor, teacher_logits_BTV: Tensor, mix: float = 0.5, top_k: int | None = None
) -> Tensor:
    """Return the generalised Jensen-Shannon divergence over the vocabulary per token (OPSD, arXiv 2601.18734).

    ``mix = 0``: KL(T || S); ``mix = 1``: KL(S || T); otherwise ``mix KL(T || M) + (1 - mix) KL(S || M)`` with
    ``M = (1 - mix) S + mix T``. The teacher is detached; gradient flows through the student in every place, ``M``
    included.

    Args:
        student_logits_BTV: Live logits.
        teacher_logits_BTV: Teacher logits.
        mix: Interpolation in [0, 1].
        top_k: If given, both distributions are renormalised over the teacher's ``top_k`` most likely tokens.
    """
    if not 0.0 <= mix <= 1.0:
        raise ValueError(f"mix must be between 0 and 1, got {mix}")
    teacher_logits_BTV = teacher_logits_BTV.detach()
    if top_k is not None:
        index = teacher_logits_BTV.topk(min(top_k, teacher_logits_BTV.size(-1)), dim=-1).indices
        teacher_logits_BTV = teacher_logits_BTV.gather(-1, index)
        student_logits_BTV = student_logits_BTV.gather(-1, index)
    log_s = torch.log_softmax(student_logits_BTV, dim=-1)
    log_t = torch.log_softmax(teacher_logits_BTV, dim=-1)
    if mix == 0.0:
        return (log_t.exp() * (log_t - log_s)).sum(-1)
    if mix == 1.0:
        return (log_s.exp() * (log_s - log_t)).sum(-1)
    weights = torch.tensor([1.0 - mix, mix], dtype=log_s.dtype, device=log_s.device).log()
    # log M without leaving logarithms: mixing probabilities would underflow in the tail of a large vocabulary.
    log_m = torch.logsumexp(torch.stack([log_s + weights[0], log_t + weights[1]]), dim=0)
    kl_t = (log_t.exp() * (log_t - log_m)).sum(-1)
    kl_s = (log_s.exp() * (log_s - log_m)).sum(-1)
    return mix * kl_t + (1.0 - mix) * kl_s


def skill_sd_BT(logps_BT: Tensor, teacher_logps_BT: Tensor, logps_old_BT: Tensor) -> Tensor:
    """Return Skill-SD's term ``rho' k`` per token (arXiv 2604.10674).

    ``x = l - sg(l_T)``, ``k = exp(min(-x, 20)) - 1 + x``, ``rho' = exp(min(l - sg(l_old), 10))``. Gradient flows
    through both factors; away from the clamps ``d(rho' k)/dl = rho' x``.
    """
    excess_BT = logps_BT - teacher_logps_BT.detach()
    k_BT = torch.exp((-excess_BT).clamp(max=LOG_RATIO_CAP)) - 1.0 + excess_BT
    ratio_BT = torch.exp((logps_BT - logps_old_BT.detach()).clamp(max=10.0))
    return ratio_BT * k_BT


def rlsd_advantages_BT(
    advantages_BT: Tensor, teacher_shift_BT: Tensor, weight: float, low: float = 0.8, high: float = 1.2
) -> Tensor:
    """Return RLSD's advantages ``A' = A [(1 - w) + w clip(exp(sign(A) d), low, high)]`` with ``d = l_T - l_old``.

    Source: arXiv 2604.03128. Everything is detached: the result goes into the clipped loss in place of ``A``. Zero
    stays zero.
    """
    factor_BT = torch.exp(torch.sign(advantages_BT) * teacher_shift_BT).clamp(low, high)
    return (advantages_BT * ((1.0 - weight) + weight * factor_BT)).detach()


def opid_advantages_BT(
    advantages_BT: Tensor,
    episode_shift_BT: Tensor,
    episode_weight: float,
    step_shift_BT: Tensor | None = None,
    step_weight: float = 0.0,
    step_mask_BT: Tensor | None = None,
    adds: bool = False,
) -> Tensor:
    """Return OPID's advantages ``A' = A + w_ep d_ep [+ w_step d_step]``, all detached (arXiv 2606.26790).

    Args:
        advantages_BT: Advantages ``A``.
        episode_shift_BT: ``d_ep = l_T - l_old`` under the episode skill.
        episode_weight: ``w_ep``.
        step_shift_BT: ``d_step`` under the skill of a critical step, where there is one.
        step_weight: ``w_step``.
        step_mask_BT: 1 on tokens of critical steps.
        adds: If true the step shift is added to the episode shift; otherwise it takes its place there.
    """
    guidance_BT = episode_weight * episode_shift_BT
    if step_shift_BT is not None and step_mask_BT is not None:
        step_BT = step_weight * step_shift_BT * step_mask_BT
        guidance_BT = (guidance_BT if adds else guidance_BT * (1 - step_mask_BT)) + step_BT
    return (advantages_BT + guidance_BT).detach()


def opid_loss_BT(logps_BT: Tensor, teacher_logps_BT: Tensor, logps_old_BT: Tensor, clip: float | None = None) -> Tensor:
    """Return OPID's other form, an extra loss ``-sg(d) l`` per token with ``d = l_T - l_old``, instead of advantages.

    Source: arXiv 2606.26790. Unlike :func:`sampled_reverse_kl_BT` the weight stays what it was when the tokens were
    sampled.

    Args:
        logps_BT: Live log-probabilities ``l``, the only gradient.
        teacher_logps_BT: Teacher log-probabilities; detached here.
        logps_old_BT: Behaviour log-probabilities; detached here.
        clip: If given, ``d`` is kept within ``[-clip, clip]`` nats.
    """
    shift_BT = (teacher_logps_BT - logps_old_BT).detach()
    if clip is not None:
        shift_BT = shift_BT.clamp(-clip, clip)
    return -shift_BT * logps_BT
