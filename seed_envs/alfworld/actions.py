"""The list of commands that a state admits, in the original's order.

A pure function of game, state and rules, so that the list can be built on
first read from a snapshot.  ``engine`` decides single commands directly,
without this list; a property test holds the two together.
"""

from __future__ import annotations

import dataclasses
from typing import Literal

from seed_envs.alfworld.game import Game, State
from seed_envs.alfworld.quirks import Quirks

Wording = Literal["move", "put"]


@dataclasses.dataclass(frozen=True, slots=True)
class Rules:
    """What may vary between two plays of one game.

    Attributes:
        quirks: switches for the original's oddities.
        wording: ``move`` (game data 2.1.2, alfworld 0.4) or ``put`` (data 2.1.1, alfworld up to 0.3.5).
    """

    quirks: Quirks = dataclasses.field(default_factory=Quirks)
    wording: Wording = "move"


def bits(mask: int) -> list[int]:
    """Positions of the set bits, rising.

    Args:
        mask: a non-negative integer.

    Returns:
        The positions.
    """
    found = []
    while mask:
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return found


def takeable(game: Game, quirks: Quirks) -> int:
    """Mask of the objects that can be taken at all.

    Args:
        game: the game.
        quirks: the switches.

    Returns:
        The mask.
    """
    return game.pickupable if quirks.dead_ends else game.pickupable & game.placeable


def station_commands(game: Game, state: State, receptacle: int, quirks: Quirks) -> list[str]:
    """The ``clean``, ``heat`` or ``cool`` command that a receptacle offers for the held object.

    Args:
        game: the game.
        state: the current state; an object must be held.
        receptacle: index of a receptacle at the agent's location.
        quirks: the switches.

    Returns:
        None, one or (for exotic games) several commands.
    """
    held = state.held
    name, target = game.objects[held], game.receptacles[receptacle]
    usable = quirks.closed_stations or not game.openable >> receptacle & 1 or state.opened >> receptacle & 1
    found = []
    if game.washers >> receptacle & 1 and game.cleanable >> held & 1:
        found.append(f"clean {name} with {target}")
    if usable and game.microwaves >> receptacle & 1 and game.heatable >> held & 1:
        found.append(f"heat {name} with {target}")
    if usable and game.fridges >> receptacle & 1 and game.coolable >> held & 1:
        found.append(f"cool {name} with {target}")
    return found


def sliceable_here(game: Game, state: State, quirks: Quirks) -> list[int]:
    """Objects that the held cutting tool can slice now.

    Args:
        game: the game.
        state: the current state.
        quirks: the switches.

    Returns:
        Indices of objects; empty when no cutting tool is held.
    """
    if state.held < 0 or not game.knives >> state.held & 1:
        return []
    if quirks.slice_unseen:
        pool: set[int] = set(state.nearby[state.place])
    else:
        pool = {item for r in game.at_place[state.place] if accessible(game, state, r) for item in state.contents[r]}
    return sorted(item for item in pool if game.sliceable >> item & 1)


def accessible(game: Game, state: State, receptacle: int) -> bool:
    """Whether things can be taken from and put into a receptacle: it has no door, or the door is open.

    Args:
        game: the game.
        state: the current state.
        receptacle: its index.

    Returns:
        True when accessible.
    """
    return not game.openable >> receptacle & 1 or bool(state.opened >> receptacle & 1)


def admissible(game: Game, state: State, rules: Rules) -> list[str]:
    """All commands that change or tell something, sorted by code point.

    Verbs sort into groups (``clean`` … ``examine``, then ``go to``, then ``heat``, then the bare commands, then the
    rest), so that only small groups are sorted; the long ``go to`` group is sorted once per location.

    Args:
        game: the game.
        state: the current state.
        rules: quirks and wording.

    Returns:
        The list; building it costs a few microseconds.
    """
    quirks = rules.quirks
    names, objects, openable, opened = game.receptacles, game.objects, game.openable, state.opened
    held, place, stations, toggleable = state.held, state.place, game.stations, game.toggleable
    put = rules.wording == "put"
    able = game.pickupable if quirks.dead_ends else takeable(game, quirks)
    front: list[str] = []
    heats: list[str] = []
    back: list[str] = []
    for receptacle in game.at_place[place]:
        name = names[receptacle]
        front.append("examine " + name)
        inside = state.contents[receptacle]
        if not openable >> receptacle & 1:
            reach = True
        elif opened >> receptacle & 1:
            front.append("close " + name)
            reach = True
        else:
            back.append("open " + name)
            reach = False
        if reach:
            if held < 0:
                suffix = " from " + name
                back += ["take " + objects[item] + suffix for item in inside if able >> item & 1]
            elif game.fits[receptacle] >> held & 1:
                back.append(f"put {objects[held]} in/on {name}" if put else f"move {objects[held]} to {name}")
            if not quirks.examine_held_only:
                front += ["examine " + objects[item] for item in inside]
        if toggleable:
            back += ["use " + objects[item] for item in inside if toggleable >> item & 1]
        if held >= 0 and stations >> receptacle & 1:
            for command in station_commands(game, state, receptacle, quirks):
                (heats if command[0] == "h" else front).append(command)
    if held >= 0:
        front.append("examine " + objects[held])
        if game.knives >> held & 1:
            knife = objects[held]
            back += [f"slice {objects[item]} with {knife}" for item in sliceable_here(game, state, quirks)]
    goto = game.goto_from(place) if quirks.no_goto_here else game.goto_from(-1)
    bare = _BARE_OLDER if put else _BARE
    return [*_ordered(front), *goto, *_ordered(heats), *bare, *_ordered(back)]


_BARE = ("help", "inventory", "look")
_BARE_OLDER = _BARE[1:]


def _ordered(commands: list[str]) -> list[str]:
    """Sorted without repeats; most groups are too small to need it."""
    if len(commands) < 2:
        return commands
    return sorted(set(commands))
