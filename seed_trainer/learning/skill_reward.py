"""Rewarded skill generation: a policy-gradient term on the analyzer's own answers. An extension, off by default.

A skill is rewarded where it makes the tokens of a solved episode likelier and those of a failed one less likely, so
that the gate learns to agree with outcomes; an unusable answer gets the lowest reward. It is no published recipe, and a
skill that only repeats its episode's outcome can earn the reward too.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from seed_trainer.learning.batches import pad_left, pad_right
from seed_trainer.learning.rounds import Block, advantages_among
from seed_trainer.settings.options import SEEDOptions

LOWEST = -1.0


def skill_rewards_N(block: Block, shift_BT: Tensor, mask_BT: Tensor, episode_B: Tensor) -> Tensor:
    """Return ``(2 won - 1) mean D`` of every episode within [-1, 1], and -1 where the skill is unusable.

    Args:
        block: The round.
        shift_BT: ``D = l_T - l`` under the episode's own skill.
        mask_BT: Tokens with a valid skill.
        episode_B: Episode number of every row.
    """
    count = len(block.episodes)
    zeros = torch.zeros(count, device=shift_BT.device)
    sums_N = zeros.index_add(0, episode_B, (shift_BT * mask_BT).sum(-1))
    counts_N = zeros.index_add(0, episode_B, mask_BT.to(zeros.dtype).sum(-1))
    signs_N = 2 * block.success_N.to(shift_BT.device) - 1
    rewards_N = (signs_N * sums_N / counts_N.clamp(min=1)).clamp(LOWEST, 1.0)
    return torch.where(counts_N > 0, rewards_N, torch.full_like(rewards_N, LOWEST))


def skill_columns(
    block: Block, rewards_N: Tensor, options: SEEDOptions, pad_token_id: int, device: torch.device
) -> dict[str, Tensor]:
    """Return the analyzer's requests and answers beside the first row of their episode, with their advantages.

    Returns:
        ``skill_prompt_ids``, ``skill_prompt_mask`` (B, P), ``skill_answer_ids``, ``skill_answer_mask`` (B, A) and
        ``skill_advantages`` (B,); rows without an answer have an empty mask.
    """
    written = [bool(skill.answer_ids) for skill in block.skills]
    advantages_N = advantages_among(rewards_N.tolist(), written, block.group_size, options.adv_std)
    seen: set[int] = set()
    prompts, answers, advantages = [], [], []
    for row in block.rows:
        first = row.episode not in seen and not row.filler and written[row.episode]
        seen.add(row.episode)
        skill = block.skills[row.episode]
        prompts.append(skill.prompt_ids if first else [pad_token_id])
        answers.append(skill.answer_ids if first else [])
        advantages.append(float(advantages_N[row.episode]) if first else 0.0)
    ids, mask = pad_left(prompts, pad_token_id)
    width = max(1, *map(len, answers))
    return {
        "skill_prompt_ids": ids.to(device),
        "skill_prompt_mask": mask.to(device),
        "skill_answer_ids": pad_right(answers, width, torch.long).to(device),
        "skill_answer_mask": pad_right([[1.0] * len(answer) for answer in answers], width, torch.float32).to(device),
        "skill_advantages": torch.tensor(advantages, device=device),
    }


def answer_inputs(batch: dict[str, Any], rows: Tensor) -> dict[str, Any]:
    """Return the scoring arguments of the chosen rows' answers."""
    prompts, answers = batch["skill_prompt_ids"][rows], batch["skill_answer_ids"][rows]
    masks = [batch["skill_prompt_mask"][rows], batch["skill_answer_mask"][rows].long()]
    return {
        "input_ids": torch.cat([prompts, answers], dim=1),
        "attention_mask": torch.cat(masks, dim=1),
        "logits_to_keep": answers.size(1),
    }
