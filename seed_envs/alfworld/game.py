"""The compiled, read-only form of one game, and its initial state.

Ids become small integers in sorted order, so that every list of a text is a
walk over increasing numbers.  A ``Game`` is shared by all episodes that play
it; a ``State`` is an immutable tuple, so saving, restoring and branching are
a reference copy.  The rules that change a state live in ``engine``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from seed_envs.alfworld.goals import Goal
from seed_envs.alfworld.pddl import Problem
from seed_envs.errors import DataInvalid

MASK_FLAGS: Final = ("pickupable", "cleanable", "heatable", "coolable", "toggleable", "sliceable", "isreceptacleobject")
CUTTERS: Final = frozenset({"knife", "butterknife"})
SINKS: Final = frozenset({"sink", "sinkbasin"})


class State(NamedTuple):
    """Everything that can change, as one immutable value (integers are bit masks over indices).

    Attributes:
        place: index of the agent's location.
        held: index of the held object, or -1.
        opened: mask of open receptacles.
        contents: per receptacle, sorted indices of the objects recorded in it.
        nearby: per location, sorted indices of the objects recorded at it.
        removed: (object, receptacle) pairs undone by a take; needed for one line of text.
        clean: mask of clean objects.
        hot: mask of hot objects.
        cool: mask of cool objects.
        toggled: mask of switched-on objects.
        sliced: mask of sliced objects.
        inner: (inner object, outer object) pairs.
    """

    place: int
    held: int
    opened: int
    contents: tuple[tuple[int, ...], ...]
    nearby: tuple[tuple[int, ...], ...]
    removed: frozenset[tuple[int, int]]
    clean: int
    hot: int
    cool: int
    toggled: int
    sliced: int
    inner: tuple[tuple[int, int], ...]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Game:
    """One game, compiled.

    Attributes:
        game_id: stable id, ``split/task/trial`` for official games.
        goal: what has to be achieved.
        sentence: the goal line as printed.
        walkthrough: commands that win, as delivered with the game (may be empty).
        receptacles: names by index, such as ``drawer 2``.
        receptacle_types: types by index.
        places: per receptacle, the index of its location.
        openable: mask of receptacles with a door.
        objects: names by index.
        object_types: types by index ("" for an object without a type).
        fits: per receptacle, mask of the objects it accepts.
        pickupable: mask; likewise ``cleanable``, ``heatable``, ``coolable``, ``toggleable``, ``sliceable``.
        vessels: mask of objects that hold objects.
        place_names: names of the locations ("loc 12"), used by the older wording.
        at_place: per location, indices of the receptacles there.
        start: the state at reset.
        receptacle_index: name -> index.
        object_index: name -> index.
        targets: mask of objects that count for the goal.
        destinations: indices of receptacles that count for the goal.
        lamps: mask of lamps that count for a ``look`` goal.
        washers: mask of sinks; likewise ``microwaves`` and ``fridges``.
        stations: mask of all three.
        phrases: object names with their article, by index.
        knives: mask of cutting tools.
        placeable: mask of objects that at least one receptacle of the room accepts.
        parts: of two goals, the same game with each of them alone; else empty.
        goal_place: whether a goal depends on where the agent stands.
    """

    game_id: str
    goal: Goal
    sentence: str
    walkthrough: tuple[str, ...]
    receptacles: tuple[str, ...]
    receptacle_types: tuple[str, ...]
    places: tuple[int, ...]
    openable: int
    objects: tuple[str, ...]
    object_types: tuple[str, ...]
    fits: tuple[int, ...]
    pickupable: int
    cleanable: int
    heatable: int
    coolable: int
    toggleable: int
    sliceable: int
    vessels: int
    place_names: tuple[str, ...]
    start: State
    at_place: tuple[tuple[int, ...], ...] = dataclasses.field(init=False)
    receptacle_index: dict[str, int] = dataclasses.field(init=False)
    object_index: dict[str, int] = dataclasses.field(init=False)
    _goto: list[tuple[str, ...] | None] = dataclasses.field(init=False, repr=False)
    targets: int = dataclasses.field(init=False)
    destinations: tuple[int, ...] = dataclasses.field(init=False)
    lamps: int = dataclasses.field(init=False)
    washers: int = dataclasses.field(init=False)
    microwaves: int = dataclasses.field(init=False)
    fridges: int = dataclasses.field(init=False)
    stations: int = dataclasses.field(init=False)
    phrases: tuple[str, ...] = dataclasses.field(init=False, repr=False)
    knives: int = dataclasses.field(init=False)
    placeable: int = dataclasses.field(init=False)
    parts: tuple[Game, ...] = dataclasses.field(init=False, repr=False)
    goal_place: bool = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        here: list[list[int]] = [[] for _ in self.place_names]
        for index, place in enumerate(self.places):
            here[place].append(index)
        able = {"clean": self.cleanable, "heat": self.heatable, "cool": self.coolable}.get(self.goal.kind, -1)
        wanted, target = self.goal.object_type, self.goal.target_type
        placeable = 0
        for mask in self.fits:
            placeable |= mask
        washers = _mask(self.receptacle_types, SINKS)
        microwaves = _mask(self.receptacle_types, ("microwave",))
        fridges = _mask(self.receptacle_types, ("fridge",))
        derived = {
            "at_place": tuple(map(tuple, here)),
            "receptacle_index": {name: index for index, name in enumerate(self.receptacles)},
            "object_index": {name: index for index, name in enumerate(self.objects)},
            "_goto": [None] * (len(here) + 1),
            "phrases": tuple("a " + name for name in self.objects),
            "targets": _mask(self.object_types, (wanted,)) & able,
            "destinations": tuple(r for r, kind in enumerate(self.receptacle_types) if kind == target),
            "lamps": _mask(self.object_types, (target,)) & self.toggleable,
            "washers": washers,
            "microwaves": microwaves,
            "fridges": fridges,
            "stations": washers | microwaves | fridges,
            "knives": _mask(self.object_types, CUTTERS),
            "placeable": placeable,
            "parts": tuple(dataclasses.replace(self, goal=goal) for goal in self.goal.parts) if self.goal.also else (),
            "goal_place": any(goal.kind == "look" for goal in self.goal.parts),
        }
        for name, value in derived.items():
            object.__setattr__(self, name, value)

    def goto_from(self, place: int) -> tuple[str, ...]:
        """The sorted ``go to`` commands that lead away from a location, built on first use.

        Args:
            place: index of the location; -1 for the commands to everywhere.

        Returns:
            The commands.
        """
        known = self._goto[place]
        if known is None:
            names = zip(self.receptacles, self.places, strict=True)
            known = self._goto[place] = tuple(sorted("go to " + name for name, at in names if at != place))
        return known

    def __deepcopy__(self, memo: dict[int, object]) -> Game:
        """A game never changes, so copies share it."""
        return self


def _mask(kinds: Sequence[str], wanted: Iterable[str]) -> int:
    mask = 0
    for index, kind in enumerate(kinds):
        if kind in wanted:
            mask |= 1 << index
    return mask


def entity_names(ids: Sequence[str]) -> dict[str, str]:
    """Give every id its printed name.

    Within one base name of n members the first id in code point order gets n and the last gets 1, as the original
    numbers them.

    Args:
        ids: all ids of the game, sorted by code point.

    Returns:
        id -> name, such as ``drawer 2``.
    """
    bases: dict[str, list[str]] = {}
    for name in ids:
        base = name.split("_bar_", 1)[0]
        if "basin" in name:
            base += "basin"
        bases.setdefault(base, []).append(name)
    return {
        name: f"{base} {len(members) - rank}" for base, members in bases.items() for rank, name in enumerate(members)
    }


def compile_game(
    problem: Problem, *, game_id: str, sentence: str | None = None, walkthrough: Sequence[str] = ()
) -> Game:
    """Compile facts into a game.

    Args:
        problem: the facts.
        game_id: stable id.
        sentence: the goal line to print; ``None`` takes the first official phrasing.
        walkthrough: commands that win, if known.

    Returns:
        The compiled game.

    Raises:
        DataInvalid: when the goal asks for an object, receptacle or lamp that the game does not hold.
    """
    names = entity_names(problem.entities())
    receptacles = sorted(problem.receptacle_types)
    objects = problem.objects()
    places = sorted({*problem.receptacle_locations.values(), problem.start})
    r_index = {name: index for index, name in enumerate(receptacles)}
    o_index = {name: index for index, name in enumerate(objects)}
    p_index = {name: index for index, name in enumerate(places)}
    otypes = tuple(problem.object_types.get(name, "") for name in objects)
    taken: dict[str, set[str]] = {rtype: set() for rtype in problem.receptacle_types.values()}
    for rtype, otype in problem.can_contain:
        if rtype in taken:
            taken[rtype].add(otype)
    accepted = {rtype: _mask(otypes, wanted) for rtype, wanted in taken.items()}
    masks = {flag: _flag_mask(problem.flags[flag], o_index) for flag in MASK_FLAGS}
    game = Game(
        game_id=game_id,
        goal=problem.goal,
        sentence=problem.goal.sentence() if sentence is None else sentence,
        walkthrough=tuple(walkthrough),
        receptacles=tuple(names.get(name, name) for name in receptacles),
        receptacle_types=tuple(problem.receptacle_types[name] for name in receptacles),
        places=tuple(p_index[problem.receptacle_locations[name]] for name in receptacles),
        openable=_flag_mask(problem.flags["openable"], r_index),
        objects=tuple(names.get(name, name) for name in objects),
        object_types=otypes,
        fits=tuple(accepted[problem.receptacle_types[name]] for name in receptacles),
        pickupable=masks["pickupable"],
        cleanable=masks["cleanable"],
        heatable=masks["heatable"],
        coolable=masks["coolable"],
        toggleable=masks["toggleable"],
        sliceable=masks["sliceable"],
        vessels=masks["isreceptacleobject"],
        place_names=tuple(names.get(name, name) for name in places),
        start=_initial_state(problem, r_index, o_index, p_index),
    )
    _check_goal(game)
    return game


def _flag_mask(members: Iterable[str], index: dict[str, int]) -> int:
    mask = 0
    for name in members:
        position = index.get(name)
        if position is not None:
            mask |= 1 << position
    return mask


def _initial_state(
    problem: Problem, r_index: dict[str, int], o_index: dict[str, int], p_index: dict[str, int]
) -> State:
    contents: list[list[int]] = [[] for _ in r_index]
    for name, receptacle in problem.inside:
        contents[r_index[receptacle]].append(o_index[name])
    nearby: list[list[int]] = [[] for _ in p_index]
    for name, place in problem.object_locations:
        if name in o_index and place in p_index:
            nearby[p_index[place]].append(o_index[name])
    inner = sorted((o_index[i], o_index[o]) for i, o in problem.inner if i in o_index and o in o_index)
    return State(
        place=p_index[problem.start],
        held=o_index.get(problem.held, -1),
        opened=_flag_mask(problem.flags["opened"], r_index),
        contents=tuple(tuple(sorted(row)) for row in contents),
        nearby=tuple(tuple(sorted(row)) for row in nearby),
        removed=frozenset(),
        clean=_flag_mask(problem.flags["isclean"], o_index),
        hot=_flag_mask(problem.flags["ishot"], o_index),
        cool=_flag_mask(problem.flags["iscool"], o_index),
        toggled=_flag_mask(problem.flags["istoggled"], o_index),
        sliced=_flag_mask(problem.flags["issliced"], o_index),
        inner=tuple(inner),
    )


def _check_goal(game: Game) -> None:
    for part in game.parts:
        _check_goal(part)
    goal = game.goal
    if not game.targets:
        raise DataInvalid(f"{game.game_id}: the goal wants a {goal.object_type!r} that can be used so; there is none")
    if goal.kind == "look" and not game.lamps:
        raise DataInvalid(f"{game.game_id}: the goal wants a {goal.target_type!r} that can be switched; there is none")
    if goal.kind != "look" and not game.destinations:
        raise DataInvalid(f"{game.game_id}: the goal wants a receptacle of type {goal.target_type!r}; there is none")
    if len(set(game.objects)) != len(game.objects) or len(set(game.receptacles)) != len(game.receptacles):
        raise DataInvalid(f"{game.game_id}: two things share one printed name; ids must contain '_bar_' parts")
