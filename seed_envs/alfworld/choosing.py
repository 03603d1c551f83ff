"""Listing and drawing tasks under filters: families and rooms."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence
from typing import Final

import numpy as np

from seed_envs.alfworld.generator import rooms
from seed_envs.alfworld.library import OFFICIAL_SPLITS
from seed_envs.alfworld.sources import TaskSource
from seed_envs.alfworld.tasks import (
    HUMAN_SPLITS,
    PROCEDURAL_SPLITS,
    scene_of,
    type_of,
)
from seed_envs.errors import NoTaskMatches

MAX_GENERATED_SEED: Final = 2**31


def matching(source: TaskSource, split: str, task_types: Collection[str], scenes: Collection[int]) -> tuple[str, ...]:
    """Listed ids of a split that pass filters.

    Args:
        source: where games come from.
        split: a split with a list.
        task_types: families to keep; empty keeps all.
        scenes: rooms to keep; empty keeps all.

    Returns:
        The ids in listed order.
    """
    ids = source.ids(split)
    if not task_types and not scenes:
        return tuple(ids)

    def family(task_id: str) -> str:
        return type_of(task_id) if split in (*OFFICIAL_SPLITS, *HUMAN_SPLITS) else source.game(task_id).goal.task_type

    return tuple(
        task_id
        for task_id in ids
        if (not task_types or family(task_id) in task_types) and (not scenes or scene_of(task_id) in scenes)
    )


def _wish(task_types: Sequence[str], scenes: Sequence[int]) -> str:
    """Filters in words."""
    kinds = " or ".join(kind for kind in task_types if kind)
    numbers = ", ".join(map(str, scenes))
    return " and ".join([f"task_type {kinds}"] * bool(kinds) + [f"scene in [{numbers}]"] * bool(scenes))


class TaskChooser:
    """Lists and draws tasks under filters; what it has listed once it remembers.

    Args:
        source: where games come from.
        knobs: limits for procedural games.
    """

    def __init__(self, source: TaskSource, knobs: rooms.Knobs) -> None:
        self.source = source
        self.knobs = knobs
        self._known: dict[tuple[object, ...], tuple[str, ...]] = {}

    def listed(self, split: str, task_types: Sequence[str], scenes: Sequence[int]) -> tuple[str, ...]:
        """Ids of a split that pass the filters, in listed order (see :func:`matching`)."""
        key = (split, tuple(task_types), tuple(scenes))
        if key not in self._known:
            self._known[key] = matching(self.source, split, task_types, scenes)
        return self._known[key]

    def draw(self, split: str, task_types: Sequence[str], scenes: Sequence[int], rng: np.random.Generator) -> str:
        """Draw a task.

        Args:
            split: any split.
            task_types: families to draw from; empty means all.
            scenes: rooms to draw from; empty means all.
            rng: where chance comes from.

        Returns:
            The task's id.

        Raises:
            NoTaskMatches: when the filters leave nothing.
            DataMissing: when official games are wanted and not all of the split's are there.
        """
        if split in PROCEDURAL_SPLITS:
            return self._draw_procedural(split.removeprefix("procedural_"), task_types, scenes, rng)
        self.source.require(split)
        ids = self.listed(split, task_types, scenes)
        if not ids:
            raise NoTaskMatches(f"no task of split {split!r} has {_wish(task_types, scenes)}")
        return ids[int(rng.integers(len(ids)))]

    def _draw_procedural(
        self, part: str, task_types: Sequence[str], scenes: Sequence[int], rng: np.random.Generator
    ) -> str:
        knobs = self.knobs
        pool = scenes or ((knobs.scene,) if knobs.scene else rooms.scenes_of(part))
        wishes = [dataclasses.replace(knobs, task_type=kind) for kind in task_types or (knobs.task_type,)]
        kinds = [wish.task_type for wish in wishes if any(rooms.allows(part, scene, wish) for scene in pool)]
        if not kinds:
            raise NoTaskMatches(
                f"split 'procedural_{part}' has no room with {_wish(task_types or (knobs.task_type,), pool)}; "
                f"its rooms are {list(rooms.scenes_of(part))}"
            )
        if task_types:
            knobs = dataclasses.replace(knobs, task_type=kinds[int(rng.integers(len(kinds)))])
        if scenes:
            fitting = [scene for scene in scenes if rooms.allows(part, scene, knobs)]
            knobs = dataclasses.replace(knobs, scene=fitting[int(rng.integers(len(fitting)))])
        return rooms.make_id(part, int(rng.integers(MAX_GENERATED_SEED)), knobs)
