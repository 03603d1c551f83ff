"""``SEEDTrainer(GRPOTrainer)``: GRPO plus hindsight self-distillation.

What it changes, and nothing else:

1. ``_generate_and_score_completions`` is one round: play episodes, write skills about them, lay out rows, let TRL pad
   and score them, then put in trajectory advantages and the teacher's columns.
2. ``_generate`` and ``_calculate_rewards`` hand the finished rows and returns to TRL.
3. ``_get_per_token_logps_and_entropies`` remembers the student's scores and uses larger chunks without gradient.
4. ``_compute_loss`` scores the same tokens as teacher, lets TRL compute its loss, and adds the distillation term.
5. ``evaluate`` plays a fixed panel with the plain policy: no skill, no analyzer.

With ``opd_coef=0`` it is GRPO on the same rows. It holds no formula (:mod:`seed_trainer.losses`) and no prompt.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
import trl
from datasets import Dataset
from torch import Tensor
from transformers import ProgressCallback, Trainer, TrainerCallback
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR
from trl import GRPOTrainer
from trl.models.utils import disable_gradient_checkpointing, unwrap_model_for_generation

from seed_envs.profiles import Profile
from seed_envs.trajectory import Trajectory
from seed_trainer import losses, measures, schedules
from seed_trainer.batches import (
    add_step_teacher_prompts,
    add_teacher_prompts,
    aggregate_like,
    build_rows,
    filler_target,
    pad_right,
    with_fillers,
)
from seed_trainer.callbacks import RunFiles, SuccessProgress
from seed_trainer.clock import Clock
from seed_trainer.config import SEEDConfig
from seed_trainer.distillation import Scores, distillation_BT, gates_BT
from seed_trainer.encoding import ChatEncoder
from seed_trainer.engine import engine_generate
from seed_trainer.evaluation import EVALUATIONS_FILE, evaluate_panel
from seed_trainer.generation import CachedSampler, Decoding, EngineSampler, Sampler
from seed_trainer.linelog import LineLog
from seed_trainer.model_card import model_card, write_model_card
from seed_trainer.options import parse_skill_source
from seed_trainer.play import EpisodePlayer, MakeEnv, block_tasks
from seed_trainer.records import EpisodeRecorder
from seed_trainer.rollout import TokenPolicy, as_growing
from seed_trainer.rounds import Block, episode_advantages_N, row_advantages_B
from seed_trainer.skills.analyzer import SkillWriter
from seed_trainer.skills.library import SkillLibrary
from seed_trainer.skills.prompts import get_analyzer, opposite, outcome_of
from seed_trainer.skills.sources import SkillContext, SkillMemory, assign_skills
from seed_trainer.snapshots import WeightHistory
from seed_trainer.staleness import log_staleness
from seed_trainer.teacher import (
    completion_logits,
    loss_mask,
    step_columns,
    student_inputs,
    teacher_columns,
    teacher_inputs,
)
from seed_trainer.token_kinds import token_flags

RETURN_NAME = "episode_return"


def _no_reward(completions: list[Any], **kwargs: Any) -> list[float | None]:
    """Stand in for TRL's mandatory reward function; ``_calculate_rewards`` never calls it."""
    return [0.0] * len(completions)


class SEEDTrainer(GRPOTrainer):
    """Trains a language model on an environment with GRPO and hindsight self-distillation.

    Args:
        model: Path or model. With ``args.beta > 0`` and full fine-tuning the reference is loaded from its path.
        args: Configuration.
        make_env: Builds one agent environment (see :func:`seed_envs.make_agent_env`).
        profile: The profile of that environment.
        env_id: Name recorded in trajectories.
        train_dataset: Rows with ``task_id``, ``split`` and/or ``seed``; one row is one task.
        eval_dataset: The fixed evaluation panel, same columns.
        processing_class: Tokenizer or processor; loaded from the model's path by default.
        callbacks: Further callbacks.
        optimizers: Optimiser and scheduler.
        peft_config: Adapter configuration.
        quantization_config: Quantisation of a model given as path.

    Raises:
        ValueError: For a dataset smaller than one round, or a template that cannot do what the layout needs.
    """

    args: SEEDConfig
    model: Any
    model_wrapped: Any
    max_completion_length: int
    num_generations: int
    pad_to_multiple_of: int | None
    chat_template_kwargs: dict[str, Any]
    _tag_names = ["seed", "grpo", "trl"]
    _name = "SEED"
    _paper = {"title": "SEED: Self-Evolving On-Policy Distillation for Agentic RL", "id": "2607.14777"}

    def __init__(
        self,
        model: Any,
        args: SEEDConfig,
        make_env: MakeEnv,
        profile: Profile,
        train_dataset: Dataset,
        env_id: str = "",
        eval_dataset: Dataset | None = None,
        processing_class: Any = None,
        callbacks: Sequence[TrainerCallback] | None = None,
        optimizers: tuple[Any, Any] = (None, None),
        peft_config: Any = None,
        quantization_config: Any = None,
    ) -> None:
        episodes = args.per_device_train_batch_size * args.steps_per_generation * args.world_size
        tasks_per_round = episodes // args.num_generations
        if len(train_dataset) < tasks_per_round:
            raise ValueError(f"{len(train_dataset)} training tasks are fewer than the {tasks_per_round} of one round")
        super().__init__(
            model=model,
            reward_funcs=_no_reward,
            args=args,
            train_dataset=train_dataset,
            eval_dataset=eval_dataset,
            processing_class=processing_class,
            callbacks=list(callbacks or []),
            optimizers=optimizers,
            peft_config=peft_config,
            quantization_config=quantization_config,
        )
        if self.is_fsdp_enabled or (self.is_deepspeed_enabled and self.accelerator.deepspeed_plugin.zero_stage == 3):
            raise NotImplementedError("episodes differ in length between processes, which deadlocks FSDP and ZeRO-3")
        if self.pop_callback(ProgressCallback) is not None:
            self.add_callback(SuccessProgress)
        self.reward_func_names = [RETURN_NAME]
        self.profile = as_growing(profile) if args.rollout_layout == "episode" else profile
        self.encoder = ChatEncoder(
            self.processing_class,
            self._tokenizer,
            self.chat_template,
            self.chat_template_kwargs,
            self.eos_token_ids,
        )
        self.player = EpisodePlayer(make_env, env_id, self.profile, args.max_concurrent_episodes, args.env_backend)
        self.generator = torch.Generator(device=self.accelerator.device)
        self.sampler = self._make_sampler()
        self.skill_source = parse_skill_source(args.skill_source)
        self.library = SkillLibrary.load(args.skill_library) if args.skill_library else None
        self.memory = SkillMemory()
        self.weights = WeightHistory(args.ages, self.skill_source)
        self.recorder = EpisodeRecorder(args)
        self.evaluations = LineLog(Path(args.output_dir) / EVALUATIONS_FILE)
        self.add_callback(RunFiles(args.output_dir, [self.recorder.log, self.evaluations]))
        self.clock = Clock()
        self._block: Block | None = None
        self._captured: list[tuple[Tensor, Tensor]] | None = None

    # ------------------------------------------------------------------------------------------------- the whole step

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        """Make one round's training batch, in the order of the paper's Algorithm 1."""
        self._seed(0)
        block = Block(self._play(inputs), self.num_generations)  # sample with theta_old
        block.advantages_N = episode_advantages_N(block, self.args)  # A = (R - mu) / sigma
        block.rows = build_rows(block.episodes, self.args.rollout_layout)
        if self._teaches:
            block.skills = self._write_skills(block)  # s = A_theta_old(episode, outcome), or a control's
            self._splice(block)  # h~ = H(h, s), same history, same response tokens
        block.rows = with_fillers(block.rows, self._filler_target(len(block.rows)))
        batch = self._score(block)  # l_old and l_ref by TRL
        batch["advantages"] = row_advantages_B(block, self.args).to(self.accelerator.device)
        if block.skills:
            batch.update(self._teacher_columns(block, batch))  # m, teacher prompts, l_T if a snapshot
        self._record(block, batch)
        return batch

    def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> Tensor:
        """Return ``L_rl + lambda Agg_m[g (sg(l_T) - l)]`` for one mini-batch."""
        if "opd_mask" not in inputs or not schedules.distills(self.args, self.round_index):
            return super()._compute_loss(model, inputs)
        teacher = self._teach(model, inputs)  # l_T: live weights, skill in the prompt, no gradient
        with self._capture() as captured:
            loss = super()._compute_loss(model, inputs)  # L_rl, scoring the student once
        ((logps, entropies),) = captured  # exactly one scoring of the student
        mask = loss_mask(inputs) * inputs["opd_mask"].view(len(logps), -1)
        old = inputs.get("old_per_token_logps", logps.detach())
        scores = Scores(logps, old, teacher, entropies, mask, inputs["episode"])
        gates = gates_BT(self.args, scores, self.gate_beta)  # g = sg(sigmoid(beta D))
        if self.args.opd_term == "jsd":
            term = self._divergence(model, inputs)
        else:
            term = distillation_BT(self.args, scores, gates)  # g (sg(l_T) - l)
        opd = self._aggregate(term, mask, inputs)
        measures.log_distillation(self, scores, gates, opd, inputs)
        return loss + self.args.opd_coef * opd

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
            )
            return assign_skills(self.skill_source, own, context)

    def _splice(self, block: Block) -> None:
        texts = [skill.text if skill.valid else "" for skill in block.skills]
        limit = getattr(self.model.config.get_text_config(), "max_position_embeddings", None)
        for episode in add_teacher_prompts(block.rows, texts, self.profile, self.encoder, limit):
            block.skills[episode].reason = "overflow"
        if self.args.adv_step_skill_coef:
            steps = [skill.step_skills if skill.valid else {} for skill in block.skills]
            add_step_teacher_prompts(block.rows, steps, self.profile, self.encoder)

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
        return columns

    def _shaped_advantages(self, block: Block, batch: dict[str, Any], columns: dict[str, Any], mask: Tensor) -> Tensor:
        """Return advantages (B, T) shaped by the teacher's shift (RLSD, OPID)."""
        old = batch.get("old_per_token_logps")
        if old is None:
            old = self._score_chunks(self.model, student_inputs(batch), self.args.steps_per_generation)
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
        return losses.opid_advantages_BT(
            advantages, shift, weight, step_shift, self.args.adv_step_skill_coef, step_mask
        )

    def _record(self, block: Block, batch: dict[str, Any]) -> None:
        measures.log_round(self, block)
        self.recorder.record(self, block, batch)
        if self.args.ages and block.skills and self.round_index % self.args.staleness_every == 0:
            with self.clock("staleness"):
                log_staleness(self, block, batch)
        self.weights.remember(self._unwrapped, self.round_index)

    # ------------------------------------------------------------------------------------------------ steps of one loss

    def _teach(self, model: Any, inputs: dict[str, Any], chunks: int = 1) -> Tensor:
        """Return the teacher's log-probabilities of the completion tokens, without gradient."""
        if "teacher_logps" in inputs and self.args.teacher_policy == "snapshot":
            stored: Tensor = inputs["teacher_logps"]
            return stored
        with self.clock("teacher"):
            return self._score_chunks(model, teacher_inputs(inputs, self._image_pad_token_id), chunks)

    def _score_chunks(self, model: Any, arguments: dict[str, Any], chunks: int) -> Tensor:
        size = math.ceil(len(arguments["input_ids"]) / chunks)
        with torch.no_grad(), disable_gradient_checkpointing(self.model, self.args.gradient_checkpointing_kwargs):
            logps: Tensor = super()._get_per_token_logps_and_entropies(model, batch_size=size, **arguments)[0]
        return logps

    def _divergence(self, model: Any, inputs: dict[str, Any]) -> Tensor:
        """Return the full-vocabulary divergence per token; costs a second student forward with logits."""
        with torch.no_grad():
            teacher = completion_logits(model, teacher_inputs(inputs, self._image_pad_token_id), self.temperature)
        student = completion_logits(model, student_inputs(inputs), self.temperature)
        return losses.jsd_BT(student, teacher, self.args.opd_jsd_mix, self.args.opd_top_k or None)

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

    # ----------------------------------------------------------------------------------------------------- TRL's hooks

    def _get_per_token_logps_and_entropies(self, model: Any, *args: Any, **kwargs: Any) -> Any:
        if kwargs.get("batch_size") is not None:
            # TRL's chunk is per_device_train_batch_size rows, which is one row per forward in the turn layout.
            kwargs["batch_size"] = max(kwargs["batch_size"], math.ceil(len(args[0]) / self.args.steps_per_generation))
        result = super()._get_per_token_logps_and_entropies(model, *args, **kwargs)
        if self._captured is not None:
            self._captured.append((result[0], result[1].detach()))
        return result

    def _generate(self, prompts: list[Any]) -> tuple[Any, ...]:
        """Hand the rows of the round to TRL instead of generating."""
        rows = self._current.rows
        logprobs = [row.logprobs for row in rows] if self.use_vllm else None
        images = [row.images for row in rows] if any(row.images for row in rows) else None
        measures.log_tokens(self, rows)
        return (
            [row.prompt_ids for row in rows],
            [row.completion_ids for row in rows],
            [row.mask for row in rows],
            [[{"role": "assistant", "content": ""}] for _ in rows],
            logprobs,
            {},
            images,
            [],
        )

    def _calculate_rewards(self, inputs: Any, prompts: Any, completions: Any, completion_ids_list: Any) -> Tensor:
        returns = self._current.returns_N[[row.episode for row in self._current.rows]]
        gathered: Tensor = self.accelerator.gather(returns[:, None].to(self.accelerator.device))
        return gathered

    def evaluate(
        self,
        eval_dataset: Dataset | None = None,
        ignore_keys: list[str] | None = None,
        metric_key_prefix: str = "eval",
    ) -> dict[str, float]:
        """Play the fixed panel with the plain policy and return success with its interval."""
        panel = self.eval_dataset if eval_dataset is None else eval_dataset
        if panel is None:
            raise ValueError("evaluate() needs an eval_dataset: the panel of tasks")
        self._seed(2)
        training = self.model.training
        self.model.eval()
        try:
            metrics = evaluate_panel(self, panel, metric_key_prefix)
            # TRL's log() would print the last training completions again.
            Trainer.log(self, metrics)
        finally:
            self.model.train(training)
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)
        return metrics

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Log as TRL does, with the seconds of every part of the step."""
        if self.model.training:
            for name, seconds in self.clock.flush().items():
                self._metrics["train"][f"time/{name}"].append(seconds)
            measures.log_overhead(self._metrics["train"], int(logs.get("loss") is not None) * self.args.logging_steps)
        super().log(logs, start_time)

    def create_model_card(self, model_name: str | None = None, **kwargs: Any) -> None:
        """Write our own model card; TRL's would name no base model for a local path."""
        if self.is_world_process_zero():
            base = str(getattr(self.model.config, "_name_or_path", "")) or "an instance without a path"
            versions = {"trl": trl.__version__, "transformers": transformers.__version__}
            name = model_name or Path(self.args.output_dir).name
            text = model_card(name, base, self.args, self.profile.name, self.player.env_id, versions)
            write_model_card(self.args.output_dir, text)

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        super()._save_checkpoint(model, trial)
        if self.args.should_save:
            folder = Path(self._get_output_dir(trial=trial)) / f"{PREFIX_CHECKPOINT_DIR}-{self.state.global_step}"
            self.weights.save(folder, self.memory)

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        super()._load_optimizer_and_scheduler(checkpoint)
        if checkpoint is not None:
            self.weights.load(Path(checkpoint), self.memory, self.accelerator.device)

    # --------------------------------------------------------------------------------------------------------- helpers

    @property
    def round_index(self) -> int:
        """Number of the current round, counted over the whole run."""
        accumulation = self.args.gradient_accumulation_steps
        micro_step = self.state.global_step * accumulation + self._step % accumulation
        return int(micro_step // self.args.micro_steps_per_round)

    @property
    def gate_beta(self) -> float:
        """Sharpness of the gate in this round."""
        return schedules.gate_beta(
            self.args, self.round_index, max(1, self.state.max_steps // self.args.steps_per_round)
        )

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

    def _writer(self) -> SkillWriter:
        analyzer = get_analyzer(self.args.skill_analyzer, self.profile.style)
        return SkillWriter(self.encoder, self.sampler, self.profile, self.args.rollout_layout, analyzer, self.args)

    def library_skill(self, episode: Trajectory) -> str:
        """Return the library's advice for an episode that is about to begin."""
        return "" if self.library is None else self.library.skill(episode.task_type)

    def _random_text(self, length: int) -> str:
        rng = self._rng(3)
        ids = rng.integers(0, len(self._tokenizer), size=length).tolist()
        return str(self._tokenizer.decode(ids, skip_special_tokens=True))

    def _rng(self, purpose: int) -> np.random.Generator:
        return np.random.default_rng([self.args.seed, self.accelerator.process_index, self.round_index, purpose])

    def _seed(self, purpose: int) -> None:
        """Seed sampling from run seed, process, round and purpose, so that resuming repeats it exactly."""
        self.generator.manual_seed(int(self._rng(purpose).integers(2**62)))
