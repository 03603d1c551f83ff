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
from functools import lru_cache
from importlib import resources
from typing import Any, Final

from seed_envs.alfworld.game import Game, compile_game
from seed_envs.alfworld.generator import tables
from seed_envs.alfworld.generator.builder import Receptacle, Thing, build_problem
from seed_envs.alfworld.generator.draw import Draw
from seed_envs.alfworld.goals import KIND_OF_TYPE, TASK_TYPES, Goal
from seed_envs.alfworld.oracle import Planner
from seed_envs.alfworld.pddl import Problem
from seed_envs.errors import NoTaskMatches, OracleUnavailable, UnknownOption, UnknownTask, close_matches

PARTS: Final = ("train", "valid_seen", "valid_unseen")
COPY_WEIGHTS: Final = (43, 32, 25)
ATTEMPTS: Final = 50
VESSEL_SHARE: Final = 0.04
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


@dataclasses.dataclass(frozen=True, slots=True)
class Knobs:
    """What a draw may be limited to; part of the task id.

    Attributes:
        task_type: one official family name, or "" for any.
        scene: one room number, or 0 for any of the part's rooms.
        kinds: how many kinds of movable things besides the goal's (-1: all that belong to the room).
        copies: largest number of copies of a kind (1-4).
        receptacles: keep only this many receptacles, those that the goal needs first (0: all).
    """

    task_type: str = ""
    scene: int = 0
    kinds: int = -1
    copies: int = 3
    receptacles: int = 0

    @classmethod
    def checked(cls, values: Mapping[str, Any]) -> Knobs:
        """Build knobs from user input.

        Args:
            values: knob name -> value.

        Returns:
            The knobs.

        Raises:
            UnknownOption: for an unknown knob or a value out of range.
        """
        known = [field.name for field in dataclasses.fields(cls)]
        if not isinstance(values, Mapping):
            raise UnknownOption(f"generator={values!r}: expected a mapping from knob to value; knobs: {known}")
        for name in values:
            if name not in known:
                raise UnknownOption(f"generator knob {name!r} is unknown; known: {known}.{close_matches(name, known)}")
        knobs = cls(**dict(values))
        limits = {"scene": (0, 999), "kinds": (-1, 60), "copies": (1, 4), "receptacles": (0, 60)}
        for name, (low, high) in limits.items():
            value = getattr(knobs, name)
            if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
                raise UnknownOption(f"generator knob {name}={value!r}: expected a whole number from {low} to {high}")
        if knobs.task_type and knobs.task_type not in KIND_OF_TYPE:
            raise UnknownOption(
                f"generator knob task_type={knobs.task_type!r}; known: {list(KIND_OF_TYPE)}."
                f"{close_matches(knobs.task_type, KIND_OF_TYPE)}"
            )
        return knobs

    def suffix(self) -> str:
        """The part of a task id that names the knobs which differ from the default."""
        changed = [f for f in dataclasses.fields(self) if getattr(self, f.name) != f.default]
        return "".join(f";{field.name}={getattr(self, field.name)}" for field in changed)


def make_id(part: str, seed: int, knobs: Knobs | None = None) -> str:
    """The id of a generated game.

    Args:
        part: ``train``, ``valid_seen`` or ``valid_unseen``.
        seed: number of the game within the part, from 0.
        knobs: limits of the draw.

    Returns:
        Such as ``procedural/train/17;scene=301``.
    """
    return f"procedural/{part}/{seed}{'' if knobs is None else knobs.suffix()}"


def parse_id(task_id: str) -> tuple[str, int, Knobs]:
    """Read an id back.

    Args:
        task_id: what :func:`make_id` returned.

    Returns:
        Part, seed and knobs.

    Raises:
        UnknownTask: when it is no id of this generator in its one canonical spelling.
    """
    head, *tail = task_id.split(";")
    try:
        _, part, number = head.split("/")
        values: dict[str, Any] = dict(item.split("=", 1) for item in tail)
        for name in values:
            if name != "task_type":
                values[name] = int(values[name])
        knobs, seed = Knobs.checked(values), int(number)
        if part in PARTS and 0 <= seed < 2**63 and make_id(part, seed, knobs) == task_id:
            return part, seed, knobs
    except (ValueError, UnknownOption) as error:
        raise UnknownTask(f"task {task_id!r}: expected 'procedural/<part>/<number>[;knob=value…]' ({error})") from error
    raise UnknownTask(f"task {task_id!r}: expected 'procedural/<part>/<number>[;knob=value…]', part one of {PARTS}")


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


def allows(part: str, scene: int, task_type: str) -> bool:
    """Whether a room belongs to a part and has tasks of a family.

    Args:
        part: ``train``, ``valid_seen`` or ``valid_unseen``.
        scene: room number.
        task_type: official family name; "" asks for the part only.

    Returns:
        True when games can be drawn there.
    """
    if scene not in scenes_of(part):
        return False
    return not task_type or KIND_OF_TYPE[task_type] in _possible_goals(scene)


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
        sentence = goal.sentence(draw.below(2))
        game = compile_game(problem, game_id=task_id, sentence=sentence)
        try:
            plan = Planner(game).plan(game.start)
        except OracleUnavailable:
            continue
        if plan:
            return room, problem, dataclasses.replace(game, walkthrough=tuple(plan))
    raise NoTaskMatches(f"task {task_id!r}: no solvable game found in {ATTEMPTS} draws; loosen the knobs {knobs}")


@lru_cache(maxsize=256)
def _possible_goals(scene: int) -> dict[str, list[Goal]]:
    room = rooms()[scene]
    present = sorted({receptacle.kind for receptacle in room.receptacles})
    lamps = any(thing.kind == "desklamp" and thing.receptacles for thing in room.fixed)
    able = {
        "simple": tables.PICKUPABLE,
        "two": tables.PICKUPABLE,
        "clean": tables.CLEANABLE if "sinkbasin" in present else frozenset(),
        "heat": tables.HEATABLE if "microwave" in present else frozenset(),
        "cool": tables.COOLABLE if "fridge" in present else frozenset(),
    }
    stations = {"clean": "sinkbasin", "heat": "microwave", "cool": "fridge"}
    found: dict[str, list[Goal]] = {kind: [] for kind in TASK_TYPES}
    for kind, members in able.items():
        for thing in (name for name in room.kinds if name in members):
            homes = [place for place in present if thing in tables.CAN_CONTAIN[place]]
            targets = [place for place in homes if place != stations.get(kind)]
            # With a single possible kind of place a simple task could never start unsolved.
            if len(homes) > 1 or kind in stations:
                found[kind] += [Goal(kind, thing, place) for place in targets]
    if lamps:
        reachable = [t for t in room.kinds if any(t in tables.CAN_CONTAIN[place] for place in present)]
        found["look"] = [Goal("look", thing, "desklamp") for thing in reachable]
    return {kind: goals for kind, goals in found.items() if goals}


def _draw_goal(part: str, knobs: Knobs, draw: Draw) -> tuple[Room, Goal]:
    kind = KIND_OF_TYPE[knobs.task_type] if knobs.task_type else draw.choice(list(TASK_TYPES))
    scenes = scenes_of(part)
    if knobs.scene:
        if knobs.scene not in scenes:
            raise NoTaskMatches(f"room {knobs.scene} does not belong to {part!r}; its rooms are {list(scenes)}")
        scenes = (knobs.scene,)
    fitting = [scene for scene in scenes if kind in _possible_goals(scene)]
    if not fitting and not knobs.task_type:
        kind = draw.choice(sorted(_possible_goals(knobs.scene)))
        fitting = list(scenes)
    if not fitting:
        raise NoTaskMatches(f"room {knobs.scene} allows no task of type {TASK_TYPES[kind]!r}")
    room = rooms()[draw.choice(fitting)]
    goals = _possible_goals(room.scene)[kind]
    thing = draw.choice(sorted({goal.object_type for goal in goals}))
    return room, draw.choice([goal for goal in goals if goal.object_type == thing])


def _keep(room: Room, goal: Goal, knobs: Knobs, draw: Draw) -> list[int]:
    """Indices of the receptacles that stay in the room, rising."""
    everything = list(range(len(room.receptacles)))
    if not knobs.receptacles or knobs.receptacles >= len(everything):
        return everything
    station = {"clean": "sinkbasin", "heat": "microwave", "cool": "fridge"}.get(goal.kind)
    lamps = {r for thing in room.fixed if thing.kind == goal.target_type for r in thing.receptacles}
    order = draw.shuffled(everything)
    kinds = [room.receptacles[r].kind for r in order]
    needed = [order[kinds.index(kind)] for kind in (station, goal.target_type) if kind in kinds]
    needed += [r for r in order if r in lamps][:1]
    homes = [r for r in order if goal.object_type in tables.CAN_CONTAIN[room.receptacles[r].kind] and r not in needed]
    needed += [r for r in homes if room.receptacles[r].kind != goal.target_type][:1]
    rest = [r for r in order if r not in needed]
    return sorted([*needed, *rest][: max(knobs.receptacles, len(needed))])


def _draw_things(room: Room, receptacles: Sequence[int], goal: Goal, knobs: Knobs, draw: Draw) -> list[Thing] | None:
    """All objects with their positions, sorted by kind; None when something needed finds no place."""
    position = {old: new for new, old in enumerate(receptacles)}
    kinds = [room.receptacles[r].kind for r in receptacles]
    things = [Thing(t.kind, tuple(position[r] for r in t.receptacles if r in position)) for t in room.fixed]
    others = [kind for kind in room.kinds if kind != goal.object_type]
    if knobs.kinds >= 0:
        others = draw.shuffled(others)[: knobs.kinds]
    weights = COPY_WEIGHTS[: knobs.copies]
    for kind in [goal.object_type, *sorted(others)]:
        wanted = kind == goal.object_type
        count = 1 + draw.weighted(range(len(weights)), weights)
        if wanted and goal.kind == "two":
            count = max(count, 2)
        homes = _homes(kind, kinds, goal, wanted)
        if not homes:
            if wanted:
                return None
            continue
        weights_here = _home_weights(kind, kinds, homes)
        things += [Thing(kind, (draw.weighted(homes, weights_here),)) for _ in range(count)]
    return _fill_vessels(sorted(things, key=lambda thing: thing.kind), draw)


def _homes(kind: str, kinds: Sequence[str], goal: Goal, wanted: bool) -> list[int]:
    """Receptacles where a thing may lie at the start."""
    homes = [r for r, place in enumerate(kinds) if kind in tables.CAN_CONTAIN[place]]
    if not homes and kind in tables.NEVER_PLACEABLE:
        homes = [r for r, place in enumerate(kinds) if typical_places().get(kind, {}).get(place)]
    if wanted and goal.kind in ("simple", "two"):
        homes = [r for r in homes if kinds[r] != goal.target_type]
    return homes


def _home_weights(kind: str, kinds: Sequence[str], homes: Sequence[int]) -> list[float]:
    """How likely each home is: the official frequency of its kind, shared among those of that kind."""
    typical = typical_places().get(kind, {})
    return [(typical.get(kinds[r], 0) + 1) / kinds.count(kinds[r]) for r in homes]


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
