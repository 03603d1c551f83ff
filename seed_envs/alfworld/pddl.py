"""Reads a game's PDDL problem into plain facts, and writes facts back to PDDL.

Only the ``:init`` facts, the goal block and the goal sentence are read.  The
domain and the grammar are fixed by the rules of the game: nothing found in a
file is interpreted, formatted or evaluated, and sizes are capped.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable
from typing import Final

from seed_envs.alfworld.goals import Goal
from seed_envs.errors import DataInvalid, close_matches

MAX_PROBLEM_CHARS: Final = 2_000_000
MAX_ENTITIES: Final = 2_000
MAX_FACTS: Final = 50_000

OBJECT_FLAGS: Final = tuple(
    (
        "pickupable cleanable heatable coolable toggleable sliceable isreceptacleobject isclean ishot iscool istoggled "
        "issliced"
    ).split()
)
RECEPTACLE_FLAGS: Final = ("openable", "opened")
RELATIONS: Final = tuple(
    (
        "receptacletype objecttype cancontain receptacleatlocation objectatlocation inreceptacle inreceptacleobject "
        "atlocation holds"
    ).split()
)
HANDS: Final = "holdsany"
"""Holds for the agent with something in its hand; said beside ``holds``, never alone."""
IGNORED: Final = frozenset(
    {"moveable", "ison", "isreceptacleobjectfull", "wasinreceptacle", "checked", "full", "examined"}
)
_KNOWN: Final = frozenset({*OBJECT_FLAGS, *RECEPTACLE_FLAGS, *RELATIONS, HANDS})

_WORD: Final = r"[!-'*-~]+"
"""Visible ASCII without parentheses: names reach prompts and terminals."""
_FACT: Final = re.compile(rf"\(\s*([a-z]+)\s+({_WORD})(?:\s+({_WORD}))?\s*\)")
_COMMENT: Final = re.compile(r";[^\n]*")

_TYPE = r"([a-z]+?)type"
_PLACE = rf"\(inreceptacle \?o \?r\)\(objecttype \?o {_TYPE}\)\(receptacletype \?r {_TYPE}\)"
_STATE = (
    rf"\({{able}} \?o\)\(objecttype \?o {_TYPE}\)\(receptacletype \?r {_TYPE}\)\({{done}} \?o\)\(inreceptacle \?o \?r\)"
)
_TWO = (
    rf"\(inreceptacle \?o1 \?r\)\(exists\(\?o2 - object\)\(and\(not\(= \?o1 \?o2\)\)\(objecttype \?o2 {_TYPE}\)"
    rf"\(receptacletype \?r {_TYPE}\)\(inreceptacle \?o2 \?r\)"
)
_HEAD = r"\(exists\(\?r - receptacle\)\(exists\({var} - object\)\(and"
_ONE = _HEAD.replace("{var}", r"\?o")
_GOAL_OPENING: Final = "(:goal(and"
MAX_GOALS: Final = 2
_GOAL_SHAPES: Final[dict[str, re.Pattern[str]]] = {
    "simple": re.compile(_ONE + _PLACE + r"\)*"),
    "clean": re.compile(_ONE + _STATE.format(able="cleanable", done="isclean") + r"\)*"),
    "heat": re.compile(_ONE + _STATE.format(able="heatable", done="ishot") + r"\)*"),
    "cool": re.compile(_ONE + _STATE.format(able="coolable", done="iscool") + r"\)*"),
    "two": re.compile(
        _HEAD.replace("{var}", r"\?o1") + rf"\(objecttype \?o1 {_TYPE}\)\(receptacletype \?r {_TYPE}\)" + _TWO + r"\)*"
    ),
    "look": re.compile(
        r"\(exists\(\?ot - object \?r - receptacle \?a - agent \?l - location\)\(and"
        rf"\(objecttype \?ot {_TYPE}\)\(toggleable \?ot\)\(istoggled \?ot\)\(receptacleatlocation \?r \?l\)"
        r"\(atlocation \?a \?l\)\(inreceptacle \?ot \?r\)\)\)\(exists\(\?o - object \?a - agent\)\(and"
        rf"\(objecttype \?o {_TYPE}\)\(holds \?a \?o\)\)*"
    ),
}


@dataclasses.dataclass(slots=True)
class Problem:
    """Facts of one game; every id is lower case, every collection a set or mapping without duplicates.

    Attributes:
        start: location id where the agent stands.
        receptacle_types: receptacle id -> type name without the ``type`` ending.
        object_types: object id -> type name without the ``type`` ending.
        can_contain: (receptacle type, object type) pairs.
        receptacle_locations: receptacle id -> location id.
        object_locations: (object id, location id) pairs.
        inside: (object id, receptacle id) pairs.
        inner: (inner object id, outer object id) pairs.
        flags: predicate name -> ids it holds for.
        goal: what has to be achieved.
        held: id of the object in the agent's hand at the start, or "".
    """

    start: str
    receptacle_types: dict[str, str]
    object_types: dict[str, str]
    can_contain: set[tuple[str, str]]
    receptacle_locations: dict[str, str]
    object_locations: set[tuple[str, str]]
    inside: set[tuple[str, str]]
    inner: set[tuple[str, str]]
    flags: dict[str, set[str]]
    goal: Goal
    held: str = ""

    def entities(self) -> list[str]:
        """All ids that the facts mention and that carry a position, sorted by code point."""
        ids: set[str] = set(self.receptacle_types) | set(self.object_types) | {self.start, self.held}
        for pairs in (self.object_locations, self.inside, self.inner, self.receptacle_locations.items()):
            for left, right in pairs:
                ids.add(left)
                ids.add(right)
        for members in self.flags.values():
            ids |= members
        return sorted(name for name in ids if "_bar_" in name)

    def objects(self) -> list[str]:
        """Ids of all objects, typed or only mentioned by facts about objects, sorted by code point."""
        ids = {*self.object_types, *(o for o, _ in self.inside), *(o for o, _ in self.object_locations)}
        ids.update(*self.inner, *(self.flags[flag] for flag in OBJECT_FLAGS), {self.held} - {""})
        return sorted(ids)


def read_problem(text: str, source: str = "problem") -> Problem:
    """Read the facts and the goal of one PDDL problem.

    Args:
        text: the problem as found in a game file.
        source: what to call it in error messages.

    Returns:
        The facts.

    Raises:
        DataInvalid: when the text is too large, malformed, uses unknown predicates or an unknown goal shape.
    """
    if len(text) > MAX_PROBLEM_CHARS:
        raise DataInvalid(f"{source}: problem of {len(text):,} characters; at most {MAX_PROBLEM_CHARS:,} are read")
    lowered = text.lower()
    if ";" in lowered:
        lowered = _COMMENT.sub("", lowered)
    begin, end = lowered.find("(:init"), lowered.find("(:goal")
    if begin < 0 or end < begin:
        raise DataInvalid(f"{source}: expected a section '(:init …' followed by '(:goal …', found {_shape(lowered)}")
    body = lowered[begin + len("(:init") : end]
    rows = _FACT.findall(body)
    if len(rows) != body.count("("):
        raise DataInvalid(f"{source}: {_first_bad_fact(body)}")
    if len(rows) > MAX_FACTS:
        raise DataInvalid(f"{source}: {len(rows):,} facts; at most {MAX_FACTS:,} are read")
    goal = read_goal(lowered[end:], source)
    return _collect(rows, goal, source)


def read_goal(block: str, source: str = "problem") -> Goal:
    """Recognise a goal of one of the six official shapes, or two of them joined.

    Args:
        block: text from ``(:goal`` to the end of the problem, in lower case.
        source: what to call it in error messages.

    Returns:
        The goal.

    Raises:
        DataInvalid: when the block has none of the six shapes.
    """
    flat = re.sub(r"\s*([()])\s*", r"\1", re.sub(r"\s+", " ", block[:20_000])).strip()
    found: list[Goal] = []
    rest = flat.removeprefix(_GOAL_OPENING)
    while rest and rest != flat and len(found) < MAX_GOALS:
        goal, rest = _next_goal(rest)
        if goal is None:
            break
        found.append(goal)
    if not found or rest:
        raise DataInvalid(f"{source}: the goal has none of the six known shapes: {flat[:300]!r}")
    return found[0] if len(found) == 1 else found[0]._replace(also=found[1])


def _next_goal(text: str) -> tuple[Goal | None, str]:
    """The goal that a text begins with, and the text behind it."""
    for kind, pattern in _GOAL_SHAPES.items():
        match = pattern.match(text)
        if match is None:
            continue
        words = match.groups()
        if kind == "look":
            return Goal(kind, words[1], words[0]), text[match.end() :]
        if kind == "two" and words[:2] != words[2:]:
            break
        return Goal(kind, words[0], words[1]), text[match.end() :]
    return None, text


def _shape(text: str) -> str:
    heads = re.findall(r"\(:[a-z]+", text)[:8]
    return f"sections {heads}" if heads else f"text beginning {text.strip()[:60]!r}"


def _first_bad_fact(body: str) -> str:
    rest = _FACT.sub("", body)
    at = rest.find("(")
    piece = " ".join(rest[at : at + 80].split())
    return f"malformed fact near {piece!a}; expected '(predicate id)' or '(predicate id id)', ids in visible ASCII"


def _without_type(name: str, source: str) -> str:
    if not name.endswith("type"):
        raise DataInvalid(f"{source}: type names end in 'Type', got {name!r}")
    return name[:-4]


def _collect(rows: Iterable[tuple[str, str, str]], goal: Goal, source: str) -> Problem:
    """Sort fact triples into a problem and check what the rules rely on."""
    pairs: dict[str, set[tuple[str, str]]] = {name: set() for name in RELATIONS}
    flags: dict[str, set[str]] = {name: set() for name in (*OBJECT_FLAGS, *RECEPTACLE_FLAGS, HANDS)}
    for name, first, second in rows:
        if name in pairs and second:
            pairs[name].add((first, second))
        elif name in flags and not second:
            flags[name].add(first)
        elif name not in IGNORED:
            _refuse(name, first, second, source)
    starts = {place for _, place in pairs["atlocation"]}
    if len(starts) != 1:
        raise DataInvalid(f"{source}: expected exactly one (atLocation agent location), got {sorted(starts)[:3]}")
    places: dict[str, str] = {}
    for receptacle, place in sorted(pairs["receptacleatlocation"]):
        if places.setdefault(receptacle, place) != place:
            raise DataInvalid(f"{source}: receptacle {receptacle!r} has two locations")
    hands = flags.pop(HANDS)
    if len(pairs["holds"]) > 1 or hands != {agent for agent, _ in pairs["holds"]}:
        raise DataInvalid(f"{source}: expected at most one (holds agent object), and (holdsAny agent) beside it")
    problem = Problem(
        start=starts.pop(),
        receptacle_types={r: _without_type(t, source) for r, t in sorted(pairs["receptacletype"])},
        object_types={o: _without_type(t, source) for o, t in sorted(pairs["objecttype"])},
        can_contain={(_without_type(r, source), _without_type(o, source)) for r, o in pairs["cancontain"]},
        receptacle_locations=places,
        object_locations=pairs["objectatlocation"],
        inside=pairs["inreceptacle"],
        inner=pairs["inreceptacleobject"],
        flags=flags,
        goal=goal,
        held="".join(name for _, name in pairs["holds"]),
    )
    _check(problem, source)
    return problem


def _refuse(name: str, first: str, second: str, source: str) -> None:
    fact = f"({' '.join(part for part in (name, first, second) if part)})"
    if name in _KNOWN:
        raise DataInvalid(f"{source}: {fact} has the wrong number of arguments")
    hint = close_matches(name, sorted(_KNOWN))
    raise DataInvalid(f"{source}: predicate {name!r} in {fact} is not known to the game's rules.{hint}")


def _check(problem: Problem, source: str) -> None:
    if not problem.receptacle_types:
        raise DataInvalid(f"{source}: no receptacle: expected at least one (receptacleType id type)")
    count = len(problem.receptacle_types) + len(problem.object_types)
    if count > MAX_ENTITIES:
        raise DataInvalid(f"{source}: {count:,} receptacles and objects; at most {MAX_ENTITIES:,} are read")
    for receptacle in problem.receptacle_types:
        if receptacle not in problem.receptacle_locations:
            raise DataInvalid(f"{source}: receptacle {receptacle!r} has no (receptacleAtLocation …)")
    for name, receptacle in sorted(problem.inside):
        if receptacle not in problem.receptacle_types:
            raise DataInvalid(f"{source}: {name!r} lies in {receptacle!r}, which is not a receptacle")


def write_problem(problem: Problem, name: str) -> str:
    """Write facts as a PDDL problem that the original game engine also reads.

    Args:
        problem: the facts.
        name: problem name (letters, digits, underscores).

    Returns:
        The PDDL text.
    """
    lines = [f"(define (problem {name})", "(:domain alfred)", "(:objects", "agent1 - agent"]
    otypes = sorted(set(problem.object_types.values()) | {o for _, o in problem.can_contain})
    rtypes = sorted(set(problem.receptacle_types.values()) | {r for r, _ in problem.can_contain})
    lines += [f"    {t}type - otype" for t in otypes] + [f"    {t}type - rtype" for t in rtypes]
    places = {problem.start, *problem.receptacle_locations.values(), *(place for _, place in problem.object_locations)}
    lines += [f"    {o} - object" for o in problem.objects()]
    lines += [f"    {r} - receptacle" for r in sorted(problem.receptacle_types)]
    lines += [f"    {place} - location" for place in sorted(places)]
    lines += [")", "(:init"]
    lines += [f"    (receptacleType {r} {t}type)" for r, t in sorted(problem.receptacle_types.items())]
    lines += [f"    (objectType {o} {t}type)" for o, t in sorted(problem.object_types.items())]
    lines += [f"    (canContain {r}type {o}type)" for r, o in sorted(problem.can_contain)]
    cased = {"isreceptacleobject": "isReceptacleObject", "iscool": "isCool", "isclean": "isClean", "ishot": "isHot"}
    cased |= {"istoggled": "isToggled", "issliced": "isSliced"}
    for flag in sorted(problem.flags):
        lines += [f"    ({cased.get(flag, flag)} {member})" for member in sorted(problem.flags[flag])]
    lines += [f"    (atLocation agent1 {problem.start})"]
    lines += [f"    (receptacleAtLocation {r} {place})" for r, place in sorted(problem.receptacle_locations.items())]
    lines += [f"    (objectAtLocation {o} {place})" for o, place in sorted(problem.object_locations)]
    lines += [f"    (inReceptacle {o} {r})" for o, r in sorted(problem.inside)]
    lines += [f"    (inReceptacleObject {o} {outer})" for o, outer in sorted(problem.inner)]
    if problem.held:
        lines += [f"    (holds agent1 {problem.held})", "    (holdsAny agent1)"]
    return "\n".join([*lines, ")", write_goal(problem.goal), ")", ""])


def write_goal(goal: Goal) -> str:
    """Write a goal in the official shape of its kind; two goals as one conjunction.

    Args:
        goal: the goal.

    Returns:
        The PDDL block ``(:goal …)``.
    """
    return f"(:goal (and {' '.join(map(_write_part, goal.parts))}))"


def _write_part(goal: Goal) -> str:
    o, t = f"{goal.object_type}type", f"{goal.target_type}type"
    if goal.kind == "look":
        return (
            "(exists (?ot - object ?r - receptacle ?a - agent ?l - location) (and "
            f"(objectType ?ot {t}) (toggleable ?ot) (isToggled ?ot) (receptacleAtLocation ?r ?l) "
            "(atLocation ?a ?l) (inReceptacle ?ot ?r))) (exists (?o - object ?a - agent) (and "
            f"(objectType ?o {o}) (holds ?a ?o)))"
        )
    if goal.kind == "two":
        return (
            f"(exists (?r - receptacle) (exists (?o1 - object) (and (objectType ?o1 {o}) "
            f"(receptacleType ?r {t}) (inReceptacle ?o1 ?r) (exists (?o2 - object) (and (not (= ?o1 ?o2)) "
            f"(objectType ?o2 {o}) (receptacleType ?r {t}) (inReceptacle ?o2 ?r))))))"
        )
    if goal.kind == "simple":
        inside = f"(inReceptacle ?o ?r) (objectType ?o {o}) (receptacleType ?r {t})"
    else:
        able, done = {"clean": ("cleanable", "isClean"), "heat": ("heatable", "isHot"), "cool": ("coolable", "isCool")}[
            goal.kind
        ]
        inside = f"({able} ?o) (objectType ?o {o}) (receptacleType ?r {t}) ({done} ?o) (inReceptacle ?o ?r)"
    return f"(exists (?r - receptacle) (exists (?o - object) (and {inside})))"
