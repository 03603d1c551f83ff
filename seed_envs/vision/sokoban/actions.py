"""How action text becomes an action code: the framework's lenient reading and the exact one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

MAX_ACTION_CHARS = 200
_CLASSIC_ORDER = (("up", 1), ("down", 2), ("left", 3), ("right", 4), ("still", 0))
_SEPARATOR = re.compile(r"[,;\n]")


class ReadAction(NamedTuple):
    """The outcome of reading: action codes, or none and the reason why."""

    codes: tuple[int, ...]
    reason: str = ""


def read_classic(text: str) -> ReadAction:
    """Reads an action as verl-agent does: the first of up, down, left, right, still found as a *substring* wins.

    "do not go up, go down" is therefore *up*. Kept for comparison with published numbers only.

    Args:
        text: What stood between the action tags.
    """
    lowered = text.lower()
    for word, code in _CLASSIC_ORDER:
        if word in lowered:
            return ReadAction((code,))
    return ReadAction((), f"no action word in {text[:60]!r}; expected one of up, down, left, right, still")


def read_strict(text: str, words: Mapping[str, int], max_actions: int = 1) -> ReadAction:
    """Reads whole action words, several separated by commas where the environment allows that.

    Args:
        text: What stood between the action tags.
        words: Accepted words and their codes.
        max_actions: Greatest number of actions in one turn.

    Returns:
        The codes in order. Any unknown word makes the whole turn invalid, so nothing is executed by halves.
    """
    if len(text) > MAX_ACTION_CHARS:
        return ReadAction((), f"action has {len(text)} characters; at most {MAX_ACTION_CHARS} are read")
    parts = [part.strip().lower() for part in _SEPARATOR.split(text)]
    if parts and not parts[-1]:
        parts.pop()
    expected = ", ".join(words)
    if not parts:
        return ReadAction((), f"empty action; expected one of {expected}")
    if len(parts) > max_actions:
        return ReadAction((), f"{len(parts)} actions in one turn; at most {max_actions} allowed")
    for part in parts:
        if part not in words:
            return ReadAction((), f"unknown action {part[:60]!r}; expected one of {expected}")
    return ReadAction(tuple(words[part] for part in parts))
