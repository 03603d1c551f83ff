"""The problems that the quick start can train on, as data: words, cards in pictures, and rooms in pictures."""

from __future__ import annotations

from dataclasses import dataclass, field

_METHODS = {"SEED": "seed", "GRPO": "grpo"}


@dataclass(frozen=True)
class Problem:
    """One problem.

    Attributes:
        model: The base model.
        config: Configuration of stage 2; stage 1's has ``_sft`` after its name.
        rounds: Updates per run.
        folder: Where everything goes unless said otherwise.
        panel: Held-out tasks; 0 is the whole split.
        arguments: What differs from the configuration.
        methods: Method -> name of its preset.
        stages: Whether stage 1 comes first, and the policies play and write at the end.
        blind: What the first and the last policies are also shown in the place of their pictures: ``env_blind``.
    """

    model: str
    config: str
    rounds: int
    folder: str
    panel: int = 120
    arguments: tuple[str, ...] = ()
    methods: dict[str, str] = field(default_factory=lambda: dict(_METHODS))
    stages: bool = True
    blind: tuple[str, ...] = ()


PROBLEMS = {
    "words": Problem("builtin/alfworld-tiny", "quickstart", rounds=20, folder="runs/quickstart"),
    "cards": Problem(
        "builtin/vision-tiny",
        "quickstart_vision",
        rounds=10,
        folder="runs/quickstart_cards",
        stages=False,
        blind=("shuffle",),
    ),
    "rooms": Problem(
        "builtin/vision-tiny",
        "quickstart_vision",
        rounds=10,
        folder="runs/quickstart_rooms",
        panel=0,
        arguments=("--env_id", "seed/Sokoban-v0", "--eval_split", "validation", "--eval_repeats", "6"),
        stages=False,
        blind=("shuffle",),
    ),
}
BLIND = {"blank": "black pictures", "shuffle": "another task's pictures"}
"""``env_blind`` -> what is shown, in words."""
