"""Weights of a teacher that is not the student of this moment: those training began with, or a moving average.

OPSD (arXiv 2601.18734) lets the teacher be the current, the initial or an averaged policy. Only trainable parameters
are kept; with adapters the base model is shared. Keeps nothing for the policies ``live`` and ``snapshot``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import TrainerCallback

from seed_trainer.learning.snapshots import FOLDER, trainable_parameters
from seed_trainer.settings.options import SEEDOptions

FILE = "teacher.safetensors"


class TeacherWeights(TrainerCallback):
    """Keeps the teacher's parameters and lends them to the model.

    ``teacher_policy=initial`` keeps a copy of the first weights. ``ema`` starts there too and after every optimiser
    step moves to ``decay * teacher + (1 - decay) * student``, in single precision, because half precision would lose
    steps that small.

    Args:
        options: ``teacher_policy`` and ``teacher_ema_decay``.
    """

    def __init__(self, options: SEEDOptions) -> None:
        self.policy = options.teacher_policy
        self.decay = options.teacher_ema_decay
        self.values: dict[str, Tensor] = {}

    @property
    def kept(self) -> bool:
        """Whether the teacher has weights of its own."""
        return self.policy in ("initial", "ema")

    def begin(self, model: Any) -> None:
        """Start from the model's weights, unless there are some already (a resumed run)."""
        if self.kept and not self.values:
            copies = trainable_parameters(model)
            if self.policy == "ema":
                copies = {name: tensor.float() for name, tensor in copies.items()}
            self.values = copies

    @torch.no_grad()
    def follow(self, model: Any) -> None:
        """Move the average one optimiser step on."""
        if self.policy == "ema":
            for name, parameter in model.named_parameters():
                if name in self.values:
                    # lerp moves by its weight towards the student: 1 - decay of the way.
                    self.values[name].lerp_(parameter.detach().float(), 1.0 - self.decay)

    @contextmanager
    def lent(self, model: Any) -> Iterator[None]:
        """Give the model the teacher's weights for the time of the block.

        Storage is exchanged, not written to: a student graph built before or after is not touched.
        """
        self.begin(model)
        own = {name: parameter.data for name, parameter in model.named_parameters() if name in self.values}
        try:
            for name, parameter in model.named_parameters():
                if name in own:
                    parameter.data = self.values[name].to(parameter.dtype)
            yield
        finally:
            for name, parameter in model.named_parameters():
                if name in own:
                    parameter.data = own[name]

    def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, **kwargs: Any) -> None:
        """Copy the weights training starts with."""
        self.begin(model)

    def on_step_end(self, args: Any, state: Any, control: Any, model: Any = None, **kwargs: Any) -> None:
        """Follow the student."""
        self.follow(model)

    def save(self, folder: Path) -> None:
        """Write the weights into a checkpoint, if there are any."""
        if self.values:
            from safetensors.torch import save_file

            (folder / FOLDER).mkdir(parents=True, exist_ok=True)
            save_file({name: tensor.cpu() for name, tensor in self.values.items()}, folder / FOLDER / FILE)

    def load(self, folder: Path, device: torch.device) -> None:
        """Read what :meth:`save` wrote.

        Raises:
            ValueError: If the teacher needs weights and the checkpoint has none.
        """
        if not self.kept:
            return
        from safetensors.torch import load_file

        path = folder / FOLDER / FILE
        if not path.is_file():
            raise ValueError(
                f"{folder} was saved without a teacher of its own; teacher_policy={self.policy} cannot resume from it "
                "(resume with the run's own teacher_policy, or start anew from this model)"
            )
        self.values = {name: tensor.to(device) for name, tensor in load_file(path).items()}
