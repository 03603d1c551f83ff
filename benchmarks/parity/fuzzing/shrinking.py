"""Makes a difference small: fewest facts first, then fewest commands, by leaving out ever smaller pieces."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from seed_envs.alfworld.pddl import Problem
from seed_envs.alfworld.textworld_engine import TextWorldFailed, TextWorldProcess
from seed_envs.errors import DataInvalid

from .cases import Case, Difference

MOST_TRIES = 400
_Fact = tuple[str, Any]
_Piece = TypeVar("_Piece")
_FIELDS = (
    "object_types", "receptacle_types", "inside", "object_locations", "inner", "can_contain", "flags", "held",
)  # fmt: skip


def facts_of(problem: Problem) -> list[_Fact]:
    """Every fact that can be left out, as (field, value); a receptacle's type and place are one."""
    facts: list[_Fact] = []
    for field in _FIELDS:
        value = getattr(problem, field)
        if field == "flags":
            facts += [(field, (flag, name)) for flag in sorted(value) for name in sorted(value[flag])]
        elif field == "held":
            facts += [(field, value)] if value else []
        else:
            facts += [(field, item) for item in sorted(value.items() if isinstance(value, dict) else value)]
    return facts


def with_facts(problem: Problem, facts: Sequence[_Fact]) -> Problem:
    """The problem with these facts alone; contents of receptacles that are gone go too."""
    kept: dict[str, list[Any]] = {field: [] for field in _FIELDS}
    for field, value in facts:
        kept[field].append(value)
    receptacles = dict(kept["receptacle_types"])
    flags: dict[str, set[str]] = {flag: set() for flag in problem.flags}
    for flag, name in kept["flags"]:
        flags[flag].add(name)
    return dataclasses.replace(
        problem,
        object_types=dict(kept["object_types"]),
        receptacle_types=receptacles,
        receptacle_locations={r: problem.receptacle_locations[r] for r in receptacles},
        inside={pair for pair in kept["inside"] if pair[1] in receptacles},
        object_locations=set(kept["object_locations"]),
        inner=set(kept["inner"]),
        can_contain=set(kept["can_contain"]),
        flags=flags,
        held="".join(kept["held"]),
    )


def shrink(
    problem: Problem, found: Difference, model: Mapping[str, Any], process: TextWorldProcess
) -> tuple[Problem, Difference]:
    """The smallest game and commands found that still part in one of the same fields.

    Args:
        problem: Facts that differ under ``found.commands``.
        found: The difference.
        model: See :class:`~.cases.Case`.
        process: The original.
    """
    best, tries = found, 0

    def parts(smaller: Problem, commands: Sequence[str]) -> bool:
        nonlocal best, tries
        tries += 1
        if tries > MOST_TRIES:
            return False
        try:
            now = Case(smaller, model).replay(process, commands)
        except (DataInvalid, TextWorldFailed):
            return False
        if now is None or not set(now.fields) & set(found.fields):
            return False
        best = now
        return True

    facts = minimise(facts_of(problem), lambda kept: parts(with_facts(problem, kept), best.commands))
    small = with_facts(problem, facts)
    minimise(list(best.commands), lambda kept: parts(small, kept))
    facts = minimise(facts, lambda kept: parts(with_facts(problem, kept), best.commands))
    return with_facts(problem, facts), best


def minimise(pieces: list[_Piece], still: Callable[[list[_Piece]], bool]) -> list[_Piece]:
    """Leave out ever smaller runs of pieces while ``still`` says yes."""
    size = max(1, len(pieces) // 2)
    while size:
        start = 0
        while start < len(pieces):
            fewer = pieces[:start] + pieces[start + size :]
            if still(fewer):
                pieces = fewer
            else:
                start += size
        size //= 2
    return pieces
