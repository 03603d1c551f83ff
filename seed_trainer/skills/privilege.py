"""Controls that take from a skill what its reader could not know, by words: how much of the teaching is the answer?

What an episode shows are the words of its observations and of its commands behind the verb, and all numbers. Advice
whose named things are gone keeps its verbs, its order and what any text may hold.
"""

from __future__ import annotations

import re

from seed_envs.trajectory import Trajectory
from seed_trainer.skills.relevance import EMPTY

_TOKEN = re.compile(r"\w+|[^\w\s]")
IT = "it"
"""Stands where names were: a word that every tokenizer has."""


def without_names(skill: str, episode: Trajectory, keep_goal: bool) -> str:
    """Return a skill whose names of things of the episode are replaced by ``it``.

    Args:
        skill: The text.
        episode: What it is about.
        keep_goal: Whether names that the goal states stay; the reader knows them, but not where they led.
    """
    known = _words(episode.goal) if keep_goal else set()
    hidden = _names(episode) - known
    kept: list[str] = []
    for token in _TOKEN.findall(skill):
        name = token.lower()
        if name in hidden or (name.isdecimal() and name not in known):
            token = IT
        if token != IT or kept[-1:] != [IT]:
            kept.append(token)
    return re.sub(r" (?=[^\w\s])", "", " ".join(kept))


def _names(episode: Trajectory) -> set[str]:
    commands = [step.action.split() for step in episode.steps if step.action_valid and step.action]
    verbs = {command[0].lower() for command in commands if command}
    seen = [str(step.observation) for step in episode.steps] + [str(episode.final_observation)]
    done = [" ".join(command[1:]) for command in commands]
    return _words(" ".join((*seen, *done))) - verbs - EMPTY


def _words(text: str) -> set[str]:
    return {word.lower() for word in re.findall(r"\w+", text)}
