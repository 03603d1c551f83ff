"""Action strings: the original's one-match grammar and a tolerant reading.

Only syntax is decided here; whether a button exists is the engine's question.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import NamedTuple

_ORIGINAL = re.compile(r"(.+)\[(.+)\]")
_IMAGINED = re.compile(r"^\s*observation\s*\d*\s*:", re.IGNORECASE | re.MULTILINE)
_TOLERANT = re.compile(r"(search|click)\s*\[", re.IGNORECASE)


class Command(NamedTuple):
    """A parsed action: ``kind`` is search or click (empty if unreadable), ``reason`` says why it is unreadable."""

    kind: str
    argument: str
    reason: str = ""


def parse_original(action: str, clickables: Callable[[], Collection[str]]) -> Command:
    """Reads an action as the original does: one greedy match from the first character.

    Args:
        action: The agent's text.
        clickables: Not used by this grammar.
    """
    match = _ORIGINAL.match(action)
    if match is None:
        return Command("", "", "expected search[words] or click[button]")
    kind, argument = match.groups()
    if kind not in ("search", "click"):
        return Command("", "", f"unknown action {kind[:40]!r}: expected search[words] or click[button]")
    return Command(kind, argument.lower())


def parse_tolerant(action: str, clickables: Callable[[], Collection[str]]) -> Command:
    """Reads the last action of a text, in any case, with blanks trimmed.

    A model that goes on by itself after its action (``search[..]``, then an ``Observation:`` of its own and what it
    would do next) has acted once: what follows such a line is not read.

    Args:
        action: The agent's text.
        clickables: Buttons of the page; a click is closed at the bracket that gives the longest of them.
    """
    imagined = _IMAGINED.search(action)
    if imagined is not None and _TOLERANT.search(action, 0, imagined.start()):
        action = action[: imagined.start()]
    matches = list(_TOLERANT.finditer(action))
    last = None
    for match in matches:
        if last is None or match.start() >= last[1]:
            closing = _closing_bracket(action, match.end())
            if closing is not None:
                last = (match, closing)
    if last is None:
        return Command("", "", "expected search[words] or click[button]")
    match, _ = last
    kind = match.group(1).lower()
    rest = action[match.end() :]
    argument = _argument(rest, clickables()) if kind == "click" else " ".join(_argument(rest, ()).split())
    if not argument:
        return Command("", "", f"{kind}[] needs an argument")
    return Command(kind, argument)


PARSERS: dict[str, Callable[[str, Callable[[], Collection[str]]], Command]] = {
    "original": parse_original,
    "tolerant": parse_tolerant,
}


def _closing_bracket(text: str, start: int) -> int | None:
    """Position of the bracket that balances an opening one just before ``start``; else the first closing one."""
    depth = 1
    for position in range(start, len(text)):
        depth += {"[": 1, "]": -1}.get(text[position], 0)
        if depth == 0:
            return position
    first = text.find("]", start)
    return None if first < 0 else first


def _argument(rest: str, clickables: Collection[str]) -> str:
    longest = ""
    position = rest.find("]")
    while position >= 0 and clickables:
        candidate = rest[:position].strip().lower()
        if candidate in clickables:
            longest = candidate
        position = rest.find("]", position + 1)
    if longest:
        return longest
    closing = _closing_bracket(rest, 0)
    return "" if closing is None else rest[:closing].strip().lower()
