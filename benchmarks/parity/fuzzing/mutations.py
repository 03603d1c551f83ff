"""Changes to the facts of a game that its rules must still follow: states, abilities, places, types, ghosts.

Every mutation changes a :class:`~seed_envs.alfworld.pddl.Problem` in place. Together they reach what official games
hold nowhere: hot things, open doors, a thing in the hand at the start, facts about things that are not there.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import numpy as np

from seed_envs.alfworld.game import CUTTERS, SINKS
from seed_envs.alfworld.goals import TASK_TYPES, Goal
from seed_envs.alfworld.pddl import OBJECT_FLAGS, Problem

CONDITIONS = ("isclean", "ishot", "iscool", "istoggled", "issliced")
_ABILITIES = tuple(flag for flag in OBJECT_FLAGS if flag not in CONDITIONS)
_Thing = TypeVar("_Thing")


def mutate(problem: Problem, rng: np.random.Generator, count: int) -> Problem:
    """A changed copy.

    Args:
        problem: The facts to start from.
        rng: Draws everything.
        count: Number of mutations.
    """
    changed = copy.deepcopy(problem)
    for _ in range(count):
        _pick(rng, MUTATIONS)(changed, rng)
    return changed


def part(problem: Problem, rng: np.random.Generator, receptacles: int = 9, things: int = 14) -> Problem:
    """A random part of a room that keeps what the goal names and the stations; the original loads it much faster.

    Args:
        problem: The whole room.
        rng: Draws what stays.
        receptacles: How many stay, beside the needed ones.
        things: How many stay, beside the needed ones.
    """
    smaller, goal = copy.deepcopy(problem), problem.goal
    needed = SINKS | {"microwave", "fridge", goal.target_type}
    wanted = {goal.object_type, goal.target_type}
    for name in rng.permutation(_receptacles(problem)).tolist()[receptacles:]:
        if problem.receptacle_types[name] not in needed:
            _remove(smaller, name)
    for name in rng.permutation(problem.objects()).tolist()[things:]:
        if problem.object_types.get(name) not in wanted:
            _remove(smaller, name)
    places = set(_places(smaller))
    smaller.object_locations = {pair for pair in smaller.object_locations if pair[1] in places}
    kinds = set(smaller.receptacle_types.values())
    smaller.can_contain = {pair for pair in smaller.can_contain if pair[0] in kinds}
    return smaller


def _pick(rng: np.random.Generator, things: Iterable[_Thing]) -> _Thing:
    found = list(things)
    return found[int(rng.integers(len(found)))]


def _objects(problem: Problem) -> list[str]:
    return sorted(problem.object_types)


def _receptacles(problem: Problem) -> list[str]:
    return sorted(problem.receptacle_types)


def _places(problem: Problem) -> list[str]:
    return sorted({problem.start, *problem.receptacle_locations.values()})


def _condition(problem: Problem, rng: np.random.Generator) -> None:
    """Some things are hot, clean, sliced ... from the start, also several at once."""
    for _ in range(int(rng.integers(1, 6))):
        problem.flags[_pick(rng, CONDITIONS)].add(_pick(rng, _objects(problem)))


def _ability(problem: Problem, rng: np.random.Generator) -> None:
    """An ability more or less for a thing or a whole kind of things."""
    name, flag = _pick(rng, _objects(problem)), problem.flags[_pick(rng, _ABILITIES)]
    kind = problem.object_types[name]
    whole = {other for other, of in problem.object_types.items() if of == kind} if rng.random() < 0.5 else {name}
    flag.symmetric_difference_update(whole)


def _door(problem: Problem, rng: np.random.Generator) -> None:
    """Doors opened at the start, taken off, or put where there are none; an open one may be no door."""
    for name in _receptacles(problem):
        if rng.random() < 0.4:
            problem.flags[_pick(rng, ("openable", "opened"))].symmetric_difference_update({name})


def _moved(problem: Problem, rng: np.random.Generator) -> None:
    """Things in other receptacles, in several, or in none; the recorded place follows or not."""
    for _ in range(int(rng.integers(1, 5))):
        name, target = _pick(rng, _objects(problem)), _pick(rng, _receptacles(problem))
        if rng.random() < 0.6:
            problem.inside -= {pair for pair in problem.inside if pair[0] == name}
        if rng.random() < 0.85:
            problem.inside.add((name, target))
        if rng.random() < 0.5:
            problem.object_locations.add((name, problem.receptacle_locations[target]))


def _recorded(problem: Problem, rng: np.random.Generator) -> None:
    """Recorded places of things, wrong, missing or doubled; also of things that are nowhere else."""
    for _ in range(int(rng.integers(1, 5))):
        pair = (_pick(rng, _objects(problem)), _pick(rng, _places(problem)))
        problem.object_locations.symmetric_difference_update({pair})


def _filled(problem: Problem, rng: np.random.Generator) -> None:
    """Things in vessels, also where the outer one is none."""
    for _ in range(int(rng.integers(1, 4))):
        problem.inner.add((_pick(rng, _objects(problem)), _pick(rng, _objects(problem))))


def _together(problem: Problem, rng: np.random.Generator) -> None:
    """A receptacle at the place of another one, or at the start."""
    problem.receptacle_locations[_pick(rng, _receptacles(problem))] = _pick(rng, _places(problem))


def _start(problem: Problem, rng: np.random.Generator) -> None:
    """The agent starts somewhere else, usually before a receptacle."""
    problem.start = _pick(rng, _places(problem))


def _kind(problem: Problem, rng: np.random.Generator) -> None:
    """Another type for a thing or a receptacle; a cutting tool now and then; sometimes no type at all."""
    draw, name = rng.random(), _pick(rng, _objects(problem))
    if draw < 0.5:
        kinds = sorted({*problem.object_types.values(), *CUTTERS})
        problem.object_types[name] = _pick(rng, kinds)
    elif draw < 0.7 and len(problem.object_types) > 2:
        del problem.object_types[name]
    else:
        places = {*problem.receptacle_types.values(), "fridge", "microwave", "sinkbasin", "sink"}
        # One name cannot be both kinds of type in PDDL.
        free = sorted(places - set(problem.object_types.values()))
        problem.receptacle_types[_pick(rng, _receptacles(problem))] = _pick(rng, free)


def _accepting(problem: Problem, rng: np.random.Generator) -> None:
    """What kinds of receptacles take."""
    for _ in range(int(rng.integers(1, 12))):
        pair = (_pick(rng, problem.receptacle_types.values()), _pick(rng, problem.object_types.values()))
        problem.can_contain.symmetric_difference_update({pair})


def _cutting(problem: Problem, rng: np.random.Generator) -> None:
    """A knife that can be taken and things to slice, so that slicing happens."""
    knife = _pick(rng, _objects(problem))
    problem.object_types[knife] = _pick(rng, sorted(CUTTERS))
    problem.flags["pickupable"].add(knife)
    problem.flags["sliceable"].update({_pick(rng, _objects(problem)) for _ in range(4)})


def _held(problem: Problem, rng: np.random.Generator) -> None:
    """A thing is in the hand at the start, still recorded in its receptacle or not."""
    name = _pick(rng, _objects(problem))
    problem.held = name
    if rng.random() < 0.6:
        problem.inside -= {pair for pair in problem.inside if pair[0] == name}


def _ghost(problem: Problem, rng: np.random.Generator) -> None:
    """Facts about a thing without type or receptacle: it counts for numbers, and for slicing where it is recorded."""
    name = f"{problem.object_types[_pick(rng, _objects(problem))]}_bar_{_pick(rng, ('_00', 'ghost', 'zz'))}"
    for flag in sorted(OBJECT_FLAGS):
        if rng.random() < 0.4:
            problem.flags[flag].add(name)
    if rng.random() < 0.5:
        problem.object_locations.add((name, _pick(rng, _places(problem))))
    if rng.random() < 0.3:
        problem.inner.add((name, _pick(rng, _objects(problem))))
    if rng.random() < 0.2:
        problem.inside.add((name, _pick(rng, _receptacles(problem))))


def _fewer(problem: Problem, rng: np.random.Generator) -> None:
    """Part of the things are gone without a trace."""
    for name in _objects(problem)[3:]:
        if rng.random() < 0.3:
            _remove(problem, name)


def _goal(problem: Problem, rng: np.random.Generator) -> None:
    """Another goal among the kinds of the room."""
    kind = _pick(rng, sorted(TASK_TYPES))
    targets = problem.object_types if kind == "look" else problem.receptacle_types
    problem.goal = Goal(kind, _pick(rng, problem.object_types.values()), _pick(rng, targets.values()))
    able = {"clean": "cleanable", "heat": "heatable", "cool": "coolable"}.get(kind)
    if able:
        problem.flags[able].update(o for o, of in problem.object_types.items() if of == problem.goal.object_type)
    if kind == "look":
        problem.flags["toggleable"].update(
            o for o, of in problem.object_types.items() if of == problem.goal.target_type
        )


def _remove(problem: Problem, name: str) -> None:
    for facts in (problem.object_types, problem.receptacle_types, problem.receptacle_locations):
        facts.pop(name, None)
    for pairs in (problem.object_locations, problem.inside, problem.inner):
        pairs -= {pair for pair in pairs if name in pair}
    for members in problem.flags.values():
        members.discard(name)
    if problem.held == name:
        problem.held = ""


MUTATIONS: Sequence[Callable[[Problem, np.random.Generator], None]] = (
    _condition, _condition, _ability, _door, _moved, _moved, _recorded, _filled, _together, _start, _kind, _accepting,
    _cutting, _held, _ghost, _fewer, _goal,
)  # fmt: skip
"""States and moves twice: they are what play turns on."""
