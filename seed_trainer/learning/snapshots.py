"""Weights of earlier rounds: analyzers that are k rounds old, for controls and for the staleness diagnostic.

Copies of the trainable parameters are kept on the device, one per round up to the largest age asked for. Nothing is
kept when no age is.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from seed_trainer.settings.options import SkillSource
from seed_trainer.skills.context import SkillMemory

FOLDER = "seed_state"


class WeightHistory:
    """Keeps trainable parameters by round.

    Args:
        ages: Ages of the staleness diagnostic, in rounds.
        source: Skill source; ``stale(k)`` needs round - k, ``stale(inf)`` needs round 0.
    """

    def __init__(self, ages: Sequence[int], source: SkillSource) -> None:
        self.source = source
        finite = [*ages, *([int(source.age)] if source.name == "stale" and math.isfinite(source.age) else [])]
        self.depth = max(finite, default=0)
        self.keeps_first = source.name == "stale" and math.isinf(source.age)
        self.rounds: dict[int, dict[str, Tensor]] = {}

    def remember(self, model: Any, round_index: int) -> None:
        """Copy the parameters at the start of a round."""
        if self.depth == 0 and not (self.keeps_first and not self.rounds):
            return
        self.rounds[round_index] = trainable_parameters(model)
        oldest = round_index - self.depth
        first = min(self.rounds)
        self.rounds = {r: copy for r, copy in self.rounds.items() if r >= oldest or (self.keeps_first and r == first)}

    @contextmanager
    def analyzer(self, model: Any, round_index: int) -> Iterator[None]:
        """Give the model the weights of the configured analyzer for the time of the block.

        Rounds before the k-th one have no analyzer that old; theirs is the oldest there is.
        """
        if self.source.name != "stale" or not self.source.age or not self.rounds:
            yield
            return
        wanted = min(self.rounds) if math.isinf(self.source.age) else round_index - int(self.source.age)
        with self.at(model, self.nearest(wanted)):
            yield

    def nearest(self, round_index: int) -> int:
        """Return the newest stored round that is not newer than the one given, or the oldest one."""
        older = [stored for stored in self.rounds if stored <= round_index]
        return max(older) if older else min(self.rounds)

    @contextmanager
    def at(self, model: Any, round_index: int) -> Iterator[None]:
        """Give the model the stored weights of a round for the time of the block, its own if it is not stored."""
        if round_index not in self.rounds:
            yield
            return
        # A copy, not a reference: the model's own tensors are overwritten in place until the block ends.
        current = trainable_parameters(model)
        _assign(model, self.rounds[round_index])
        try:
            yield
        finally:
            _assign(model, current)

    def save(self, folder: Path, memory: SkillMemory) -> None:
        """Write everything a resumed run needs; nothing if there is nothing."""
        if not self.rounds and not memory.skills:
            return
        from safetensors.torch import save_file

        folder = folder / FOLDER
        folder.mkdir(parents=True, exist_ok=True)
        for round_index, copy in self.rounds.items():
            save_file(
                {name: tensor.cpu() for name, tensor in copy.items()}, folder / f"round-{round_index}.safetensors"
            )
        (folder / "skills.json").write_text(json.dumps(memory.skills), encoding="utf-8")

    def load(self, folder: Path, memory: SkillMemory, device: torch.device) -> None:
        """Read what :meth:`save` wrote."""
        from safetensors.torch import load_file

        folder = folder / FOLDER
        if not (folder / "skills.json").is_file():
            return
        self.rounds = {
            int(path.stem.removeprefix("round-")): {name: tensor.to(device) for name, tensor in load_file(path).items()}
            for path in sorted(folder.glob("round-*.safetensors"))
        }
        stored = json.loads((folder / "skills.json").read_text(encoding="utf-8"))
        memory.skills = {task: [(int(r), str(text)) for r, text in known] for task, known in stored.items()}


def trainable_parameters(model: Any) -> dict[str, Tensor]:
    """Return copies of the parameters that train, by name."""
    return {name: tensor.detach().clone() for name, tensor in model.named_parameters() if tensor.requires_grad}


@torch.no_grad()
def _assign(model: Any, values: dict[str, Tensor]) -> None:
    for name, parameter in model.named_parameters():
        if name in values:
            parameter.copy_(values[name])
