"""Whether a skill speaks of its episode at all: it has to name a thing or a command of it.

A model that apologises, praises itself or talks about the weather writes text that is well-formed and teaches noise.
Words alone are compared; whether the advice is any good is not judged.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from seed_envs.trajectory import Trajectory

_WORD = re.compile(r"[^\W\d_]{2,}")
EMPTY = frozenset(
    """
    about after again all also am an and any anything are as at be because been before being but by can cannot could
    did do does doing done don each else every everything for from get got had happens has have having he help her
    here him his how if in into is isn it its just let like ll make many may me more most much must my need never no
    none not nothing now of off on once only or other our out over own please re same see shall she should so some
    something sorry such task than that the their them then there these they thing things this those time to too try
    under until up us use very want was way we well were what when where which while who why will with without would
    ve yes yet you your goal
    """.split()
)
"""Words that every English text may hold: they name nothing."""


def _words(texts: Iterable[str]) -> set[str]:
    return {word for text in texts for word in _WORD.findall(text.lower())} - EMPTY


def names_something(skill: str, episode: Trajectory) -> bool:
    """Return whether a skill names a thing or a command of its episode.

    What counts are the words of the goal, of what was seen and of the commands that were carried out, except those
    that any text may hold; and whole commands of one word, whatever that is (``up``, ``7``).
    """
    done = {step.action for step in episode.steps if step.action_valid}
    if not done.isdisjoint(skill.split()):
        return True
    seen = (step.observation for step in episode.steps)
    return not _words([skill]).isdisjoint(_words([episode.goal, episode.final_observation, *done, *seen]))
