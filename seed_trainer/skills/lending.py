"""Controls in which an episode is taught by the skill of another one: of its group, its family or its round."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from itertools import groupby

import numpy as np

from seed_trainer.skills.context import SkillContext
from seed_trainer.skills.parsing import HindsightSkill


def _shuffle_within(size: int, rng: np.random.Generator) -> list[int]:
    """Return a random derangement of ``range(size)``."""
    while True:
        order = rng.permutation(size)
        if not (order == np.arange(size)).any():
            return [int(index) for index in order]


def _lend(
    own: Sequence[HindsightSkill], donors: Sequence[int | None], context: SkillContext, name: str
) -> list[HindsightSkill]:
    result = []
    for index, donor in enumerate(donors):
        if donor is None:
            result.append(HindsightSkill(reason="no_partner", origin=name))
            continue
        skill = own[donor]
        same = context.trajectories[index].success == context.trajectories[donor].success
        origin = f"{name}:{'same' if same else 'other'}_outcome"
        result.append(dataclasses.replace(skill, origin=origin))
    return result


def shuffled_group(own: Sequence[HindsightSkill], context: SkillContext) -> list[HindsightSkill]:
    """Of another episode of the same task."""
    size = context.group_size
    if size < 2:
        return _lend(own, [None] * len(own), context, "shuffled_group")
    donors: list[int | None] = []
    for start in range(0, len(own), size):
        donors += [start + index for index in _shuffle_within(min(size, len(own) - start), context.rng)]
    return _lend(own, donors, context, "shuffled_group")


def shuffled_batch(own: Sequence[HindsightSkill], context: SkillContext) -> list[HindsightSkill]:
    """Of an episode of another task of the round, every task lending to one other."""
    size = context.group_size
    groups = len(own) // size
    if groups < 2:
        return _lend(own, [None] * len(own), context, "shuffled_batch")
    target = _shuffle_within(groups, context.rng)
    donors: list[int | None] = []
    for group in range(groups):
        donors += [target[group] * size + int(index) for index in context.rng.permutation(size)]
    return _lend(own, donors, context, "shuffled_batch")


def shuffled_family(own: Sequence[HindsightSkill], context: SkillContext) -> list[HindsightSkill]:
    """Of an episode of another task of the same family, where the round has one: the plan, but not the answer."""
    episodes = context.trajectories
    donors: list[int | None] = []
    for _, group in groupby(episodes, key=lambda episode: episode.task_id):
        members = list(group)
        near = [
            index
            for index, episode in enumerate(episodes)
            if episode.task_type == members[0].task_type and episode.task_id != members[0].task_id
        ]
        donors += [_draw(near, context.rng) for _ in members]
    return _lend(own, donors, context, "shuffled_family")


def sibling_won(own: Sequence[HindsightSkill], context: SkillContext) -> list[HindsightSkill]:
    """Of another attempt at the same task that won, where there is one."""
    return _sibling(own, context, won=True)


def sibling_lost(own: Sequence[HindsightSkill], context: SkillContext) -> list[HindsightSkill]:
    """Of another attempt at the same task that failed, where there is one."""
    return _sibling(own, context, won=False)


def _sibling(own: Sequence[HindsightSkill], context: SkillContext, won: bool) -> list[HindsightSkill]:
    episodes, size = context.trajectories, context.group_size
    donors: list[int | None] = []
    for index in range(len(own)):
        group = range(index - index % size, min(index - index % size + size, len(own)))
        others = [other for other in group if other != index and own[other].valid]
        donors.append(_draw([other for other in others if episodes[other].success == won], context.rng))
    return _lend(own, donors, context, "sibling_won" if won else "sibling_lost")


def _draw(candidates: Sequence[int], rng: np.random.Generator) -> int | None:
    return candidates[int(rng.integers(len(candidates)))] if candidates else None
