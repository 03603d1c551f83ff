"""The steps :mod:`seed_trainer.trainer` puts in order: playing, writing, splicing, scoring, teaching.

Each method is one step of a round or of a loss; when they run is decided by the trainer alone.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np
import torch
from accelerate.utils import gather_object
from torch import Tensor
from trl import GRPOTrainer
from trl.models.utils import disable_gradient_checkpointing, unwrap_model_for_generation

from seed_envs.profiles import Profile
from seed_envs.trajectory import Trajectory
from seed_trainer.acting.encoding import ChatEncoder
from seed_trainer.acting.engine import engine_generate
from seed_trainer.acting.generation import CachedSampler, Decoding, EngineSampler, Sampler
from seed_trainer.acting.play import EpisodePlayer, block_tasks
from seed_trainer.acting.rollout import TokenPolicy
from seed_trainer.keeping.kept import KeptTrainer
from seed_trainer.learning import losses
from seed_trainer.learning.batches import (
    add_step_teacher_prompts,
    add_teacher_prompts,
    aggregate_like,
    filler_target,
    pad_right,
)
from seed_trainer.learning.rounds import Block
from seed_trainer.learning.skill_reward import answer_inputs, skill_columns, skill_rewards_N
from seed_trainer.learning.snapshots import WeightHistory
from seed_trainer.learning.teacher import (
    completion_logits,
    loss_mask,
    step_columns,
    student_inputs,
    teacher_columns,
    teacher_inputs,
)
from seed_trainer.learning.teacher_weights import TeacherWeights
from seed_trainer.learning.token_kinds import token_flags
from seed_trainer.settings import schedules
from seed_trainer.settings.config import SEEDConfig
from seed_trainer.settings.options import SkillSource
from seed_trainer.skills.analyzer import SkillWriter
from seed_trainer.skills.library import SkillLibrary
from seed_trainer.skills.prompts import get_analyzer, opposite, outcome_of
from seed_trainer.skills.sources import SkillContext, SkillMemory, assign_skills
from seed_trainer.watching import measures
from seed_trainer.watching.clock import Clock
from seed_trainer.watching.gate_proxy import GateProxy
from seed_trainer.watching.records import EpisodeRecorder
from seed_trainer.watching.staleness import log_staleness


class SEEDSteps(KeptTrainer, GRPOTrainer):
    """What a SEED trainer can do, without the order in which it does it."""

    args: SEEDConfig
    model: Any
    model_wrapped: Any
    max_completion_length: int
    num_generations: int
    pad_to_multiple_of: int | None
    chat_template_kwargs: dict[str, Any]
    profile: Profile
    encoder: ChatEncoder
    player: EpisodePlayer
    generator: torch.Generator
    sampler: Sampler
    skill_source: SkillSource
    library: SkillLibrary | None
    memory: SkillMemory
    weights: WeightHistory
    teacher_weights: TeacherWeights
    recorder: EpisodeRecorder
    clock: Clock
    proxy: GateProxy
    task_types: list[str]
    _block: Block | None
    _captured: list[tuple[Tensor, Tensor]] | None

    # ---------------------------------------------------------------------------------------------- steps of one round

    def _play(self, inputs: list[dict[str, Any]]) -> list[Trajectory]:
        args = self.args
        decoding = Decoding(args.max_turn_length, self.temperature, self.top_p, self.top_k)
        with self.clock("rollout"):
            skill_for = self.library_skill if args.actor_skill != "none" else None
            tasks = block_tasks(inputs, self.num_generations)
            return self.player.play(tasks, self._policy(decoding), skill_for=skill_for)

    def _write_skills(self, block: Block) -> list[Any]:
        """Return the teaching skill of every episode, written now unless the source needs none."""
        own: list[Any] = []
        with self.clock("skills"):
            if self.args.writes_skills:
                told = [outcome_of(episode) for episode in block.episodes]
                if self.skill_source.name == "wrong_outcome":
                    told = [opposite(outcome) for outcome in told]
                with self.weights.analyzer(self._unwrapped, self.round_index):
                    own = self._writer().write(block.episodes, told)
            context = SkillContext(
                block.episodes,
                block.group_size,
                self.round_index,
                self._rng(1),
                self.library,
                self.memory,
                self._random_text,
                gather_object,
            )
            return assign_skills(self.skill_source, own, context)

    def _splice(self, block: Block) -> None:
        texts = [skill.text if skill.valid else "" for skill in block.skills]
        for episode in add_teacher_prompts(block.rows, texts, self.profile, self.encoder, self.context_limit):
            block.skills[episode].reason = "overflow"
        if self.args.adv_step_skill_coef:
            steps = [skill.step_skills if skill.valid else {} for skill in block.skills]
            add_step_teacher_prompts(block.rows, steps, self.profile, self.encoder, self.context_limit)

    def _filler_target(self, rows: int) -> int:
        counts = self.accelerator.gather(torch.tensor([rows], device=self.accelerator.device)).tolist()
        return filler_target(counts, self.args.steps_per_generation, self.num_generations)

    def _score(self, block: Block) -> dict[str, Any]:
        """Let TRL pad the rows and score them; its own reward statistics and log rows are thrown away."""
        self._block = block
        blank = [{"role": "user", "content": ""}]
        inputs: list[dict[str, Any]] = [{"prompt": row.messages if row.images else blank} for row in block.rows]
        logs, self._logs = self._logs, measures.scratch_logs()
        try:
            with self.clock("scoring"):
                batch: dict[str, Any] = super()._generate_and_score_completions(inputs)
        finally:
            self._logs, self._block = logs, None
        device = self.accelerator.device
        batch["episode"] = torch.tensor([row.episode for row in block.rows], device=device)
        batch["success"] = block.success_N[[row.episode for row in block.rows]].to(device)
        return batch

    def _teacher_columns(self, block: Block, batch: dict[str, Any]) -> dict[str, Any]:
        """Return what the loss needs to know about the teacher, row-aligned so that it survives shuffle and split."""
        args, device = self.args, self.accelerator.device
        teaches = block.teaches(args.opd_outcomes)
        columns = teacher_columns(block.rows, teaches, self._tokenizer.pad_token_id, self.pad_to_multiple_of, device)
        types = [block.episodes[row.episode].task_type or "all" for row in block.rows]
        self.task_types += sorted(set(types) - set(self.task_types))
        columns["task_type"] = torch.tensor([self.task_types.index(name) for name in types], device=device)
        if self.profile.action_format.kind == "tags":
            flags = token_flags(block.rows, self.profile.action_format, self.encoder, "action")
            columns["action_tokens"] = pad_right(flags, batch["completion_ids"].size(1), torch.float32).to(device)
        if args.opd_tokens != "all":
            flags = token_flags(block.rows, self.profile.action_format, self.encoder, args.opd_tokens)
            chosen = pad_right(flags, batch["completion_ids"].size(1), torch.float32).to(device)
            columns["opd_mask"] = columns["opd_mask"][:, None] * chosen
        mask = loss_mask(batch) * columns["opd_mask"].view(len(block.rows), -1)
        columns["opd_items"] = self.accelerator.gather(mask.sum()).sum()
        if args.teacher_policy == "snapshot" or args.adv_shaping != "none":
            columns["teacher_logps"] = self._teach(self.model, {**batch, **columns}, chunks=args.steps_per_generation)
        if args.adv_shaping != "none":
            columns["advantages"] = self._shaped_advantages(block, batch, columns, mask)
        if args.skill_reward_coef:
            columns |= self._rewarded_skills(block, {**batch, **columns}, mask)
        return columns

    def _shaped_advantages(self, block: Block, batch: dict[str, Any], columns: dict[str, Any], mask: Tensor) -> Tensor:
        """Return advantages (B, T) shaped by the teacher's shift (RLSD, OPID)."""
        old = self._behaviour(batch)
        shift = (columns["teacher_logps"] - old) * mask
        advantages = batch["advantages"][:, None].expand_as(shift)
        weight = schedules.shaping_weight(self.args, self.round_index)
        if self.args.adv_shaping == "rlsd":
            return losses.rlsd_advantages_BT(advantages, shift, weight)
        if not self.args.adv_step_skill_coef:
            return losses.opid_advantages_BT(advantages, shift, weight)
        step = step_columns(block.rows, self._tokenizer.pad_token_id, self.pad_to_multiple_of, old.device)
        inputs = teacher_inputs({**batch, **step}, self._image_pad_token_id, prefix="step_teacher")
        step_shift = self._score_chunks(self.model, inputs, self.args.steps_per_generation) - old
        step_mask = mask * step["step_mask"][:, None]
        adds = self.args.adv_step_skill == "adds"
        return losses.opid_advantages_BT(
            advantages, shift, weight, step_shift, self.args.adv_step_skill_coef, step_mask, adds
        )

    def _rewarded_skills(self, block: Block, batch: dict[str, Any], mask: Tensor) -> dict[str, Any]:
        """Return the columns of rewarded skill generation: requests, answers, advantages, old log-probabilities."""
        chunks, device = self.args.steps_per_generation, self.accelerator.device
        shift = self._teach(self.model, batch, chunks) - self._behaviour(batch)
        rewards_N = skill_rewards_N(block, shift, mask, batch["episode"])
        columns = skill_columns(block, rewards_N, self.args, self._tokenizer.pad_token_id, device)
        every = torch.arange(len(block.rows), device=device)
        columns["skill_old_logps"] = self._score_chunks(self.model, answer_inputs(columns, every), chunks)
        columns["skill_items"] = self.accelerator.gather(columns["skill_answer_mask"].sum()).sum()
        measures.append_metrics(self, {"skill/reward": float(rewards_N.mean())})
        return columns

    def _behaviour(self, batch: dict[str, Any]) -> Tensor:
        """Return the log-probabilities of the completion tokens under the weights of the round, without gradient."""
        old: Tensor | None = batch.get("old_per_token_logps")
        if old is None:
            old = self._score_chunks(self.model, student_inputs(batch), self.args.steps_per_generation)
        return old

    def _record(self, block: Block, batch: dict[str, Any]) -> None:
        measures.log_round(self, block, batch)
        with self.clock("records"):
            self.recorder.record(self, block, batch)
        if self.args.ages and block.skills and self.round_index % self.args.staleness_every == 0:
            with self.clock("staleness"), self._own_randomness():
                log_staleness(self, block, batch)
        self.weights.remember(self._unwrapped, self.round_index)

    # ------------------------------------------------------------------------------------------------ steps of one loss

    def _teach(self, model: Any, inputs: dict[str, Any], chunks: int = 1) -> Tensor:
        """Return the teacher's log-probabilities of the completion tokens, without gradient."""
        if "teacher_logps" in inputs and self.args.teacher_policy == "snapshot":
            stored: Tensor = inputs["teacher_logps"]
            return stored
        with self.clock("teacher"), self.teacher_weights.lent(self._unwrapped):
            return self._score_chunks(model, teacher_inputs(inputs, self._image_pad_token_id), chunks)

    def _score_chunks(self, model: Any, arguments: dict[str, Any], chunks: int) -> Tensor:
        size = math.ceil(len(arguments["input_ids"]) / chunks)
        with torch.no_grad(), disable_gradient_checkpointing(self.model, self.args.gradient_checkpointing_kwargs):
            logps: Tensor = super()._get_per_token_logps_and_entropies(model, batch_size=size, **arguments)[0]
        return logps

    def _divergence(self, model: Any, inputs: dict[str, Any]) -> Tensor:
        """Return the full-vocabulary divergence per token; costs a second student forward with logits."""
        with self.clock("teacher"), torch.no_grad(), self.teacher_weights.lent(self._unwrapped):
            teacher = completion_logits(model, teacher_inputs(inputs, self._image_pad_token_id), self.temperature)
        student = completion_logits(model, student_inputs(inputs), self.temperature)
        return losses.jsd_BT(student, teacher, self.args.opd_jsd_mix, self.args.opd_top_k or None)

    def _skill_loss(self, inputs: dict[str, Any]) -> Tensor:
        """Return the clipped surrogate of the analyzer's answers in this mini-batch, a token mean over the round."""
        mask = inputs["skill_answer_mask"]
        rows = mask.any(dim=1).nonzero().flatten()
        if not len(rows):
            return mask.new_zeros(())
        # The plain model: processes have different numbers of answers, and a wrapped one would wait for the others.
        logps = super()._get_per_token_logps_and_entropies(self._unwrapped, **answer_inputs(inputs, rows))[0]
        advantages = inputs["skill_advantages"][rows, None]
        term = losses.policy_loss_BT(logps, inputs["skill_old_logps"][rows], advantages, self.args.epsilon)
        accumulation, processes = self.current_gradient_accumulation_steps, self.accelerator.num_processes
        chunks = self.args.steps_per_generation
        return aggregate_like("dapo", term, mask[rows], inputs["skill_items"], accumulation, chunks, processes)

    def _aggregate(self, term: Tensor, mask: Tensor, inputs: dict[str, Any]) -> Tensor:
        items = inputs["opd_items"] if self.args.opd_norm == "own_mask" else inputs["num_items_in_batch"]
        return aggregate_like(
            self.loss_type,
            term,
            mask,
            items,
            self.current_gradient_accumulation_steps,
            self.args.steps_per_generation,
            self.accelerator.num_processes,
            self.max_completion_length,
        )

    @contextmanager
    def _capture(self) -> Iterator[list[tuple[Tensor, Tensor]]]:
        captured: list[tuple[Tensor, Tensor]] = []
        self._captured = captured
        try:
            yield captured
        finally:
            self._captured = None

    # --------------------------------------------------------------------------------------------------------- helpers

    @property
    def round_index(self) -> int:
        """Number of the current round, counted over the whole run."""
        return int(self._step // self.args.micro_steps_per_round)

    @property
    def gate_beta(self) -> float:
        """Sharpness of the gate in this round."""
        return schedules.gate_beta(self.args, self.round_index, int(self.state.max_steps / self.args.steps_per_round))

    @property
    def context_limit(self) -> int | None:
        """Longest sequence the model can read, in tokens, where it says so."""
        limit = getattr(self.model.config.get_text_config(), "max_position_embeddings", None)
        return None if limit is None else int(limit)

    @property
    def _teaches(self) -> bool:
        return schedules.distills(self.args, self.round_index) or self.args.adv_shaping != "none"

    @property
    def _current(self) -> Block:
        if self._block is None:
            raise RuntimeError("TRL asked for completions outside a SEED round; trl>=1.16,<1.17 is supported")
        return self._block

    @property
    def _unwrapped(self) -> Any:
        return self.accelerator.unwrap_model(self.model)

    def _make_sampler(self) -> Sampler:
        engine = self.args.rollout_engine
        if engine == "auto":
            engine = "trl" if self.use_vllm or self._is_vlm else "cached"
        if engine == "trl":
            return EngineSampler(self._engine_generate)
        return CachedSampler(
            self._unwrap, self.eos_token_ids, self._tokenizer.pad_token_id, self.accelerator.device, self.generator
        )

    def _unwrap(self) -> AbstractContextManager[Any]:
        context: AbstractContextManager[Any] = unwrap_model_for_generation(
            self.model_wrapped,
            self.accelerator,
            gradient_checkpointing_kwargs=self.args.gradient_checkpointing_kwargs,
        )
        return context

    def _engine_generate(
        self, contexts: list[list[int]], images: Sequence[list[Any]] | None, decoding: Decoding
    ) -> tuple[list[list[int]], list[list[float]] | None]:
        return engine_generate(self, contexts, images, decoding)

    def _policy(self, decoding: Decoding) -> TokenPolicy:
        self.sampler.forget()
        return TokenPolicy(
            self.encoder,
            self.sampler,
            self.profile,
            self.args.rollout_layout,
            decoding,
            self.args.max_prompt_length,
        )

    def _writer(self, temperature: float | None = None) -> SkillWriter:
        """Return the analyzer; a temperature takes the place of the configured one."""
        analyzer = get_analyzer(self.args.skill_analyzer, self.profile.style)
        writer = SkillWriter(self.encoder, self.sampler, self.args.rollout_layout, analyzer, self.args)
        if temperature is not None:
            writer.decoding = dataclasses.replace(writer.decoding, temperature=temperature)
        return writer

    def library_skill(self, episode: Trajectory) -> str:
        """Return the library's advice for an episode that is about to begin."""
        return "" if self.library is None else self.library.skill(episode.task_type)

    def _random_text(self, length: int) -> str:
        rng = self._rng(3)
        ids = rng.integers(0, len(self._tokenizer), size=length).tolist()
        return str(self._tokenizer.decode(ids, skip_special_tokens=True))

    def _rng(self, purpose: int) -> np.random.Generator:
        return np.random.default_rng([self.args.seed, self.accelerator.process_index, self.round_index, purpose])

    @contextmanager
    def _own_randomness(self) -> Iterator[None]:
        """Let diagnostics sample without changing what training samples next."""
        state = self.generator.get_state()
        try:
            yield
        finally:
            self.generator.set_state(state)

    def _seed(self, purpose: int) -> None:
        """Seed sampling from run seed, process, round and purpose, so that resuming repeats it exactly."""
        self.generator.manual_seed(int(self._rng(purpose).integers(2**62)))
