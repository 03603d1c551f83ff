"""The whole making of the embedded policy: play lessons, train, save. One recipe and seed give one model.

Games come from the training parts only: the compact preset beyond its listed training panel, and generated games in
official rooms. Goal combinations of the validation and test panels are never seen.
"""

from __future__ import annotations

import dataclasses
import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from seed_envs.profiles import get_profile
from seed_trainer.tiny.corpus import Sample, SampleEncoder
from seed_trainer.tiny.lessons import ENV_ID, Classroom, Curriculum
from seed_trainer.tiny.model import build_model
from seed_trainer.tiny.pretraining import Schedule, pretrain
from seed_trainer.tiny.tokenizer import build_tokenizer

FIRST_COMPACT_GAME = 600
"""The listed training panel, which RL uses, ends here."""

ROOM_STEPS = 20
RECIPE_FILE = "recipe.json"

Progress = Callable[[str, int, int, float | None], None]
"""Called with stage, done, total and the current loss (or None)."""


@dataclass(frozen=True)
class Recipe:
    """Everything that decides the weights.

    Attributes:
        seed: Of players, initial weights and batch order.
        compact_games: Games of the compact preset.
        room_games: Generated games in official rooms of 6 to 16 receptacles.
        width: Hidden size.
        layers: Transformer blocks.
        heads: Attention heads.
        curriculum: Lessons of every game.
        schedule: The pre-training schedule.
    """

    seed: int = 0
    compact_games: int = 1200
    room_games: int = 300
    width: int = 96
    layers: int = 3
    heads: int = 4
    curriculum: Curriculum = field(default_factory=Curriculum)
    schedule: Schedule = field(default_factory=Schedule)


def compact_ids(count: int) -> list[str]:
    """Ids of compact training games outside the listed panel."""
    return [f"compact/train/{FIRST_COMPACT_GAME + number}" for number in range(count)]


def room_ids(count: int) -> list[str]:
    """Ids of generated games in small cut-outs of official rooms."""
    return [f"procedural/train/{number};kinds=8;copies=2;receptacles={6 + number % 11}" for number in range(count)]


def write_samples(recipe: Recipe, tokenizer: Any, progress: Progress) -> list[Sample]:
    """Play all lessons and encode them, in a fixed random order."""
    encoder = SampleEncoder(tokenizer)
    compact = get_profile(ENV_ID, "compact")
    rooms = dataclasses.replace(get_profile(ENV_ID, "terse"), max_steps=ROOM_STEPS)
    samples: list[Sample] = []
    total = recipe.compact_games + recipe.room_games
    done = 0
    for profile, ids in ((compact, compact_ids(recipe.compact_games)), (rooms, room_ids(recipe.room_games))):
        classroom = Classroom(profile, encoder, recipe.seed)
        try:
            for start in range(0, len(ids), 64):
                chunk = ids[start : start + 64]
                samples += classroom.lessons(chunk, recipe.curriculum)
                done += len(chunk)
                progress("lessons", done, total, None)
        finally:
            classroom.close()
    random.Random(recipe.seed).shuffle(samples)
    return samples


def make(recipe: Recipe, folder: Path, progress: Progress) -> dict[str, float]:
    """Make and save a model.

    Args:
        recipe: What to make.
        folder: Where model, tokenizer and recipe go.
        progress: Told about every step.

    Returns:
        Number of samples, tokens, learned tokens, weights, and the final loss.
    """
    tokenizer = build_tokenizer()
    samples = write_samples(recipe, tokenizer, progress)
    model = build_model(tokenizer, width=recipe.width, layers=recipe.layers, heads=recipe.heads, seed=recipe.seed)
    loss = pretrain(
        model,
        samples,
        recipe.schedule,
        seed=recipe.seed,
        on_step=lambda step, total, value: progress("training", step, total, value),
    )
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    facts = {
        "samples": len(samples),
        "tokens": sum(len(sample.ids) for sample in samples),
        "learned_tokens": sum(sum(sample.learned) for sample in samples),
        "weights": model.num_parameters(),
        "loss": round(loss, 4),
    }
    record = {"recipe": dataclasses.asdict(recipe), "facts": facts}
    (folder / RECIPE_FILE).write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    return facts
