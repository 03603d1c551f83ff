"""Seeded games in the official rooms, without any download.

The rooms (receptacles, doors, shared places, fixed objects, kinds of things)
are those of the official games; goal, numbers and positions of the things are
drawn.  A task id names everything that the draw depends on, so one id is one
game everywhere.  Games are split by room.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from functools import lru_cache, reduce
from importlib import resources
from typing import Any, Final

from seed_envs.alfworld.game import Game, compile_game
from seed_envs.alfworld.generator import tables
from seed_envs.alfworld.generator.builder import Receptacle, Thing, build_problem
from seed_envs.alfworld.generator.draw import Draw
from seed_envs.alfworld.generator.knobs import PARTS as PARTS
from seed_envs.alfworld.generator.knobs import Knobs, parse_id
from seed_envs.alfworld.generator.knobs import make_id as make_id
from seed_envs.alfworld.generator.words import in_other_words
from seed_envs.alfworld.goals import KIND_OF_TYPE, SENTENCE_PREFIX, TASK_TYPES, Goal
from seed_envs.alfworld.oracle import Planner
from seed_envs.alfworld.pddl import Problem
from seed_envs.errors import NoTaskMatches, OracleUnavailable

COPY_WEIGHTS: Final = (43, 32, 25)
ATTEMPTS: Final = 50
VESSEL_SHARE: Final = 0.04
STATIONS: Final = {"clean": "sinkbasin", "heat": "microwave", "cool": "fridge"}
_UNSEEN_EVERY: Final = 9


class Room:
    """One room template.

    Attributes:
        scene: its number (kitchens 1-30, living rooms 201-230, bedrooms 301-330, bathrooms 401-430).
        kind: ``kitchen``, ``living``, ``bedroom`` or ``bathroom``.
        receptacles: in the order of their ids.
        fixed: objects that cannot be moved.
        kinds: kinds of movable things that belong here.
    """

    def __init__(self, row: Mapping[str, Any]) -> None:
        self.scene: int = row["scene"]
        self.kind: str = row["room"]
        self.receptacles = tuple(Receptacle(kind, place, bool(door)) for kind, place, door in row["receptacles"])
        self.fixed = tuple(Thing(kind, tuple(standing)) for kind, standing in row["fixed"])
        self.kinds: tuple[str, ...] = tuple(row["kinds"])

    def joined(self, annex: Room) -> Room:
        """This room and another as one, without a wall between them and known by this room's number."""
        room = object.__new__(Room)
        room.scene, room.kind = self.scene, f"{self.kind}+{annex.kind}"
        behind = 1 + max(receptacle.place for receptacle in self.receptacles)
        shift = len(self.receptacles)
        room.receptacles = (*self.receptacles, *(r._replace(place=r.place + behind) for r in annex.receptacles))
        room.fixed = (
            *self.fixed,
            *(t._replace(receptacles=tuple(r + shift for r in t.receptacles)) for t in annex.fixed),
        )
        room.kinds = tuple(sorted({*self.kinds, *annex.kinds}))
        return room


@lru_cache(maxsize=1)
def _data() -> tuple[dict[int, Room], dict[str, dict[str, int]]]:
    text = resources.files(__package__).joinpath("scenes.json").read_text(encoding="utf-8")
    data = json.loads(text)
    rooms = {row["scene"]: Room(row) for row in data["scenes"]}
    return rooms, {kind: dict(map(tuple, rows)) for kind, rows in data["typical"].items()}


def rooms() -> dict[int, Room]:
    """All room templates by number."""
    return _data()[0]


def typical_places() -> dict[str, dict[str, int]]:
    """Object type -> receptacle type -> how often it lies there in the official games."""
    return _data()[1]


@lru_cache(maxsize=8)
def scenes_of(part: str) -> tuple[int, ...]:
    """The rooms of one part; ``valid_unseen`` shares none with the other two.

    Args:
        part: ``train``, ``valid_seen`` or ``valid_unseen``.

    Returns:
        Room numbers, rising.
    """
    held_out = [scene for kind in _by_kind().values() for scene in kind[_UNSEEN_EVERY - 1 :: _UNSEEN_EVERY]]
    if part == "valid_unseen":
        return tuple(sorted(held_out))
    return tuple(scene for scene in sorted(rooms()) if scene not in held_out)


def _by_kind() -> dict[str, list[int]]:
    groups: dict[str, list[int]] = {}
    for scene, room in sorted(rooms().items()):
        groups.setdefault(room.kind, []).append(scene)
    return groups


def generate(task_id: str) -> Game:
    """Generate the game that an id names; it is proven solvable by the planner.

    Args:
        task_id: see :func:`make_id`.

    Returns:
        The compiled game with its shortest plan as walkthrough.

    Raises:
        UnknownTask: for a malformed id.
        NoTaskMatches: when no room of the part allows what the knobs ask for.
    """
    return _generate(task_id)[2]


@lru_cache(maxsize=4096)
def scene_of(task_id: str) -> int:
    """The room of a generated game, also where its id does not name one.

    Args:
        task_id: see :func:`make_id`.

    Returns:
        The room's number.
    """
    return _generate(task_id)[0].scene


def allows(part: str, scene: int, knobs: Knobs) -> bool:
    """Whether a room belongs to a part and, by itself or joined to others, has tasks of the family asked for.

    Args:
        part: ``train``, ``valid_seen`` or ``valid_unseen``.
        scene: room number.
        knobs: limits of the draw; an empty ``task_type`` asks for the part only.

    Returns:
        True when games can be drawn there.
    """
    if scene not in scenes_of(part):
        return False
    return not knobs.task_type or knobs.rooms > 1 or KIND_OF_TYPE[knobs.task_type] in _possible_goals((scene,))


def generate_problem(task_id: str) -> tuple[Problem, Game]:
    """Like :func:`generate`, with the facts beside the game, for writing a game file.

    Args:
        task_id: see :func:`make_id`.

    Returns:
        Facts and compiled game.
    """
    return _generate(task_id)[1:]


def _generate(task_id: str) -> tuple[Room, Problem, Game]:
    part, _, knobs = parse_id(task_id)
    draw = Draw(task_id)
    for _ in range(ATTEMPTS):
        room, goal = _draw_goal(part, knobs, draw)
        receptacles = _keep(room, goal, knobs, draw)
        things = _draw_things(room, receptacles, goal, knobs, draw)
        if things is None:
            continue
        problem = build_problem([room.receptacles[r] for r in receptacles], things, goal)
        sentence = f"{SENTENCE_PREFIX}{in_other_words(goal, draw)}." if knobs.words else goal.sentence(draw.below(2))
        game = compile_game(problem, game_id=task_id, sentence=sentence)
        try:
            plan = Planner(game).plan(game.start)
        except OracleUnavailable:
            continue
        if plan:
            return room, problem, dataclasses.replace(game, walkthrough=tuple(plan))
    raise NoTaskMatches(f"task {task_id!r}: no solvable game found in {ATTEMPTS} draws; loosen the knobs {knobs}")


@lru_cache(maxsize=256)
def _room(scenes: tuple[int, ...]) -> Room:
    return reduce(Room.joined, (rooms()[scene] for scene in scenes))


@lru_cache(maxsize=256)
def _possible_goals(scenes: tuple[int, ...]) -> dict[str, list[Goal]]:
    room = _room(scenes)
    present = sorted({receptacle.kind for receptacle in room.receptacles})
    lamps = any(thing.kind == "desklamp" and thing.receptacles for thing in room.fixed)
    able = {
        "simple": tables.PICKUPABLE,
        "two": tables.PICKUPABLE,
        "clean": tables.CLEANABLE if "sinkbasin" in present else frozenset(),
        "heat": tables.HEATABLE if "microwave" in present else frozenset(),
        "cool": tables.COOLABLE if "fridge" in present else frozenset(),
    }
    found: dict[str, list[Goal]] = {kind: [] for kind in TASK_TYPES}
    for kind, members in able.items():
        for thing in (name for name in room.kinds if name in members):
            homes = [place for place in present if thing in tables.CAN_CONTAIN[place]]
            targets = [place for place in homes if place != STATIONS.get(kind)]
            # With a single possible kind of place a simple task could never start unsolved.
            if len(homes) > 1 or kind in STATIONS:
                found[kind] += [Goal(kind, thing, place) for place in targets]
    if lamps:
        reachable = [t for t in room.kinds if any(t in tables.CAN_CONTAIN[place] for place in present)]
        found["look"] = [Goal("look", thing, "desklamp") for thing in reachable]
    return {kind: goals for kind, goals in found.items() if goals}


def _draw_goal(part: str, knobs: Knobs, draw: Draw) -> tuple[Room, Goal]:
    kind = KIND_OF_TYPE[knobs.task_type] if knobs.task_type else draw.choice(list(TASK_TYPES))
    scenes = scenes_of(part)
    if knobs.scene and knobs.scene not in scenes:
        raise NoTaskMatches(f"room {knobs.scene} does not belong to {part!r}; its rooms are {list(scenes)}")
    flats = [_with_annexes(scene, scenes, knobs, draw) for scene in ((knobs.scene,) if knobs.scene else scenes)]
    fitting = [flat for flat in flats if kind in _possible_goals(flat)]
    if not fitting and not knobs.task_type:
        kind = draw.choice(sorted(_possible_goals(flats[0])))
        fitting = flats
    if not fitting:
        raise NoTaskMatches(f"room {knobs.scene} allows no task of type {TASK_TYPES[kind]!r}")
    flat = draw.choice(fitting)
    goals = _possible_goals(flat)
    goal = _draw_one(goals[kind], draw)
    return _room(flat), goal._replace(also=_draw_second(goals, goal, draw)) if knobs.goals > 1 else goal


def _with_annexes(scene: int, scenes: Sequence[int], knobs: Knobs, draw: Draw) -> tuple[int, ...]:
    """The room, and as many others as asked for, each of another kind."""
    flat = [scene]
    while len(flat) < knobs.rooms:
        kinds = {rooms()[number].kind for number in flat}
        flat.append(draw.choice([number for number in scenes if rooms()[number].kind not in kinds]))
    return tuple(flat)


def _draw_one(goals: Sequence[Goal], draw: Draw) -> Goal:
    thing = draw.choice(sorted({goal.object_type for goal in goals}))
    return draw.choice([goal for goal in goals if goal.object_type == thing])


def _draw_second(goals: Mapping[str, Sequence[Goal]], first: Goal, draw: Draw) -> Goal:
    """A goal of another object; only one of two goals can ask to hold something in the end."""
    kinds = [kind for kind in goals if kind != "look" or first.kind != "look"]
    kind = draw.choice(kinds)
    others = [goal for goal in goals[kind] if goal.object_type != first.object_type]
    if not others:
        raise NoTaskMatches(f"the room has no second goal beside {first}")
    return _draw_one(others, draw)


def _keep(room: Room, goal: Goal, knobs: Knobs, draw: Draw) -> list[int]:
    """Indices of the receptacles that stay in the room, rising."""
    everything = list(range(len(room.receptacles)))
    if not knobs.receptacles or knobs.receptacles >= len(everything):
        return everything
    order = draw.shuffled(everything)
    kinds = [room.receptacles[r].kind for r in order]
    needed: list[int] = []
    for part in goal.parts:
        lamps = {r for thing in room.fixed if thing.kind == part.target_type for r in thing.receptacles}
        wanted = [kind for kind in (STATIONS.get(part.kind), part.target_type) if kind in kinds]
        needed += [order[kinds.index(kind)] for kind in wanted]
        needed += [r for r in order if r in lamps][:1]
        fit = [r for r in order if part.object_type in tables.CAN_CONTAIN[room.receptacles[r].kind] and r not in needed]
        needed += [r for r in fit if room.receptacles[r].kind != part.target_type][:1]
    needed = list(dict.fromkeys(needed))
    rest = [r for r in order if r not in needed]
    return sorted([*needed, *rest][: max(knobs.receptacles, len(needed))])


def _draw_things(room: Room, receptacles: Sequence[int], goal: Goal, knobs: Knobs, draw: Draw) -> list[Thing] | None:
    """All objects with their positions, sorted by kind; None when something needed finds no place."""
    position = {old: new for new, old in enumerate(receptacles)}
    kinds = [room.receptacles[r].kind for r in receptacles]
    things = [Thing(t.kind, tuple(position[r] for r in t.receptacles if r in position)) for t in room.fixed]
    wanted = {part.object_type: part for part in goal.parts}
    others = [kind for kind in room.kinds if kind not in wanted]
    if knobs.kinds >= 0:
        others = draw.shuffled(others)[: knobs.kinds]
    if knobs.crowd:
        others += draw.shuffled(sorted(tables.PICKUPABLE.difference(room.kinds, wanted)))[: knobs.crowd]
    weights = COPY_WEIGHTS[: knobs.copies]
    for kind in [*wanted, *sorted(others)]:
        part = wanted.get(kind)
        count = 1 + draw.weighted(range(len(weights)), weights)
        if part is not None:
            least = 2 if part.kind == "two" else 1
            count = least if knobs.crowd else max(count, least)
        homes = _homes(kind, kinds, part)
        if not homes:
            if part is not None:
                return None
            continue
        weights_here = _home_weights(kind, kinds, homes, bool(knobs.unlikely))
        things += [Thing(kind, (draw.weighted(homes, weights_here),)) for _ in range(count)]
    return _fill_vessels(sorted(things, key=lambda thing: thing.kind), draw)


def _homes(kind: str, kinds: Sequence[str], part: Goal | None) -> list[int]:
    """Receptacles where a thing, perhaps wanted by a goal, may lie at the start."""
    homes = [r for r, place in enumerate(kinds) if kind in tables.CAN_CONTAIN[place]]
    if not homes and kind in tables.NEVER_PLACEABLE:
        homes = [r for r, place in enumerate(kinds) if typical_places().get(kind, {}).get(place)]
    if part is not None and part.kind in ("simple", "two"):
        homes = [r for r in homes if kinds[r] != part.target_type]
    return homes


def _home_weights(kind: str, kinds: Sequence[str], homes: Sequence[int], unlikely: bool) -> list[float]:
    """How likely each home is: the official frequency of its kind, shared among those of that kind; or its inverse."""
    typical = typical_places().get(kind, {})
    power = -1 if unlikely else 1
    return [(typical.get(kinds[r], 0) + 1) ** power / kinds.count(kinds[r]) for r in homes]


def _fill_vessels(things: list[Thing], draw: Draw) -> list[Thing]:
    """Let some things lie in a bowl, box or pan that stands in the same receptacle."""
    filled = []
    for thing in things:
        partners = [
            index
            for index, other in enumerate(things)
            if other.kind in tables.VESSELS and other.receptacles == thing.receptacles and other.kind != thing.kind
        ]
        small = thing.kind in tables.PICKUPABLE and thing.kind not in tables.VESSELS
        inside = small and bool(partners) and draw.unit() < VESSEL_SHARE
        filled.append(thing._replace(vessel=draw.choice(partners)) if inside else thing)
    return filled
