"""Reads a goal out of a sentence: official wording exactly, other people's words as far as keywords go.

Used by players and annotators without privileges.  The game itself never
reads its sentence.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from seed_envs.alfworld.generator import tables
from seed_envs.alfworld.goals import JOINT, SENTENCE_PREFIX, SENTENCES, Goal

_NAME: Final = "([a-z]+)"
_GOALS: Final = [
    (kind, re.compile(phrase.format(o=_NAME, t=_NAME)))
    for kind in ("two", "clean", "heat", "cool", "look", "simple")
    for phrase in SENTENCES[kind]
]
_KIND_WORDS: Final = (
    ("clean", r"clean|cleaned|wash|washed|rinse|rinsed|wet"),
    ("heat", r"heat|heated|hot|warm|warmed|cook|cooked|microwaved"),
    ("cool", r"cool|cooled|cold|chill|chilled|refrigerated"),
    ("look", r"lamp|lamps|lamplight|light|lit"),
    ("two", r"two|both|2|pair"),
)
_ALIASES: Final = {
    "counter": "countertop",
    "sink": "sinkbasin",
    "tub": "bathtubbasin",
    "bathtub": "bathtubbasin",
    "trash can": "garbagecan",
    "trash": "garbagecan",
    "couch": "sofa",
    "chair": "armchair",
    "stove": "stoveburner",
    "burner": "stoveburner",
    "refrigerator": "fridge",
    "coffee maker": "coffeemachine",
    "dining table": "diningtable",
    "kitchen table": "diningtable",
    "nightstand": "sidetable",
    "night stand": "sidetable",
    "tv stand": "tvstand",
    "lamp": "desklamp",
    "phone": "cellphone",
    "remote": "remotecontrol",
    "sponge": "dishsponge",
    "wine": "winebottle",
    "soap": "soapbar",
    "salt": "saltshaker",
    "pepper": "peppershaker",
    "keys": "keychain",
    "clock": "alarmclock",
}
"""Common names of things whose word in the game is another."""


def read_goal_line(text: str) -> Goal | None:
    """Recognise an official goal sentence, or two of them joined.

    Args:
        text: a text that ends with the sentence; letter case does not matter.

    Returns:
        The goal, or None for any other wording (for example a human's).
    """
    goals = [_read_phrase(phrase) for phrase in _task(text).split(JOINT)]
    if not 1 <= len(goals) <= 2 or None in goals:
        return None
    first, second = goals[0], goals[-1]
    return first if first is None or len(goals) == 1 else first._replace(also=second)


def guess_goal(text: str) -> Goal:
    """Read a goal as far as keywords go.

    Args:
        text: a text that ends with the goal sentence in anybody's words.

    Returns:
        The goal of an official sentence; of another the best guess, with "" for a type that was not named.
    """
    return read_goal_line(text) or _guess(_task(text))


def _task(text: str) -> str:
    return text.lower().rpartition(SENTENCE_PREFIX.lower())[2].strip().rstrip(".")


def _read_phrase(phrase: str) -> Goal | None:
    for kind, pattern in _GOALS:
        match = pattern.fullmatch(phrase)
        if match is not None:
            return Goal(kind, match.group(1), match.group(2))
    return None


@lru_cache(maxsize=1)
def _vocabulary() -> tuple[tuple[re.Pattern[str], str], ...]:
    """Patterns of the names of things, longest first, and what each stands for in the game."""
    names = {name: name for name in (*tables.PICKUPABLE, *tables.CAN_CONTAIN, "desklamp")} | _ALIASES
    ordered = sorted(names, key=lambda name: (-len(name), name))
    spaced = [" ?".join(name.replace(" ", "")) for name in ordered]
    return tuple((re.compile(rf"\b{s}(?:s|es)?\b"), names[n]) for s, n in zip(spaced, ordered, strict=True))


def _guess(task: str) -> Goal:
    """The first thing named that can be carried, and the last that can hold it."""
    kind = next((kind for kind, words in _KIND_WORDS if re.search(rf"\b(?:{words})\b", task)), "simple")
    spots: list[tuple[int, str]] = []
    for pattern, name in _vocabulary():
        spots += [(match.start(), name) for match in pattern.finditer(task)]
        task = pattern.sub(lambda match: "#" * len(match.group()), task)
    names = [name for _, name in sorted(spots)]
    thing = next((name for name in names if name in tables.PICKUPABLE), "")
    if kind == "look":
        return Goal(kind, thing, "desklamp")
    holders = [name for name in names if thing in tables.CAN_CONTAIN.get(name, ()) or not thing]
    return Goal(kind, thing, next((name for name in reversed(holders) if name in tables.CAN_CONTAIN), ""))
