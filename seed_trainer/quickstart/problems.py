"""The problems that the quick start can train on, as data: words, and pictures."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Problem:
    """One problem.

    Attributes:
        model: The base model.
        config: Configuration of stage 2; stage 1's has ``_sft`` after its name.
        methods: Method -> name of its preset.
        rounds: Updates per run.
        folder: Where everything goes unless said otherwise.
        stages: Whether stage 1 comes first, and the policies play and write at the end.
        blind: Whether the first and the last policies also play the panel with black pictures.
    """

    model: str
    config: str
    methods: dict[str, str]
    rounds: int
    folder: str
    stages: bool = True
    blind: bool = False


PROBLEMS = {
    "words": Problem(
        "builtin/alfworld-tiny", "quickstart", {"SEED": "seed", "GRPO": "grpo"}, rounds=20, folder="runs/quickstart"
    ),
    "pictures": Problem(
        "builtin/vision-tiny",
        "quickstart_vision",
        {"SEED": "seed"},
        rounds=10,
        folder="runs/quickstart_vision",
        stages=False,
        blind=True,
    ),
}
