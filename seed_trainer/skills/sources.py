"""Whose skill teaches which episode: the paper's own skill, or one of the controls.

A control replaces the text and nothing else; the number of episodes, rows and forward passes stays the same. It
writes no skills: it is given those the policy wrote. What is drawn is drawn over the episodes of all processes, so that
their number changes nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from seed_envs.trajectory import Trajectory
from seed_trainer.settings.options import SkillSource
from seed_trainer.skills.library import SkillLibrary
from seed_trainer.skills.parsing import HindsightSkill

GENERIC = "Think about the goal before every step, and do not repeat an action that did not help."


@dataclass
class SkillMemory:
    """Skills of earlier rounds by task, for ``stale_text``."""

    skills: dict[str, list[tuple[int, str]]] = field(default_factory=dict)

    def remember(self, round_index: int, skills: Sequence[tuple[str, str]]) -> None:
        """Keep the valid skills of a round, given as task id and text."""
        for task_id, text in skills:
            self.skills.setdefault(task_id, []).append((round_index, text))

    def recall(self, task_id: str, newest: float, rng: np.random.Generator) -> str:
        """Return a skill of the task from round ``newest`` or before; the oldest one for negative infinity."""
        known = self.skills.get(task_id, [])
        if newest == -np.inf and known:
            oldest = known[0][0]
            old = [text for round_index, text in known if round_index == oldest]
        else:
            old = [text for round_index, text in known if round_index <= newest]
        return old[int(rng.integers(len(old)))] if old else ""


class Told(NamedTuple):
    """What the choice may know of an episode."""

    task_id: str
    task_type: str
    success: bool


@dataclass
class SkillContext:
    """What the choice may depend on."""

    trajectories: Sequence[Trajectory | Told]
    group_size: int
    round_index: int
    rng: np.random.Generator
    library: SkillLibrary | None
    memory: SkillMemory
    random_text: Callable[[int], str]
    gather: Callable[[list[Any]], list[Any]] = list
    """Joins the lists of all processes."""
    process: int = 0


def _shuffle_within(size: int, rng: np.random.Generator) -> list[int]:
    """Return a random derangement of ``range(size)``."""
    while True:
        order = rng.permutation(size)
        if not (order == np.arange(size)).any():
            return [int(index) for index in order]


def _lend(
    own: Sequence[HindsightSkill], donors: Sequence[int], context: SkillContext, name: str
) -> list[HindsightSkill]:
    result = []
    for index, donor in enumerate(donors):
        skill = own[donor]
        same = context.trajectories[index].success == context.trajectories[donor].success
        origin = f"{name}:{'same' if same else 'other'}_outcome"
        result.append(dataclasses.replace(skill, origin=origin))
    return result


def _shuffled_group(own: Sequence[HindsightSkill], context: SkillContext, age: float) -> list[HindsightSkill]:
    size = context.group_size
    if size < 2:
        return [HindsightSkill(reason="no_partner") for _ in own]
    donors: list[int] = []
    for start in range(0, len(own), size):
        donors += [start + index for index in _shuffle_within(min(size, len(own) - start), context.rng)]
    return _lend(own, donors, context, "shuffled_group")


def _shuffled_batch(own: Sequence[HindsightSkill], context: SkillContext, age: float) -> list[HindsightSkill]:
    size = context.group_size
    groups = len(own) // size
    if groups < 2:
        return [HindsightSkill(reason="no_partner") for _ in own]
    target = _shuffle_within(groups, context.rng)
    donors: list[int] = []
    for group in range(groups):
        donors += [target[group] * size + int(index) for index in context.rng.permutation(size)]
    return _lend(own, donors, context, "shuffled_batch")


def _library(own: Sequence[HindsightSkill], context: SkillContext, age: float) -> list[HindsightSkill]:
    if context.library is None:
        raise ValueError("skill_source=library needs skill_library=FILE.json")
    texts = [context.library.skill(episode.task_type) for episode in context.trajectories]
    return [HindsightSkill(text, "" if text else "blank", origin="library") for text in texts]


def _generic(own: Sequence[HindsightSkill], context: SkillContext, age: float) -> list[HindsightSkill]:
    text = context.library.general if context.library is not None and context.library.general else GENERIC
    return [HindsightSkill(text, origin="generic") for _ in context.trajectories]


def _random_text(own: Sequence[HindsightSkill], context: SkillContext, age: float) -> list[HindsightSkill]:
    return [
        HindsightSkill(context.random_text(max(skill.tokens, 1)), skill.reason, skill.tokens, origin="random_text")
        for skill in own
    ]


def _stale_text(own: Sequence[HindsightSkill], context: SkillContext, age: float) -> list[HindsightSkill]:
    newest = context.round_index - age
    texts = [context.memory.recall(episode.task_id, newest, context.rng) for episode in context.trajectories]
    skills = [
        (episode.task_id, skill.text) for episode, skill in zip(context.trajectories, own, strict=True) if skill.valid
    ]
    context.memory.remember(context.round_index, skills)
    return [HindsightSkill(text, "" if text else "no_stale_skill", origin=f"stale_text({age:g})") for text in texts]


def _none(own: Sequence[HindsightSkill], context: SkillContext, age: float) -> list[HindsightSkill]:
    # An empty skill is "valid" here: the teacher re-scores the student's own prompt, and every gate is 0.5.
    return [HindsightSkill("", origin="none") for _ in context.trajectories]


def _own(own: Sequence[HindsightSkill], context: SkillContext, age: float) -> list[HindsightSkill]:
    return list(own)


def _stale(own: Sequence[HindsightSkill], context: SkillContext, age: float) -> list[HindsightSkill]:
    return [dataclasses.replace(skill, origin=f"stale({age:g})") for skill in own]


def _wrong_outcome(own: Sequence[HindsightSkill], context: SkillContext, age: float) -> list[HindsightSkill]:
    return [dataclasses.replace(skill, origin="wrong_outcome") for skill in own]


SOURCES: dict[str, Callable[[Sequence[HindsightSkill], SkillContext, float], list[HindsightSkill]]] = {
    "own": _own,
    "stale": _stale,
    "wrong_outcome": _wrong_outcome,
    "library": _library,
    "shuffled_group": _shuffled_group,
    "shuffled_batch": _shuffled_batch,
    "random_text": _random_text,
    "generic": _generic,
    "stale_text": _stale_text,
    "none": _none,
}
"""How every ``skill_source`` assigns skills. ``stale`` and ``wrong_outcome`` differ in how skills are *written*."""

DRAWN = ("shuffled_group", "shuffled_batch", "stale_text")
"""The sources that draw among episodes or remember them."""


def assign_skills(source: SkillSource, own: Sequence[HindsightSkill], context: SkillContext) -> list[HindsightSkill]:
    """Return the teaching skill of every episode.

    Args:
        source: Parsed ``skill_source``.
        own: Skills the policy wrote about these episodes (empty where the source writes none).
        context: Everything else.
    """
    if source.name not in DRAWN:
        return SOURCES[source.name](own, context, source.age)
    told = [Told(episode.task_id, episode.task_type, episode.success) for episode in context.trajectories]
    everyone = context.gather(list(zip(told, own, strict=True)))
    whole = dataclasses.replace(context, trajectories=[episode for episode, _ in everyone])
    skills = SOURCES[source.name]([skill for _, skill in everyone], whole, source.age)
    return skills[context.process * len(own) :][: len(own)]
