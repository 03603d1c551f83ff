"""``SEEDTrainer(GRPOTrainer)``: GRPO plus hindsight self-distillation.

What it changes, and nothing else:

1. ``_generate_and_score_completions`` is one round: play episodes, write skills about them, lay out rows, let TRL pad
   and score them, then put in trajectory advantages and the teacher's columns.
2. ``_generate`` and ``_calculate_rewards`` hand the finished rows and returns to TRL.
3. ``_get_per_token_logps_and_entropies`` remembers the student's scores and uses larger chunks without gradient.
4. ``_compute_loss`` scores the same tokens as teacher, lets TRL compute its loss, and adds the distillation term.
5. ``evaluate`` plays a fixed panel with the plain policy: no skill, no analyzer.

With ``opd_coef=0`` it is GRPO on the same rows. It owns TRL's hooks and the order of the steps. The steps are done by
the parts it is made of: who acts, who writes skills, who scores, who teaches, who watches. None of them asks the
trainer where it stands; they are handed the :class:`~seed_trainer.settings.schedules.Moment`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import transformers
import trl
from datasets import Dataset
from torch import Tensor
from transformers import ProgressCallback, Trainer, TrainerCallback
from trl import GRPOTrainer

from seed_envs.profiles import Profile
from seed_envs.trajectory import Trajectory
from seed_trainer.acting.actor import Actor
from seed_trainer.acting.encoding import ChatEncoder
from seed_trainer.acting.engine import make_sampler
from seed_trainer.acting.generation import own_randomness
from seed_trainer.acting.play import EpisodePlayer, MakeEnv, block_tasks
from seed_trainer.acting.rollout import as_growing
from seed_trainer.keeping.identity import run_facts, run_identity
from seed_trainer.keeping.kept import KeptTrainer
from seed_trainer.keeping.order import TaskOrder
from seed_trainer.learning.aggregation import round_counts, zero_loss
from seed_trainer.learning.analyst import Analyst
from seed_trainer.learning.batches import build_rows, filler_target, with_fillers
from seed_trainer.learning.rounds import Block, episode_advantages_N, row_advantages_B
from seed_trainer.learning.scorer import Batch, Scorer
from seed_trainer.learning.scores import GateRule, batch_scores, distilled_mask, loss_mask
from seed_trainer.learning.teacher_weights import TeacherWeights
from seed_trainer.learning.teaching import Teaching
from seed_trainer.settings import schedules
from seed_trainer.settings.config import SEEDConfig
from seed_trainer.settings.schedules import Moment
from seed_trainer.watching import measures
from seed_trainer.watching.callbacks import RunFiles, SuccessProgress
from seed_trainer.watching.clock import Clock
from seed_trainer.watching.evaluation import play_panel
from seed_trainer.watching.gate_proxy import GateProxy
from seed_trainer.watching.gate_watch import GateWatch
from seed_trainer.watching.gradients import log_gradients
from seed_trainer.watching.linelog import LineLog
from seed_trainer.watching.model_card import model_card, write_model_card
from seed_trainer.watching.panels import EVALUATIONS_FILE, summarise
from seed_trainer.watching.records import EPISODES_FILE, EpisodeRecorder
from seed_trainer.watching.sink import MetricSink
from seed_trainer.watching.staleness import StalenessWatch
from seed_trainer.watching.vital_signs import VitalSigns

RETURN_NAME = "episode_return"


def _no_reward(completions: list[Any], **kwargs: Any) -> list[float | None]:
    """Stand in for TRL's mandatory reward function; ``_calculate_rewards`` never calls it."""
    return [0.0] * len(completions)


class SEEDTrainer(KeptTrainer, GRPOTrainer):
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
    model: Any  # never None after __init__, whatever the inherited annotation says
    chat_template_kwargs: dict[str, Any]
    num_generations: int

    _tag_names = ["seed", "grpo", "trl"]
    _name = "SEED"
    _paper = {"title": "SEED: Self-Evolving On-Policy Distillation", "id": "2607.14777"}

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
        episodes = args.episodes_per_process * args.world_size
        tasks_per_round = episodes // args.num_generations
        if len(train_dataset) < tasks_per_round:
            raise ValueError(f"{len(train_dataset)} training tasks are fewer than the {tasks_per_round} of one round")
        self.identity = run_identity(args, **run_facts(model, env_id, profile, train_dataset))
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
        if args.skill_reward_coef and self._is_vlm:
            raise ValueError("skill_reward_coef is for text models: requests with images are not scored")
        self._block: Block | None = None
        self._captured: list[tuple[Tensor, Tensor]] | None = None
        self._make_parts(args, as_growing(profile) if args.rollout_layout == "episode" else profile, make_env, env_id)
        self.lines = RunFiles(args.output_dir, [self.recorder.log, self.evaluations])
        self.add_callback(self.lines)
        self.add_callback(VitalSigns(args))
        self.add_callback(self.teacher_weights)

    def _make_parts(self, args: SEEDConfig, profile: Profile, make_env: MakeEnv, env_id: str) -> None:
        """Build everything that takes part in a round."""
        # Who acts and who writes
        self.profile = profile
        self.encoder = ChatEncoder(
            self.processing_class, self._tokenizer, self.chat_template, self.chat_template_kwargs, self.eos_token_ids
        )
        self.player = EpisodePlayer(make_env, env_id, profile, args.concurrent_episodes, args.env_backend)
        self.generator = torch.Generator(device=self.accelerator.device)
        sampler = make_sampler(self, args, self.generator)
        self.actor = Actor(args, self.encoder, sampler, self.player, self.generator)
        self.analyst = Analyst(args, self.encoder, sampler, profile, lambda: self.accelerator.unwrap_model(self.model))
        # Who scores and who teaches
        self.clock = Clock()
        self.teacher_weights = TeacherWeights(args)
        self.scorer = Scorer(self, args, self.teacher_weights, self.clock)
        self.teaching = Teaching(args, self.scorer, self.encoder, profile)
        # Who watches
        self.sink = MetricSink(self._metrics["train"])
        self.recorder = EpisodeRecorder(args, self._tokenizer, LineLog(Path(args.output_dir) / EPISODES_FILE))
        self.evaluations = LineLog(Path(args.output_dir) / EVALUATIONS_FILE)
        self.gates = GateWatch(self.sink, GateProxy(self.accelerator.process_index, self.num_generations))
        self.staleness = StalenessWatch(args, self.analyst, self.teaching, self.scorer, self.sink)

    # ------------------------------------------------------------------------------------------------- the whole step

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> Batch:
        """Make one round's training batch, in the order of the paper's Algorithm 1."""
        self._seed(0)
        moment = self.moment
        block = Block(self._play(inputs), self.num_generations)  # sample with theta_old
        block.advantages_N = episode_advantages_N(block, self.args)  # A = (R - mu) / sigma
        block.rows = build_rows(block.episodes, self.args.rollout_layout)
        if schedules.distills(self.args, moment.round_index) or self.args.adv_shaping != "none":
            with self.clock("skills"):  # s = A_theta_old(episode, outcome), or a control's
                block.skills = self.analyst.teaching_skills(block.episodes, block.group_size, moment)
            self._splice(block)  # h~ = H(h, s), same history, same response tokens
        block.rows = with_fillers(block.rows, self._filler_target(len(block.rows)))
        batch = self._score(block)  # l_old and l_ref by TRL
        batch["advantages"] = row_advantages_B(block, self.args).to(self.accelerator.device)
        if block.skills:
            batch.update(self.teaching.columns(block, batch, moment))  # m, teacher prompts, l_T if a snapshot
        if self._idle(batch, moment):
            batch["idle"] = torch.ones((), device=self.accelerator.device)
        self._watch(block, batch, moment)
        return batch

    def _compute_loss(self, model: Any, inputs: Batch) -> Tensor:
        """Return ``L_rl + lambda Agg_m[g (sg(l_T) - l)]`` for one mini-batch."""
        if "idle" in inputs:
            return zero_loss(self.model)
        moment = self.moment
        distils = "opd_mask" in inputs and schedules.distills(self.args, moment.round_index)
        # l_T: skill in the prompt, no gradient; with shaped advantages alone it was needed once, for the round
        teacher = self.scorer.teacher(model, inputs) if distils else inputs.get("teacher_logps")
        with self._capture() as captured, self._fillers_undone(inputs) as undone:
            # L_rl, scoring the student once
            loss: Tensor = super()._compute_loss(model, undone)  # type: ignore[no-untyped-call]
        ((student, entropies),) = captured  # exactly one scoring of the student
        scores = batch_scores(inputs, self.gate_rule, student, entropies, teacher)
        self.recorder.take(scores, inputs)
        if not distils:
            return loss
        opd = self.teaching.loss(model, scores, inputs)  # Agg_m[g (sg(l_T) - l)] with g = sg(sigmoid(beta D))
        self.gates.log(scores, float(opd.detach()) * self.current_gradient_accumulation_steps, inputs, moment)
        if schedules.compares_gradients(self.args, moment.round_index):
            log_gradients(self.sink, self.model, loss, self.args.opd_coef * opd)
        loss = loss + self.args.opd_coef * opd
        if "skill_answer_ids" in inputs:
            loss = loss + self.args.skill_reward_coef * self.teaching.skill_loss(inputs)
        return loss

    def _prepare_inputs(self, generation_batch: Any) -> Batch:
        """Return a micro-batch; where that began a round, count first what its loss is a mean over."""
        held = self._buffered_inputs
        inputs: Batch = super()._prepare_inputs(generation_batch)
        if self._buffered_inputs is not held and self._buffered_inputs is not None:
            self._count(self._buffered_inputs)
        return inputs

    # ---------------------------------------------------------------------------------------------- steps of one round

    def _play(self, inputs: list[dict[str, Any]]) -> list[Trajectory]:
        with self.clock("rollout"):
            skill_for = self.analyst.advice if self.args.actor_skill != "none" else None
            tasks = block_tasks(inputs, self.num_generations)
            return self.actor.play(tasks, self.actor.decoding(self.args.temperature), skill_for)

    def _splice(self, block: Block) -> None:
        for episode in self.teaching.splice(block.rows, block.skills):
            block.skills[episode].reason = "overflow"
        if self.args.adv_step_skill_coef:
            self.teaching.splice_steps(block.rows, block.skills)

    def _filler_target(self, rows: int) -> int:
        counts = self.accelerator.gather(torch.tensor([rows], device=self.accelerator.device)).tolist()
        return filler_target(counts, self.args.steps_per_generation, self.num_generations)

    def _score(self, block: Block) -> Batch:
        """Let TRL pad the rows and score them; its own reward statistics and log rows are thrown away."""
        self._block = block
        blank = [{"role": "user", "content": ""}]
        inputs: list[dict[str, Any]] = [{"prompt": row.messages if row.images else blank} for row in block.rows]
        logs, self._logs = self._logs, measures.scratch_logs()
        try:
            with self.clock("scoring"):
                batch: Batch = super()._generate_and_score_completions(inputs)
        finally:
            self._logs, self._block = logs, None
        device = self.accelerator.device
        batch["row"] = torch.arange(len(block.rows), device=device)
        batch["episode"] = torch.tensor([row.episode for row in block.rows], device=device)
        return {**batch, **self.gates.columns(block, device)}

    def _count(self, parts: list[Batch]) -> None:
        """Give the micro-batches of a round the units of ``Agg`` and the factor that fillers take from TRL's mean."""
        counts = round_counts(self.loss_type, list(map(loss_mask, parts)), list(map(distilled_mask, parts)))
        rl, opd, padded = self.accelerator.gather(counts[None]).sum(0)
        for part in parts:
            part |= {"rl_units": rl, "opd_units": opd, "filler_factor": padded / rl.clamp(min=1.0)}

    def _idle(self, batch: Batch, moment: Moment) -> bool:
        """Return whether the gradient of the whole round is exactly zero, on every process."""
        if self.beta or self._entropy_bonus_enabled or self.aux_loss_enabled:
            return False
        moves = batch["advantages"].any()
        if schedules.distills(self.args, moment.round_index):
            moves = moves | distilled_mask(batch).any()
        if "skill_advantages" in batch:
            moves = moves | batch["skill_advantages"].any()
        return not bool(self.accelerator.gather(moves[None]).any())

    def _watch(self, block: Block, batch: Batch, moment: Moment) -> None:
        measures.log_round(self.sink, block, batch)
        if self.log_completions:
            measures.log_table(self._logs, block)
        with self.clock("records"):
            self.recorder.begin(block, batch, moment)
        if block.skills and "opd_mask" not in batch:
            self.gates.log_untaught(moment)
        if self.staleness.due(block, moment):
            with self.clock("staleness"), own_randomness(self.generator):
                self.staleness.measure(block, batch, moment)
        self.analyst.weights.remember(self.scorer.unwrapped, moment.round_index)

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
        measures.log_tokens(self.sink, self.state, self.accelerator, rows)
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
    ) -> dict[str, Any]:
        """Play the fixed panel with the plain policy and return success with its interval, None over nothing."""
        panel: Any = self.eval_dataset if eval_dataset is None else eval_dataset
        if panel is None:
            raise ValueError("evaluate() needs an eval_dataset: the panel of tasks")
        self._seed(2)
        training = self.model.training
        self.model.eval()
        try:
            with self.clock("evaluation"):
                skill_for = self.analyst.advice if self.args.actor_skill == "always" else None
                records = play_panel(self.actor, panel, self.accelerator, skill_for)
            if self.is_world_process_zero():
                self.evaluations.append(self.state.global_step, {"prefix": metric_key_prefix, "episodes": records})
            metrics: dict[str, Any] = summarise(records, metric_key_prefix)
            # TRL's log() would print the last training completions again.
            Trainer.log(self, metrics)
        finally:
            self.model.train(training)
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)
        return metrics

    def _determine_best_metric(self, metrics: dict[str, Any], trial: Any) -> bool:
        name = self.args.metric_for_best_model or ""
        if metrics.get(f"eval_{name.removeprefix('eval_')}", 0.0) is None:
            return False  # a panel without a scored episode is no new best
        better: bool = super()._determine_best_metric(metrics, trial)
        return better

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Log as TRL does, with the seconds of every part of the step and what is summed up from line to line."""
        if self.model.training:
            for name, seconds in self.clock.flush().items():
                self._metrics["train"][f"time/{name}"].append(seconds)
            measures.log_overhead(self._metrics["train"])
            for name, value in self.gates.flush().items():
                self._metrics["train"][name].append(value)
        super().log(logs, start_time)

    def create_model_card(self, model_name: str | None = None, *args: Any, **kwargs: Any) -> None:  # type: ignore[override]
        """Write our own model card; TRL's would name no base model for a local path."""
        if self.is_world_process_zero():
            base = str(getattr(self.model.config, "_name_or_path", "")) or "an instance without a path"
            versions = {"trl": trl.__version__, "transformers": transformers.__version__}
            name = model_name or Path(self.args.output_dir).name
            text = model_card(name, base, self.args, self.profile.name, self.player.env_id, versions)
            write_model_card(self.args.output_dir, text)

    # ------------------------------------------------------------------------------------------------ going on later

    def _get_train_sampler(self, dataset: Dataset | None = None) -> TaskOrder:
        return TaskOrder.like(super()._get_train_sampler(dataset))

    def _save_kept(self, folder: Path) -> None:
        super()._save_kept(folder)
        if self.args.should_save:
            self.analyst.weights.save(folder, self.analyst.memory)
            self.teacher_weights.save(folder)

    def _load_kept(self, folder: Path) -> None:
        super()._load_kept(folder)
        self.analyst.weights.load(folder, self.analyst.memory, self.accelerator.device)
        self.teacher_weights.load(folder, self.accelerator.device)

    def _pending(self) -> dict[str, Any]:
        own = {"micro_steps": self._step, "metrics": dict(self._metrics["train"])}
        return {**super()._pending(), **own, **self.gates.pending()}

    def _restore_pending(self, pending: dict[str, Any]) -> None:
        super()._restore_pending(pending)
        self._step = pending["micro_steps"]
        self._metrics["train"].update(pending["metrics"])
        self.gates.restore(pending)

    # ------------------------------------------------------------------------------------------------- where we stand

    @property
    def round_index(self) -> int:
        """Number of the current round, counted over the whole run."""
        return int(self._step // self.args.micro_steps_per_round)

    @property
    def moment(self) -> Moment:
        """Where training stands."""
        rounds = int(self.state.max_steps / self.args.steps_per_round)
        beta = schedules.gate_beta(self.args, self.round_index, rounds)
        process = int(self.accelerator.process_index)
        return Moment(self.round_index, self.state.global_step, beta, self.args.seed, process)

    @property
    def gate_rule(self) -> GateRule:
        """The gate of this round."""
        return GateRule(self.args.opd_gate, self.moment.gate_beta)

    @property
    def _current(self) -> Block:
        if self._block is None:
            raise RuntimeError("TRL asked for completions outside a SEED round; trl>=1.16,<1.17 is supported")
        return self._block

    @contextmanager
    def _capture(self) -> Iterator[list[tuple[Tensor, Tensor]]]:
        """Remember what the scoring function returns inside the block."""
        captured: list[tuple[Tensor, Tensor]] = []
        self._captured = captured
        try:
            yield captured
        finally:
            self._captured = None

    @contextmanager
    def _fillers_undone(self, inputs: Batch) -> Iterator[Batch]:
        """Lend inputs with which TRL's mean has fillers among its units and comes out as the mean without them.

        Its policy term is linear in the advantages (the loss types that count fillers are) and in ``beta``; entropy
        bonus and router loss have means of their own and stay as they are.
        """
        factor, beta = inputs["filler_factor"], self.beta
        self.beta = beta * float(factor)
        try:
            yield {**inputs, "advantages": inputs["advantages"] * factor}
        finally:
            self.beta = beta

    def _seed(self, purpose: int) -> None:
        """Seed sampling from run seed, process, round and purpose, so that resuming repeats it exactly."""
        self.generator.manual_seed(int(self.moment.rng(purpose).integers(2**62)))
