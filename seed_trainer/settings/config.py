"""``SEEDConfig(GRPOConfig)``: TRL's configuration plus :class:`~seed_trainer.settings.options.SEEDOptions`.

Changed TRL defaults: ``beta`` 0.01 (KL coefficient of the paper), ``use_bias_correction_kl`` False (the paper's k3 has
no ratio in front), ``disable_dropout`` True (teacher and student must be the same deterministic network), ``loss_type``
``dapo`` (token mean over the generation batch). A *round* is one rollout with the updates made from it.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from transformers.trainer_utils import IntervalStrategy, SaveStrategy
from trl import GRPOConfig

from seed_trainer.settings.options import (
    CONCURRENT_EPISODES,
    LOSS_TYPES,
    WRITTEN_BY_OTHERS,
    SEEDOptions,
    micro_batches,
    option,
    parse_skill_source,
)

TRL_SAVE_STEPS = 500
"""TRL's default of ``save_steps``, which means "not set" here."""


@dataclass
class SEEDConfig(SEEDOptions, GRPOConfig):
    """Configuration of :class:`~seed_trainer.trainer.SEEDTrainer`; see the module for changed defaults."""

    beta: float = option(0.01, "Coefficient of the k3 KL to the reference.", "paper")
    use_bias_correction_kl: bool = option(False, "Multiply the KL by the ratio (TRL's default).", "paper")
    disable_dropout: bool = option(True, "Teacher and student must be the same deterministic network.", "ours")
    loss_type: str = option("dapo", "Aggregation; dapo is the token mean of the paper.", "paper")
    lr_scheduler_type: str = option("constant", "Learning-rate schedule.", "released")
    learning_rate: float = option(1e-6, "Learning rate.", "paper")
    epsilon: float = option(0.2, "Clip range of the policy ratio.", "paper")
    temperature: float = option(1.0, "Sampling temperature of training episodes.", "released")
    num_generations: int = option(8, "Episodes per task, N of the paper.", "paper")
    logging_steps: float = option(0, "Optimiser steps between log lines; 0: one line per round.", "ours")
    num_generations_eval: int | None = option(1, "Unused: evaluations play eval_repeats episodes per task.", "ours")

    if TYPE_CHECKING:  # always set after __post_init__, whatever the inherited annotations say
        steps_per_generation: int = 1
        output_dir: str = ""
        gradient_checkpointing_kwargs: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        """Check the options and their arithmetic.

        Raises:
            ValueError: Naming the field, the value and what was expected.
        """
        self.check_options()
        if self.rollout_layout == "turn":
            self.max_completion_length = self.max_turn_length
        self._spread()
        per_round, self.logging_steps = self.logging_steps == 0, self.logging_steps or 1
        super().__post_init__()  # type: ignore[no-untyped-call]
        self._check_block()
        if per_round:
            self.logging_steps = self.steps_of(1)
        if self.rounds > 0 and self.max_steps <= 0:
            self.max_steps = self.steps_of(self.rounds)
        if self.eval_rounds > 0:
            self.eval_strategy, self.do_eval = IntervalStrategy.STEPS, True
            self.eval_steps = self.steps_of(self.eval_rounds)
        if self.save_rounds > 0 and self.save_strategy == SaveStrategy.STEPS and self.save_steps == TRL_SAVE_STEPS:
            self.save_steps = self.steps_of(self.save_rounds)
        self._check_schedule()
        if self.top_p < 1.0 or self.top_k or self.min_p or self.repetition_penalty != 1.0:
            warnings.warn(
                "top_p, top_k, min_p or repetition_penalty change the sampling distribution, so that the scored "
                "log-probabilities are not those that were sampled from",
                stacklevel=3,
            )
        if self.num_iterations > 1 and self.rollout_layout == "episode" and self.use_vllm:
            warnings.warn("episode rows under vLLM: prefer vllm_importance_sampling_mode=token_truncate", stacklevel=3)

    def _spread(self) -> None:
        """Turn totals over all processes into micro-batches of this one; TRL's own fields win where they are given."""
        per_device = self.per_device_train_batch_size
        if self.steps_per_generation is None and self.episodes_per_round:
            self.steps_per_generation = micro_batches("episodes_per_round", self.episodes_per_round, per_device)
        if self.gradient_accumulation_steps == 1 and self.episodes_per_update:
            self.gradient_accumulation_steps = micro_batches(
                "episodes_per_update", self.episodes_per_update, per_device
            )

    @property
    def episodes_per_process(self) -> int:
        """Episodes of one round on one process: its block."""
        return int(self.per_device_train_batch_size * self.steps_per_generation)

    @property
    def concurrent_episodes(self) -> int:
        """Largest number of episodes played at the same time on one process."""
        return self.max_concurrent_episodes or max(CONCURRENT_EPISODES, self.episodes_per_process)

    @property
    def micro_steps_per_round(self) -> int:
        """Forward-backward passes made from one rollout."""
        return int(self.steps_per_generation * self.num_iterations)

    @property
    def steps_per_round(self) -> float:
        """Optimiser steps made from one rollout: a whole number, or a fraction if several rollouts make one step."""
        return self.micro_steps_per_round / self.gradient_accumulation_steps

    def steps_of(self, rounds: int) -> int:
        """Return the optimiser steps that so many rounds take."""
        return math.ceil(rounds * self.steps_per_round)

    @property
    def teaches(self) -> bool:
        """Whether a teacher is needed at all."""
        return self.opd_coef > 0 or self.adv_shaping != "none"

    @property
    def writes_skills(self) -> bool:
        """Whether the policy has to write skills about its episodes."""
        return self.teaches and parse_skill_source(self.skill_source).name not in WRITTEN_BY_OTHERS

    def _check_block(self) -> None:
        accumulation, micro = self.gradient_accumulation_steps, self.micro_steps_per_round
        if accumulation % micro and micro % accumulation:
            raise ValueError(
                f"gradient_accumulation_steps={accumulation} and steps_per_generation x num_iterations={micro} must be "
                "multiples of one another, else a round ends in the middle of an optimiser step"
            )
        local = self.episodes_per_process
        if local % self.num_generations:
            raise ValueError(
                f"per_device_train_batch_size x steps_per_generation = {local} episodes per process must be a multiple "
                f"of num_generations={self.num_generations}"
            )

    def _check_schedule(self) -> None:
        if self.save_strategy == "steps" and self.save_steps >= 1 and self.save_steps % self.steps_per_round:
            raise ValueError(
                f"save_steps={self.save_steps:g} must be a multiple of {self.steps_per_round:g} (optimiser steps per "
                "round): a checkpoint in the middle of a round cannot be resumed exactly"
            )
        if self.opd_coef > 0 and self.loss_type not in LOSS_TYPES:
            raise ValueError(
                f"loss_type={self.loss_type!r} has no known normaliser for the distillation term, expected one of "
                f"{sorted(LOSS_TYPES)} (dapo is the paper's)"
            )
        if self.opd_term == "jsd" and self.teacher_policy == "snapshot":
            raise ValueError("opd_term=jsd needs whole distributions; it does not work with teacher_policy=snapshot")
        if self.adv_step_skill_coef and self.rollout_layout != "turn":
            raise ValueError("adv_step_skill_coef needs rollout_layout=turn: a step skill belongs to one turn")
        if (self.adv_unit == "step" or self.gigpo_coef) and self.rollout_layout != "turn":
            raise ValueError("adv_unit=step and gigpo_coef give one advantage per step and need rollout_layout=turn")
