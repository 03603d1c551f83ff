"""A forgiving reader of commands, as an option.

Maps what a person or a model plausibly meant to the one command the game
knows: letter case, spare blanks, quotes and Markdown stars, a heading such as
``Action:``, a final full stop, ``put X in / on Y`` for ``move X to Y``, ``pick
up X`` with or without the place, articles, and a missing number where only one
thing fits.  It never invents a command that is not admissible.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

MAX_CHARS: Final = 200
_AROUND: Final = "\"'`*_.!> "
_HEADING: Final = re.compile(r"^(?:(?:next |my )?(?:action|command|act)\s*\d*\s*:\s*|>\s*)")
_ARTICLES: Final = re.compile(r"\b(?:the|a|an|some)\s+(?=\S)")
_REWRITES: Final = (
    (
        re.compile(
            r"^(?:put down|put|place|move|drop|set down) (.+?) (?:in ?/ ?on|into|onto|inside|in|on|to|at) (.+)$"
        ),
        r"move \1 to \2",
    ),
    (re.compile(r"^(?:pick up|grab|get|take|pick) (.+?) (?:up )?(?:from|off|in|on|out of) (.+)$"), r"take \1 from \2"),
    (re.compile(r"^(?:pick up|grab|get|take|pick) (.+?)(?: up)?$"), r"take \1 from *"),
    (re.compile(r"^(?:put down|drop|set down) (.+)$"), r"move \1 to *"),
    (re.compile(r"^(?:goto|go|walk to|walk|head to|move) (?:to )?(.+)$"), r"go to \1"),
    (re.compile(r"^(?:wash|rinse|clean) (.+?) (?:with|in|at|using) (.+)$"), r"clean \1 with \2"),
    (re.compile(r"^(?:warm|heat) (?:up )?(.+?) (?:with|in|at|using) (.+)$"), r"heat \1 with \2"),
    (re.compile(r"^(?:cool|chill) (?:down )?(.+?) (?:with|in|at|using) (.+)$"), r"cool \1 with \2"),
    (re.compile(r"^(?:turn on|switch on|toggle|use) (.+)$"), r"use \1"),
    (re.compile(r"^(?:inspect|check|look at|examine) (.+)$"), r"examine \1"),
    (re.compile(r"^(?:cut|slice) (.+?) (?:with|using) (.+)$"), r"slice \1 with \2"),
    (re.compile(r"^(?:look around|l)$"), "look"),
    (re.compile(r"^(?:inv|i|check inventory)$"), "inventory"),
)


def normalise(text: str, admissible: Sequence[str]) -> str:
    """Find the admissible command that a text means.

    Args:
        text: what was written.
        admissible: the commands that are possible now.

    Returns:
        An admissible command when exactly one fits, else the text unchanged.
    """
    stripped = text.strip()
    if stripped in admissible or len(stripped) > MAX_CHARS:
        return stripped if len(stripped) <= MAX_CHARS else text
    plain = " ".join(stripped.lower().replace("**", "").strip(_AROUND).split())
    plain = _ARTICLES.sub("", _HEADING.sub("", plain).strip(_AROUND))
    for candidate in _readings(plain):
        if candidate in admissible:
            return candidate
        words = candidate.split(" ")
        fitting = [command for command in admissible if _fits(command, words)]
        if len(fitting) == 1:
            return fitting[0]
    return text


def _readings(plain: str) -> list[str]:
    """The text itself and its rewritings, in order of preference."""
    found = [plain]
    for pattern, replacement in _REWRITES:
        rewritten, count = pattern.subn(replacement, plain)
        if count:
            found.append(rewritten)
            if rewritten.startswith("move "):
                found.append(re.sub(r"^move (.+) to (.+)$", r"put \1 in/on \2", rewritten))
    return found


def _fits(command: str, words: Sequence[str]) -> bool:
    """Whether a command consists of the given words, apart from numbers that they leave out; ``*`` is any ending."""
    rest = iter((*words, ""))
    following = next(rest)
    for word in command.split(" "):
        if following == "*":
            return True
        if word == following:
            following = next(rest)
        elif not word.isdecimal():
            return False
    return following == ""
