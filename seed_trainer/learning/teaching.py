"""Self-distillation of one round: who teaches which row, and the loss that follows from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from seed_envs.profiles import Profile
from seed_trainer.acting.encoding import ChatEncoder
from seed_trainer.learning import losses
from seed_trainer.learning.aggregation import aggregate
from seed_trainer.learning.batches import (
    Row,
    add_step_teacher_prompts,
    add_teacher_prompts,
    pad_left,
    pad_right,
)
from seed_trainer.learning.distillation import distillation_BT
from seed_trainer.learning.rounds import Block
from seed_trainer.learning.scorer import Batch, Scorer
from seed_trainer.learning.scores import Scores, distilled_mask
from seed_trainer.learning.skill_reward import answer_inputs, skill_columns, skill_rewards_N
from seed_trainer.learning.teacher import step_columns, teacher_columns
from seed_trainer.learning.token_kinds import token_flags
from seed_trainer.settings import schedules
from seed_trainer.settings.config import SEEDConfig
from seed_trainer.settings.schedules import Moment
from seed_trainer.skills.parsing import HindsightSkill


class Teaching:
    """Gives rows their teacher, and a mini-batch its distillation loss.

    Args:
        args: Configuration.
        scorer: Forward passes.
        encoder: The model's encoder.
        profile: Profile that rendered the prompts.
    """

    def __init__(self, args: SEEDConfig, scorer: Scorer, encoder: ChatEncoder, profile: Profile) -> None:
        self.args = args
        self.scorer = scorer
        self.encoder = encoder
        self.profile = profile
        trainer = scorer.trainer
        self.accelerator = trainer.accelerator
        self.pad_token_id: int = encoder.tokenizer.pad_token_id
        self.multiple: Any = trainer.pad_to_multiple_of

    @property
    def context_limit(self) -> int | None:
        """Longest sequence the model can read, in tokens, where it says so."""
        limit = getattr(self.scorer.model.config.get_text_config(), "max_position_embeddings", None)
        return None if limit is None else int(limit)

    # ---------------------------------------------------------------------------------------------------- of one round

    def splice(self, rows: Sequence[Row], skills: Sequence[HindsightSkill]) -> set[int]:
        """Give every row its teacher prompt and return the episodes whose skill does not fit the model's context."""
        texts = [skill.text if skill.valid else "" for skill in skills]
        return add_teacher_prompts(rows, texts, self.profile, self.encoder, self.context_limit)

    def splice_steps(self, rows: Sequence[Row], skills: Sequence[HindsightSkill]) -> None:
        """Give rows of critical steps the prompt with the skill of that step."""
        steps = [skill.step_skills if skill.valid else {} for skill in skills]
        add_step_teacher_prompts(rows, steps, self.profile, self.encoder, self.context_limit)

    def prompt_columns(self, rows: list[Row], teaches: list[bool]) -> dict[str, Tensor]:
        """Return the teacher's prompts as columns, and which rows learn from them."""
        return teacher_columns(rows, teaches, self.pad_token_id, self.multiple, self.accelerator.device)

    def batch(self, rows: list[Row], teaches: list[bool]) -> Batch:
        """Return rows as a batch with their teacher, for scoring outside of training."""
        device = self.accelerator.device
        prompt_ids, prompt_mask = pad_left([row.prompt_ids for row in rows], self.pad_token_id, self.multiple)
        width = max(len(row.completion_ids) for row in rows)
        columns = {
            "prompt_ids": prompt_ids,
            "prompt_mask": prompt_mask,
            "completion_ids": pad_right([row.completion_ids for row in rows], width, torch.long),
            "completion_mask": pad_right([[1] * len(row.completion_ids) for row in rows], width, torch.long),
            "tool_mask": pad_right([row.mask for row in rows], width, torch.long),
            "episode": torch.tensor([row.episode for row in rows]),
        }
        batch = {name: column.to(device) for name, column in columns.items()}
        pictures = self.encoder.picture_fields([row.images or [] for row in rows], device)
        return {**batch, **pictures, **self.prompt_columns(rows, teaches)}

    def columns(self, block: Block, batch: Batch, moment: Moment) -> Batch:
        """Return what the loss needs to know about the teacher, row-aligned so that it survives shuffle and split."""
        args = self.args
        columns: Batch = dict(self.prompt_columns(block.rows, block.teaches(args.opd_outcomes)))
        width = batch["completion_ids"].size(1)
        if self.profile.action_format.kind == "tags":
            columns["action_tokens"] = self._flags(block.rows, "action", width)
        if args.opd_tokens != "all":
            columns["opd_mask"] = columns["opd_mask"][:, None] * self._flags(block.rows, args.opd_tokens, width)
        mask = distilled_mask({**batch, **columns})
        if not self._total(mask) and args.adv_shaping == "none" and not args.skill_reward_coef:
            return {}  # no token learns from any teacher, on no process
        if args.teacher_policy == "snapshot" or args.adv_shaping != "none":
            chunks = args.steps_per_generation
            columns["teacher_logps"] = self.scorer.teacher(self.scorer.model, {**batch, **columns}, chunks)
        if args.adv_shaping != "none":
            columns["advantages"] = self._shaped_advantages(block, batch, columns, mask, moment)
        if args.skill_reward_coef:
            columns |= self._rewarded_skills(block, {**batch, **columns}, mask)
        return columns

    def _flags(self, rows: list[Row], kind: str, width: int) -> Tensor:
        flags = token_flags(rows, self.profile.action_format, self.encoder, kind)
        return pad_right(flags, width, torch.float32).to(self.accelerator.device)

    def _total(self, mask: Tensor) -> Tensor:
        total: Tensor = self.accelerator.gather(mask.sum()).sum()
        return total

    def _shaped_advantages(self, block: Block, batch: Batch, columns: Batch, mask: Tensor, moment: Moment) -> Tensor:
        """Return advantages (B, T) shaped by the teacher's shift (RLSD, OPID)."""
        old = self.scorer.behaviour(batch)
        shift = (columns["teacher_logps"] - old) * mask
        advantages = batch["advantages"][:, None].expand_as(shift)
        weight = schedules.shaping_weight(self.args, moment.round_index)
        if self.args.adv_shaping == "rlsd":
            return losses.rlsd_advantages_BT(advantages, shift, weight)
        if not self.args.adv_step_skill_coef:
            return losses.opid_advantages_BT(advantages, shift, weight)
        step = step_columns(block.rows, self.pad_token_id, self.multiple, old.device)
        chunks = self.args.steps_per_generation
        step_teacher = self.scorer.other_teacher(self.scorer.model, {**batch, **step}, chunks, prefix="step_teacher")
        step_mask = mask * step["step_mask"][:, None]
        adds = self.args.adv_step_skill == "adds"
        return losses.opid_advantages_BT(
            advantages, shift, weight, step_teacher - old, self.args.adv_step_skill_coef, step_mask, adds
        )

    def _rewarded_skills(self, block: Block, batch: Batch, mask: Tensor) -> Batch:
        """Return the columns of rewarded skill generation: requests, answers, advantages, old log-probabilities."""
        chunks, model = self.args.steps_per_generation, self.scorer.model
        shift = self.scorer.teacher(model, batch, chunks) - self.scorer.behaviour(batch)
        rewards_N = block.skill_rewards_N = skill_rewards_N(block, shift, mask, batch["episode"])
        columns: Batch = dict(skill_columns(block, rewards_N, self.args, self.pad_token_id, self.accelerator.device))
        every = torch.arange(len(block.rows), device=self.accelerator.device)
        columns["skill_old_logps"] = self.scorer.logps(model, answer_inputs(columns, every), chunks)
        columns["skill_items"] = self._total(columns["skill_answer_mask"])
        return columns

    # ----------------------------------------------------------------------------------------------- of one mini-batch

    def loss(self, model: Any, scores: Scores, inputs: Batch) -> Tensor:
        """Return ``Agg_m[z]`` of the configured term ``z``, before its weight."""
        divergence = self.args.opd_term == "jsd"
        term = self.scorer.divergence(model, inputs) if divergence else distillation_BT(self.args, scores)
        return self.aggregate(term, scores.mask, inputs)

    def aggregate(self, term: Tensor, mask: Tensor, inputs: Batch) -> Tensor:
        """Return the micro-batch's contribution to the mean of a term over a mask."""
        units = inputs["opd_units" if self.args.opd_norm == "own_mask" else "rl_units"]
        max_length = self.args.max_completion_length or 1
        return aggregate(self.args.loss_type, term, mask, units, self._share, max_length)

    @property
    def _share(self) -> float:
        """What part of a round one process adds up before its optimiser step."""
        accumulation = self.scorer.trainer.current_gradient_accumulation_steps
        return float(accumulation / self.args.steps_per_generation / self.accelerator.num_processes)

    def skill_loss(self, inputs: Batch) -> Tensor:
        """Return the clipped surrogate of the analyzer's answers in this mini-batch, a token mean over the round."""
        mask = inputs["skill_answer_mask"]
        rows = mask.any(dim=1).nonzero().flatten()
        if not len(rows):
            zero: Tensor = mask.new_zeros(())
            return zero
        # The plain model: processes have different numbers of answers, and a wrapped one would wait for the others.
        logps, _ = self.scorer.live(self.scorer.unwrapped, answer_inputs(inputs, rows))
        advantages = inputs["skill_advantages"][rows, None]
        term = losses.policy_loss_BT(logps, inputs["skill_old_logps"][rows], advantages, self.args.epsilon)
        return aggregate("dapo", term, mask[rows], inputs["skill_items"], self._share)
