"""One round's episodes with everything known about them, and the advantages that follow from their outcomes."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from seed_envs.trajectory import Step, Trajectory
from seed_trainer.learning.advantages import (
    AdvantageStd,
    discounted_returns,
    gigpo_step_advantages_S,
    group_advantages_N,
    penalised_return,
    step_advantages_S,
)
from seed_trainer.learning.batches import Row
from seed_trainer.settings.options import SEEDOptions
from seed_trainer.skills.parsing import HindsightSkill


@dataclass
class Block:
    """The episodes of one round on this process.

    Attributes:
        episodes: Trajectories, the group of one task next to each other.
        group_size: Episodes per task.
        skills: Teaching skill of every episode; empty in rounds without a teacher.
        rows: Training rows, fillers last.
        advantages_N: Advantage of every episode.
        skill_rewards_N: Reward of every skill, where skills are rewarded.
    """

    episodes: list[Trajectory]
    group_size: int
    skills: list[HindsightSkill] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    advantages_N: Tensor = field(default_factory=lambda: torch.zeros(0))
    skill_rewards_N: Tensor | None = None

    @property
    def returns_N(self) -> Tensor:
        """Total reward of every episode."""
        return torch.tensor([episode.total_reward for episode in self.episodes])

    @property
    def success_N(self) -> Tensor:
        """1 where the task was solved."""
        return torch.tensor([float(episode.success) for episode in self.episodes])

    def teaches(self, outcomes: str = "all") -> list[bool]:
        """Return for every episode whether its skill takes part (m of the paper); after a fault none does."""
        wanted = {"all": (True, False), "success": (True,), "failure": (False,)}[outcomes]
        return [
            skill.valid and episode.stop_reason.scored and episode.success in wanted
            for skill, episode in zip(self.skills, self.episodes, strict=True)
        ]


def episode_advantages_N(block: Block, options: SEEDOptions) -> Tensor:
    """Return one advantage per episode; an episode ended by a fault counts neither for itself nor for its group."""
    returns = [
        penalised_return(
            episode.total_reward,
            sum(not step.is_valid(options.adv_penalised) for step in episode.steps),
            episode.num_steps,
            options.adv_invalid_penalty,
        )
        for episode in block.episodes
    ]
    scored = [episode.stop_reason.scored for episode in block.episodes]
    return advantages_among(returns, scored, block.group_size, options.adv_std)


def advantages_among(returns: Sequence[float], counted: Sequence[bool], group_size: int, std: AdvantageStd) -> Tensor:
    """Return advantages (N,) within groups, among the episodes that count; those of the others are 0."""
    advantages_N = torch.zeros(len(returns))
    for start in range(0, len(returns), group_size):
        members = [index for index in range(start, min(start + group_size, len(returns))) if counted[index]]
        if members:
            values = torch.tensor([returns[index] for index in members])
            advantages_N[members] = group_advantages_N(values, len(members), std)
    return advantages_N


def row_advantages_B(block: Block, options: SEEDOptions) -> Tensor:
    """Return one advantage per row, fillers 0, scaled by ``rl_coef``."""
    if options.adv_unit == "step":
        by_step = _step_unit(block, options)
    else:
        by_step = [[float(value)] * max(episode.num_steps, 1) for value, episode in _pairs(block)]
    if options.gigpo_coef:
        for steps, extra in zip(by_step, _gigpo(block, options), strict=True):
            for index, value in enumerate(extra):
                steps[index] += options.gigpo_coef * value
    values = [0.0 if row.filler else options.rl_coef * by_step[row.episode][row.step] for row in block.rows]
    return torch.tensor(values, dtype=torch.float32)


def _pairs(block: Block) -> Sequence[tuple[Tensor, Trajectory]]:
    return list(zip(block.advantages_N, block.episodes, strict=True))


def _scored(block: Block) -> list[int]:
    """Return the episodes whose outcome says something about the policy; faults of the machinery do not."""
    return [index for index, episode in enumerate(block.episodes) if episode.stop_reason.scored]


def _by_step(block: Block, flat: Tensor) -> list[list[float]]:
    """Hand the values of all steps of scored episodes back to their steps; the steps of others get 0."""
    values, scored = iter(flat.tolist()), set(_scored(block))
    return [
        [next(values) if index in scored else 0.0 for _ in episode.steps]
        for index, episode in enumerate(block.episodes)
    ]


def _step_groups(block: Block) -> list[int]:
    return [index // block.group_size for index in _scored(block) for _ in block.episodes[index].steps]


def _step_unit(block: Block, options: SEEDOptions) -> list[list[float]]:
    scores = [
        block.episodes[index].total_reward
        - (0.0 if step.is_valid(options.adv_penalised) else options.adv_invalid_penalty)
        for index in _scored(block)
        for step in block.episodes[index].steps
    ]
    return _by_step(block, step_advantages_S(torch.tensor(scores), _step_groups(block), options.adv_std))


def _gigpo(block: Block, options: SEEDOptions) -> list[list[float]]:
    episodes = [block.episodes[index] for index in _scored(block)]
    returns = [
        value
        for episode in episodes
        for value in discounted_returns([step.reward for step in episode.steps], options.gigpo_gamma)
    ]
    anchors = [_anchor(step) for episode in episodes for step in episode.steps]
    flat = gigpo_step_advantages_S(
        torch.tensor(returns), _step_groups(block), anchors, options.adv_std, options.gigpo_similarity
    )
    return _by_step(block, flat)


def _anchor(step: Step) -> str:
    """Return what tells one state from another: the observation, with the bytes of its picture if it has one."""
    image = getattr(step.context, "image", None)
    if image is None:
        return step.observation
    return hashlib.sha256(step.observation.encode() + np.ascontiguousarray(image).tobytes()).hexdigest()
