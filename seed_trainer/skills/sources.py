"""Whose skill teaches which episode: the paper's own skill, or one of the controls.

A control replaces the text and nothing else; the number of episodes, rows and forward passes stays the same. It
writes no skills: it is given those the policy wrote.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from seed_trainer.settings.options import SkillSource
from seed_trainer.skills import lending
from seed_trainer.skills.context import SkillContext, Told
from seed_trainer.skills.parsing import HindsightSkill, check_skill
from seed_trainer.skills.privilege import without_names

Lend = Callable[[Sequence[HindsightSkill], SkillContext], list[HindsightSkill]]
Assign = Callable[[Sequence[HindsightSkill], SkillContext, float], list[HindsightSkill]]
GENERIC = "Think about the goal before every step, and do not repeat an action that did not help."


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


def _annotator(own: Sequence[HindsightSkill], context: SkillContext, age: float) -> list[HindsightSkill]:
    texts = [context.annotate(episode) if episode.stop_reason.scored else "" for episode in context.whole]
    return [HindsightSkill(text, check_skill(text), origin="annotator") for text in texts]


def _lent(lend: Lend) -> Assign:
    return lambda own, context, age: lend(own, context)


def _nameless(keep_goal: bool, origin: str) -> Assign:
    def assign(own: Sequence[HindsightSkill], context: SkillContext, age: float) -> list[HindsightSkill]:
        pairs = zip(own, context.whole, strict=True)
        return [
            dataclasses.replace(skill, text=without_names(skill.text, episode, keep_goal), origin=origin)
            for skill, episode in pairs
        ]

    return assign


SOURCES: dict[str, Assign] = {
    "own": _own,
    "stale": _stale,
    "wrong_outcome": _wrong_outcome,
    "library": _library,
    "annotator": _annotator,
    "shuffled_group": _lent(lending.shuffled_group),
    "shuffled_batch": _lent(lending.shuffled_batch),
    "shuffled_family": _lent(lending.shuffled_family),
    "sibling_won": _lent(lending.sibling_won),
    "sibling_lost": _lent(lending.sibling_lost),
    "own_goal_names": _nameless(keep_goal=True, origin="own_goal_names"),
    "own_unnamed": _nameless(keep_goal=False, origin="own_unnamed"),
    "random_text": _random_text,
    "generic": _generic,
    "stale_text": _stale_text,
    "none": _none,
}
"""How every ``skill_source`` assigns skills. ``stale`` and ``wrong_outcome`` differ in how skills are *written*."""

DRAWN = ("shuffled_group", "shuffled_batch", "shuffled_family", "sibling_won", "sibling_lost", "stale_text")
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
