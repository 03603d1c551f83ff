"""``SEEDTrainer(GRPOTrainer)``: GRPO plus hindsight self-distillation.

What it changes, and nothing else:

1. ``_generate_and_score_completions`` is one round: play episodes, write skills about them, lay out rows, let TRL pad
   and score them, then put in trajectory advantages and the teacher's columns.
2. ``_generate`` and ``_calculate_rewards`` hand the finished rows and returns to TRL.
3. ``_get_per_token_logps_and_entropies`` remembers the student's scores and uses larger chunks without gradient.
4. ``_compute_loss`` scores the same tokens as teacher, lets TRL compute its loss, and adds the distillation term.
5. ``evaluate`` plays a fixed panel with the plain policy: no skill, no analyzer.

With ``opd_coef=0`` it is GRPO on the same rows. It holds no formula (:mod:`seed_trainer.learning.losses`) and no
prompt.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import transformers
import trl
from datasets import Dataset
from torch import Tensor
from transformers import ProgressCallback, Trainer, TrainerCallback

from seed_envs.profiles import Profile
from seed_trainer.acting.encoding import ChatEncoder
from seed_trainer.acting.play import EpisodePlayer, MakeEnv
from seed_trainer.acting.rollout import as_growing
from seed_trainer.keeping.identity import run_facts, run_identity
from seed_trainer.keeping.order import TaskOrder
from seed_trainer.learning.batches import build_rows, with_fillers
from seed_trainer.learning.distillation import Scores, distillation_BT, gates_BT
from seed_trainer.learning.rounds import Block, episode_advantages_N, row_advantages_B
from seed_trainer.learning.snapshots import WeightHistory
from seed_trainer.learning.teacher import loss_mask
from seed_trainer.learning.teacher_weights import TeacherWeights
from seed_trainer.settings import schedules
from seed_trainer.settings.config import SEEDConfig
from seed_trainer.settings.options import parse_skill_source
from seed_trainer.skills.library import SkillLibrary
from seed_trainer.skills.prompts import get_analyzer
from seed_trainer.skills.sources import SkillMemory
from seed_trainer.steps import SEEDSteps
from seed_trainer.watching import measures
from seed_trainer.watching.callbacks import RunFiles, SuccessProgress
from seed_trainer.watching.clock import Clock
from seed_trainer.watching.evaluation import evaluate_panel
from seed_trainer.watching.gate_proxy import GateProxy
from seed_trainer.watching.gradients import log_gradients
from seed_trainer.watching.linelog import LineLog
from seed_trainer.watching.model_card import model_card, write_model_card
from seed_trainer.watching.panels import EVALUATIONS_FILE
from seed_trainer.watching.records import EpisodeRecorder

RETURN_NAME = "episode_return"


def _no_reward(completions: list[Any], **kwargs: Any) -> list[float | None]:
    """Stand in for TRL's mandatory reward function; ``_calculate_rewards`` never calls it."""
    return [0.0] * len(completions)


class SEEDTrainer(SEEDSteps):
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
        self.profile = as_growing(profile) if args.rollout_layout == "episode" else profile
        self.encoder = ChatEncoder(
            self.processing_class,
            self._tokenizer,
            self.chat_template,
            self.chat_template_kwargs,
            self.eos_token_ids,
        )
        self.player = EpisodePlayer(make_env, env_id, self.profile, args.concurrent_episodes, args.env_backend)
        self.generator = torch.Generator(device=self.accelerator.device)
        self.sampler = self._make_sampler()
        if args.skill_reward_coef and self._is_vlm:
            raise ValueError("skill_reward_coef is for text models: requests with images are not scored")
        if args.writes_skills:
            get_analyzer(args.skill_analyzer, self.profile.style)  # a wrong name is known now, not after a round
        self.skill_source = parse_skill_source(args.skill_source)
        self.library = SkillLibrary.load(args.skill_library) if args.skill_library else None
        self.memory = SkillMemory()
        self.weights = WeightHistory(args.ages, self.skill_source)
        self.teacher_weights = TeacherWeights(args)
        self.recorder = EpisodeRecorder(args)
        self.evaluations = LineLog(Path(args.output_dir) / EVALUATIONS_FILE)
        self.lines = RunFiles(args.output_dir, [self.recorder.log, self.evaluations])
        self.add_callback(self.lines)
        self.add_callback(self.teacher_weights)
        self.clock = Clock()
        self.proxy = GateProxy(self.accelerator.process_index, self.num_generations)
        self.task_types = []
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
        if schedules.compares_gradients(self.args, self.round_index):
            log_gradients(self, loss, self.args.opd_coef * opd)
        loss = loss + self.args.opd_coef * opd
        if "skill_answer_ids" in inputs:
            loss = loss + self.args.skill_reward_coef * self._skill_loss(inputs)
        return loss

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
    ) -> dict[str, Any]:
        """Play the fixed panel with the plain policy and return success with its interval, None over nothing."""
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

    def _determine_best_metric(self, metrics: dict[str, Any], trial: Any) -> bool:
        name = self.args.metric_for_best_model or ""
        if metrics.get(f"eval_{name.removeprefix('eval_')}", 0.0) is None:
            return False  # a panel without a scored episode is no new best
        return super()._determine_best_metric(metrics, trial)

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Log as TRL does, with the seconds of every part of the step and what is summed up from line to line."""
        if self.model.training:
            for name, seconds in self.clock.flush().items():
                self._metrics["train"][f"time/{name}"].append(seconds)
            measures.log_overhead(self._metrics["train"])
            for name, value in self.proxy.flush().items():
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
            self.weights.save(folder, self.memory)
            self.teacher_weights.save(folder)

    def _load_kept(self, folder: Path) -> None:
        super()._load_kept(folder)
        self.weights.load(folder, self.memory, self.accelerator.device)
        self.teacher_weights.load(folder, self.accelerator.device)

    def _pending(self) -> dict[str, Any]:
        own = {"micro_steps": self._step, "metrics": dict(self._metrics["train"]), "types": self.task_types}
        return {**super()._pending(), **own, "proxy": self.proxy.pending()}

    def _restore_pending(self, pending: dict[str, Any]) -> None:
        super()._restore_pending(pending)
        self._step, self.task_types = pending["micro_steps"], pending["types"]
        self._metrics["train"].update(pending["metrics"])
        self.proxy.restore(pending["proxy"])
