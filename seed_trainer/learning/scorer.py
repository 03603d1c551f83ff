"""The forward passes of a round: what student and teacher give to the tokens of rows that were sampled already.

It scores with TRL's own function, so that our numbers and TRL's loss agree to the bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor
from trl import GRPOTrainer
from trl.models.utils import disable_gradient_checkpointing

from seed_trainer.acting.pictures import PictureReader
from seed_trainer.learning import losses
from seed_trainer.learning.scores import GateRule, Scores, batch_scores
from seed_trainer.learning.teacher import completion_logits, student_inputs, teacher_inputs
from seed_trainer.learning.teacher_weights import TeacherWeights
from seed_trainer.settings.config import SEEDConfig

Batch = dict[str, Any]
"""Rows as TRL's trainer holds them: tensors by column name, row-aligned or of no dimension."""


class Scorer:
    """Scores completion tokens.

    Args:
        trainer: Owner of the model and of TRL's scoring function.
        args: Configuration.
        teacher_weights: Weights of a teacher that is not the student of this moment.
        timed: Adds up the seconds of a named part.
        reader: Reads pictures, for models that see.
    """

    def __init__(
        self,
        trainer: GRPOTrainer,
        args: SEEDConfig,
        teacher_weights: TeacherWeights,
        timed: Callable[[str], AbstractContextManager[None]],
        reader: PictureReader | None = None,
    ) -> None:
        self.trainer = trainer
        self.args = args
        self.teacher_weights = teacher_weights
        self.timed = timed
        self.reader = reader

    @property
    def model(self) -> Any:
        """The policy, as the trainer holds it."""
        return self.trainer.model

    @property
    def unwrapped(self) -> Any:
        """The policy without the wrappers of distributed training."""
        return self.trainer.accelerator.unwrap_model(self.trainer.model)

    def seeing(self, ids: Tensor, arguments: Batch) -> Batch:
        """Return scoring arguments with the token types of pictures, in prompt and completion alike.

        Args:
            ids: Ids of whole rows, shape (B, P + T).
            arguments: What is passed on beside them.
        """
        if self.reader is None or arguments.get("pixel_values") is None:
            return arguments
        return {**arguments, **self.reader.token_types(ids)}

    def live(self, model: Any, arguments: Batch, **options: Any) -> tuple[Tensor, Tensor | None]:
        """Return log-probabilities, shape (B, T), and entropies if ``compute_entropy`` is set; with gradient."""
        # The base function: the trainer's own override remembers what passes through it for the loss.
        logps, entropies, _ = GRPOTrainer._get_per_token_logps_and_entropies(
            self.trainer, model, **self.seeing(arguments["input_ids"], arguments), **options
        )
        return logps, entropies

    def logps(self, model: Any, arguments: Batch, chunks: int = 1) -> Tensor:
        """Return log-probabilities without gradient, shape (B, T), scored in so many chunks of rows."""
        return self._still(model, arguments, chunks)[0]

    def _still(
        self, model: Any, arguments: Batch, chunks: int, compute_entropy: bool = False
    ) -> tuple[Tensor, Tensor | None]:
        size = math.ceil(len(arguments["input_ids"]) / chunks)
        checkpointing = self.args.gradient_checkpointing_kwargs
        with torch.no_grad(), disable_gradient_checkpointing(self.model, checkpointing):
            return self.live(model, arguments, batch_size=size, compute_entropy=compute_entropy)

    def behaviour(self, batch: Batch) -> Tensor:
        """Return log-probabilities under the weights that sampled the round, (B, T); call it before they change."""
        old: Tensor | None = batch.get("old_per_token_logps")
        return self.logps(self.model, student_inputs(batch), self.args.steps_per_generation) if old is None else old

    def teacher(self, model: Any, batch: Batch, chunks: int = 1) -> Tensor:
        """Return the teacher's log-probabilities without gradient, (B, T): stored ones with a snapshot."""
        if "teacher_logps" in batch and self.args.teacher_policy == "snapshot":
            stored: Tensor = batch["teacher_logps"]
            return stored
        with self.timed("teacher"):
            return self.other_teacher(model, batch, chunks)

    def other_teacher(self, model: Any, batch: Batch, chunks: int = 1, prefix: str = "teacher") -> Tensor:
        """Return the log-probabilities of a teacher that reads the prompts given in the batch, never stored ones."""
        arguments = teacher_inputs(batch, prefix)
        with self.teacher_weights.lent(self.unwrapped):
            return self.logps(model, arguments, chunks)

    def divergence(self, model: Any, batch: Batch) -> Tensor:
        """Return the full-vocabulary divergence per token, (B, T); costs a second student forward with logits."""
        with self.timed("teacher"), torch.no_grad(), self.teacher_weights.lent(self.unwrapped):
            teacher = self._logits(model, teacher_inputs(batch))
        student = self._logits(model, student_inputs(batch))
        return losses.jsd_BT(student, teacher, self.args.opd_jsd_mix, self.args.opd_top_k or None)

    def _logits(self, model: Any, arguments: Batch) -> Tensor:
        return completion_logits(model, self.seeing(arguments["input_ids"], arguments), self.args.temperature)

    def scores(self, batch: Batch, rule: GateRule, chunks: int = 1) -> Scores:
        """Score rows outside a loss, without gradient, exactly as a loss would."""
        student, entropies = self._still(self.model, student_inputs(batch), chunks, compute_entropy=True)
        assert entropies is not None
        teacher = self.teacher(self.model, batch, chunks) if "teacher_prompt_ids" in batch else None
        return batch_scores(batch, rule, student, entropies, teacher)
