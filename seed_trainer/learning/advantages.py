"""Advantages from episode outcomes.

One scalar per trajectory (the paper) or one per environment step (the released code), normalised within the group of
trajectories of one task, with the divisor named. GiGPO's step-level part is here too. No bootstrapping and no learned
value function. Axes: N episodes (groups of G in a row), S step samples.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

AdvantageStd = Literal["population", "sample", "off"]
ADVANTAGE_EPS = 1e-6


def _normalise(values: Tensor, std: AdvantageStd, eps: float) -> Tensor:
    """Normalise one group, shape (n,). A group without spread gives exactly zero."""
    centred = values - values.mean()
    # The float mean of equal numbers need not equal them; divided by almost nothing, that rounding would teach.
    if bool((values == values[0]).all()):
        return torch.zeros_like(values)
    if std == "off":
        return centred
    return centred / (values.std(correction=0 if std == "population" else 1) + eps)


def group_advantages_N(
    returns_N: Tensor, group_size: int, std: AdvantageStd = "population", eps: float = ADVANTAGE_EPS
) -> Tensor:
    """Return ``A = (R - mean) / (sigma + eps)`` within consecutive groups of ``group_size`` episodes.

    Args:
        returns_N: Episode outcomes, the episodes of one task next to each other.
        group_size: Trajectories per task (the paper's N).
        std: ``population`` (the paper), ``sample`` (unbiased, the released code) or ``off`` (mean only).
        eps: Added to the divisor.

    Returns:
        One advantage per episode; exactly 0 in a tied group.

    Raises:
        ValueError: If the number of episodes is not a multiple of the group size.
    """
    if returns_N.numel() % group_size:
        raise ValueError(f"{returns_N.numel()} returns cannot be split into groups of {group_size}")
    groups = returns_N.float().view(-1, group_size)
    return torch.cat([_normalise(group, std, eps) for group in groups])


def step_advantages_S(
    scores_S: Tensor, group_S: Sequence[int], std: AdvantageStd = "sample", eps: float = ADVANTAGE_EPS
) -> Tensor:
    """Return advantages normalised over the *step samples* of a group (``adv_unit="step"``, the released code).

    Long episodes weigh more in mean and divisor, and a per-step penalty breaks ties within an episode. A lone sample
    keeps its score (the released code's mean 0, divisor 1).

    Args:
        scores_S: Score of each step sample: the outcome of its episode, minus any penalty of that step.
        group_S: Group number (task) of each sample.
        std: Divisor.
        eps: Added to the divisor.
    """
    advantages = torch.zeros_like(scores_S, dtype=torch.float32)
    groups = torch.as_tensor(list(group_S))
    for group in groups.unique():
        member = groups == group
        values = scores_S[member].float()
        advantages[member] = values if values.numel() == 1 else _normalise(values, std, eps)
    return advantages


def discounted_returns(rewards: Sequence[float], gamma: float) -> list[float]:
    """Return ``sum_j gamma^j r_(t+j)`` for every step of one episode."""
    returns: list[float] = []
    running = 0.0
    for reward in reversed(rewards):
        running = reward + gamma * running
        returns.append(running)
    return returns[::-1]


def gigpo_step_advantages_S(
    returns_S: Tensor,
    group_S: Sequence[int],
    anchors_S: Sequence[str],
    std: AdvantageStd = "sample",
    similarity: float = 1.0,
    eps: float = ADVANTAGE_EPS,
) -> Tensor:
    """Return GiGPO's step-level advantages: discounted returns compared where two trajectories met the same state.

    Args:
        returns_S: Discounted return from each step on.
        group_S: Group number (task) of each step sample.
        anchors_S: Anchor observation of each step sample.
        std: Divisor.
        similarity: 1.0 compares identical anchors; below 1, anchors whose ``difflib`` ratio reaches it join the
            first such cluster of the group.
        eps: Added to the divisor.

    Returns:
        One value per step sample; 0 where nobody else met the state.
    """
    clusters: dict[int, list[tuple[str, list[int]]]] = {}
    for index, (group, anchor) in enumerate(zip(group_S, anchors_S, strict=True)):
        known = clusters.setdefault(group, [])
        for text, members in known:
            if text == anchor or (
                similarity < 1.0 and difflib.SequenceMatcher(None, text, anchor).ratio() >= similarity
            ):
                members.append(index)
                break
        else:
            known.append((anchor, [index]))
    advantages = torch.zeros_like(returns_S, dtype=torch.float32)
    for known in clusters.values():
        for _, members in known:
            if len(members) > 1:
                advantages[members] = _normalise(returns_S[members].float(), std, eps)
    return advantages


def penalised_return(outcome: float, invalid_steps: int, steps: int, penalty: float) -> float:
    """Return the outcome minus ``penalty`` times the share of invalid steps (``adv_unit="trajectory"``).

    With the penalty at 0 (the default) a tied group stays exactly tied.
    """
    return outcome - penalty * invalid_steps / steps if steps else outcome
