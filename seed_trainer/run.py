"""``SEEDRun``: what a run is made of, around its training step.

It builds the parts (who acts, who writes skills, who scores, who teaches, who watches), plays the evaluation panel with
the plain policy, logs, and saves what transformers would forget. The step is added by
:class:`~seed_trainer.trainer.SEEDTrainer`.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from transformers import ProgressCallback, Trainer, TrainerCallback
from trl import GRPOTrainer

from seed_envs.processors import seeing_processor
from seed_envs.profiles import Profile
from seed_trainer.acting.actor import Actor
from seed_trainer.acting.encoding import ChatEncoder
from seed_trainer.acting.engine import make_sampler
from seed_trainer.acting.play import EpisodePlayer, MakeEnv
from seed_trainer.acting.rollout import as_growing
from seed_trainer.keeping.identity import run_facts, run_identity
from seed_trainer.keeping.kept import KeptTrainer
from seed_trainer.keeping.order import TaskOrder
from seed_trainer.learning.analyst import Analyst
from seed_trainer.learning.scorer import Scorer
from seed_trainer.learning.scores import GateRule
from seed_trainer.learning.teacher_weights import TeacherWeights
from seed_trainer.learning.teaching import Teaching
from seed_trainer.settings import schedules
from seed_trainer.settings.config import SEEDConfig
from seed_trainer.settings.schedules import Moment
from seed_trainer.watching import measures
from seed_trainer.watching.callbacks import RunFiles, SuccessProgress
from seed_trainer.watching.clock import Clock
from seed_trainer.watching.evaluation import PanelPlayer
from seed_trainer.watching.gate_proxy import GateProxy
from seed_trainer.watching.gate_watch import GateWatch
from seed_trainer.watching.linelog import LineLog
from seed_trainer.watching.model_card import write_model_card
from seed_trainer.watching.records import EPISODES_FILE, EpisodeRecorder
from seed_trainer.watching.sink import MetricSink
from seed_trainer.watching.staleness import StalenessWatch
from seed_trainer.watching.vital_signs import VitalSigns

RETURN_NAME = "episode_return"


def _no_reward(completions: list[Any], **kwargs: Any) -> list[float | None]:
    """Stand in for TRL's mandatory reward function; ``_calculate_rewards`` never calls it."""
    return [0.0] * len(completions)


class SEEDRun(KeptTrainer, GRPOTrainer):
    """Everything of a training run but its step.

    Args:
        model: Path or model. With ``args.beta > 0`` and full fine-tuning the reference is loaded from its path.
        args: Configuration.
        make_env: Builds one agent environment (see :func:`seed_envs.make_agent_env`).
        profile: The profile of that environment.
        env_id: Name recorded in trajectories.
        train_dataset: Rows with ``task_id``, ``split`` and/or ``seed``; one row is one task.
        eval_dataset: The fixed evaluation panel, same columns.
        processing_class: Tokenizer or processor; read from the model's path by default, without torchvision too.
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
        if processing_class is None and isinstance(model, str):
            processing_class = seeing_processor(model, args.model_init_kwargs)
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
        self._make_parts(args, as_growing(profile) if args.rollout_layout == "episode" else profile, make_env, env_id)
        self.lines = RunFiles(args.output_dir, [self.recorder.log, self.panels.log])
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
        reader = self.encoder.pictures
        sampler = make_sampler(self, args, self.generator, reader)
        self.actor = Actor(args, self.encoder, sampler, self.player, self.generator)
        self.analyst = Analyst(args, self.encoder, sampler, profile, lambda: self.accelerator.unwrap_model(self.model))
        # Who scores and who teaches
        self.clock = Clock()
        if reader is not None:
            reader.timed = functools.partial(self.clock, "pictures")
        self.teacher_weights = TeacherWeights(args)
        self.scorer = Scorer(self, args, self.teacher_weights, self.clock, reader)
        self.teaching = Teaching(args, self.scorer, self.encoder, profile)
        # Who watches
        self.sink = MetricSink(self._metrics["train"])
        self.recorder = EpisodeRecorder(args, self._tokenizer, LineLog(Path(args.output_dir) / EPISODES_FILE))
        self.panels = PanelPlayer(args, self.actor, self.accelerator)
        self.gates = GateWatch(self.sink, GateProxy(self.accelerator.process_index, self.num_generations))
        self.staleness = StalenessWatch(args, self.analyst, self.teaching, self.scorer, self.sink)

    # ----------------------------------------------------------------------------------------------- what a run tells

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
        with self.clock("evaluation"):
            metrics = self.panels.measure(self.model, panel, metric_key_prefix, self.moment, self.analyst.advice)
        Trainer.log(self, metrics)  # TRL's log() would print the last training completions again
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
            write_model_card(self.model.config, self.args, self.profile.name, self.player.env_id, model_name)

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
