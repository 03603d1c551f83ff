"""The making of the policy that sees: play lessons, train, save. One recipe and seed give one model.

Tasks come from the training splits; rooms of the validation and test panels are never seen.
"""

from __future__ import annotations

import contextlib
import dataclasses
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from seed_trainer.tiny.corpus import Sample, SampleEncoder
from seed_trainer.tiny.pretraining import Schedule, pretrain
from seed_trainer.tiny.recipe import Progress, save
from seed_trainer.tiny.sight.lessons import GAMES, Classroom, Curriculum
from seed_trainer.tiny.sight.model import PATCHES, SIDE, Shape, build_model, build_processor, pixel_values
from seed_trainer.tiny.sight.words import IMAGE, build_tokenizer

TASKS_A_REPORT = 64

SIGHT = Curriculum(attempts=2, moves=False, described=1.0, competence=0.6)
MOVES = Curriculum(attempts=3, clean=True, competence=0.6, described=0.4, analyses=True)
BASE = Curriculum(attempts=2, advised=2, analyses=True)


@dataclass(frozen=True)
class Course:
    """One part of the schooling: its name, its lessons, and how many tasks of each game."""

    name: str
    curriculum: Curriculum
    tasks: dict[str, int]


COURSES: tuple[Course, ...] = (
    # Sight first: beside moves that mean nothing yet, pictures are hardly learned to be read.
    Course("sight", SIGHT, {"sokoban": 400, "ezpoints": 200}),
    Course("moves", MOVES, {"sokoban": 2000, "ezpoints": 500}),
    Course("base", BASE, {"sokoban": 200, "ezpoints": 200}),
)


SCHEDULE = Schedule(batch_tokens=2_000, learning_rate=2e-3, matrix_learning_rate=0.007, context_weight=0.0)


@dataclass(frozen=True)
class SightRecipe:
    """Everything that decides the weights.

    Attributes:
        seed: Of players, initial weights and batch order.
        courses: What is learned, in this order.
        shape: Size of the network.
        schedule: The pre-training schedule.
    """

    seed: int = 0
    courses: tuple[Course, ...] = COURSES
    shape: Shape = field(default_factory=Shape)
    schedule: Schedule = field(default_factory=lambda: SCHEDULE)

    def scaled(self, share: float) -> SightRecipe:
        """The same recipe with fewer or more tasks in every course."""
        courses = tuple(
            dataclasses.replace(
                course, tasks={name: max(1, round(share * count)) for name, count in course.tasks.items()}
            )
            for course in self.courses
        )
        return dataclasses.replace(self, courses=courses)


def write_samples(recipe: SightRecipe, tokenizer: Any, progress: Progress) -> list[list[Sample]]:
    """Play all lessons and encode them; one list a course, in a fixed random order."""
    encoder = SampleEncoder(tokenizer, [tokenizer.convert_tokens_to_ids(IMAGE)] * PATCHES, SIDE)
    total = sum(sum(course.tasks.values()) for course in recipe.courses)
    done, first = 0, dict.fromkeys(GAMES, 0)
    courses: list[list[Sample]] = []
    for number, course in enumerate(recipe.courses):
        samples: list[Sample] = []
        for name, count in course.tasks.items():
            ids = [GAMES[name].task.format(first[name] + index) for index in range(count)]
            first[name] += count
            with contextlib.closing(Classroom(GAMES[name], encoder, f"{recipe.seed}/{number}")) as classroom:
                for start in range(0, count, TASKS_A_REPORT):
                    chunk = ids[start : start + TASKS_A_REPORT]
                    samples += classroom.lessons(chunk, course.curriculum)
                    done += len(chunk)
                    progress("lessons", done, total, None)
        random.Random(recipe.seed).shuffle(samples)
        courses.append(samples)
    return courses


def make(recipe: SightRecipe, folder: Path, progress: Progress) -> dict[str, float]:
    """Make and save a model.

    Args:
        recipe: What to make.
        folder: Where model, processor and recipe go.
        progress: Told about every step.

    Returns:
        Number of samples, tokens, learned tokens, weights, and the final loss.
    """
    tokenizer = build_tokenizer()
    processor = build_processor(tokenizer)
    courses = write_samples(recipe, tokenizer, progress)
    model = build_model(tokenizer, recipe.shape, recipe.seed)

    loss = pretrain(
        model,
        courses,
        recipe.schedule,
        seed=recipe.seed,
        on_step=lambda step, total, value: progress("training", step, total, value),
        look=pixel_values,
    )
    return save(folder, model, processor, recipe, courses, loss)
