"""The whole making of the embedded policy: play lessons, train, save. One recipe and seed give one model.

Games come from the training parts only: the compact preset beyond its listed training panel, and generated games in
official rooms. Goal combinations of the validation and test panels are never seen.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from seed_envs.profiles import get_profile
from seed_trainer.tiny.corpus import Sample, SampleEncoder
from seed_trainer.tiny.lessons import BASE, ENV_ID, MECHANICS, Classroom, Curriculum
from seed_trainer.tiny.model import build_model
from seed_trainer.tiny.pretraining import Schedule, pretrain
from seed_trainer.tiny.tokenizer import build_tokenizer

FIRST_COMPACT_GAME = 600
"""The listed training panel, which RL uses, ends here."""

ROOM_STEPS = 20
GAMES_A_REPORT = 32
RECIPE_FILE = "recipe.json"

Progress = Callable[[str, int, int, float | None], None]
"""Called with stage, done, total and the current loss (or None)."""


@dataclass(frozen=True)
class Course:
    """One part of the schooling.

    Attributes:
        name: For the progress bar.
        curriculum: Lessons of every game.
        compact_games: Games of the compact preset.
        room_games: Generated games in official rooms of 6 to 16 receptacles.
    """

    name: str
    curriculum: Curriculum
    compact_games: int
    room_games: int


COURSES: tuple[Course, ...] = (Course("mechanics", MECHANICS, 700, 300), Course("base", BASE, 1300, 400))


@dataclass(frozen=True)
class Recipe:
    """Everything that decides the weights.

    Attributes:
        seed: Of players, initial weights and batch order.
        courses: What is learned, in this order.
        width: Hidden size.
        layers: Transformer blocks.
        heads: Attention heads.
        schedule: The pre-training schedule.
    """

    seed: int = 0
    courses: tuple[Course, ...] = COURSES
    width: int = 96
    layers: int = 3
    heads: int = 4
    schedule: Schedule = field(default_factory=Schedule)

    def scaled(self, share: float) -> Recipe:
        """The same recipe with fewer or more games in every course."""
        courses = tuple(
            dataclasses.replace(
                course,
                compact_games=max(1, round(share * course.compact_games)),
                room_games=max(1, round(share * course.room_games)),
            )
            for course in self.courses
        )
        return dataclasses.replace(self, courses=courses)


def compact_ids(count: int, first: int = 0) -> list[str]:
    """Ids of compact training games outside the listed panel."""
    return [f"compact/train/{FIRST_COMPACT_GAME + first + number}" for number in range(count)]


def room_ids(count: int, first: int = 0) -> list[str]:
    """Ids of generated games in small cut-outs of official rooms."""
    numbers = range(first, first + count)
    return [f"procedural/train/{number};kinds=8;copies=2;receptacles={6 + number % 11}" for number in numbers]


def write_samples(recipe: Recipe, tokenizer: Any, progress: Progress) -> list[list[Sample]]:
    """Play all lessons and encode them; one list a course, in a fixed random order."""
    encoder = SampleEncoder(tokenizer)
    compact = get_profile(ENV_ID, "compact")
    rooms = dataclasses.replace(get_profile(ENV_ID, "terse"), max_steps=ROOM_STEPS)
    total = sum(course.compact_games + course.room_games for course in recipe.courses)
    done, first_compact, first_room = 0, 0, 0
    courses: list[list[Sample]] = []
    for number, course in enumerate(recipe.courses):
        samples: list[Sample] = []
        for profile, ids in (
            (compact, compact_ids(course.compact_games, first_compact)),
            (rooms, room_ids(course.room_games, first_room)),
        ):
            with contextlib.closing(Classroom(profile, encoder, f"{recipe.seed}/{number}")) as classroom:
                for start in range(0, len(ids), GAMES_A_REPORT):
                    chunk = ids[start : start + GAMES_A_REPORT]
                    samples += classroom.lessons(chunk, course.curriculum)
                    done += len(chunk)
                    progress("lessons", done, total, None)
        random.Random(recipe.seed).shuffle(samples)
        courses.append(samples)
        first_compact, first_room = first_compact + course.compact_games, first_room + course.room_games
    return courses


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
    courses = write_samples(recipe, tokenizer, progress)
    model = build_model(tokenizer, width=recipe.width, layers=recipe.layers, heads=recipe.heads, seed=recipe.seed)
    loss = pretrain(
        model,
        courses,
        recipe.schedule,
        seed=recipe.seed,
        on_step=lambda step, total, value: progress("training", step, total, value),
    )
    return save(folder, model, tokenizer, recipe, courses, loss)


def save(
    folder: Path, model: Any, processing_class: Any, recipe: Any, courses: Sequence[Sequence[Sample]], loss: float
) -> dict[str, float]:
    """Save a model with the recipe it was made by, and return the facts about it."""
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    processing_class.save_pretrained(folder)
    everything = [sample for samples in courses for sample in samples]
    facts = {
        "samples": len(everything),
        "tokens": sum(len(sample.ids) for sample in everything),
        "learned_tokens": sum(sum(sample.learned) for sample in everything),
        "weights": model.num_parameters(),
        "loss": round(loss, 4),
    }
    record = {"recipe": dataclasses.asdict(recipe), "facts": facts}
    (folder / RECIPE_FILE).write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    return facts
