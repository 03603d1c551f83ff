"""Builds the facts of a generated game from a room and a list of things in it.

Shared by the whole-room and the compact generator.  Decides nothing: what is
where is the caller's business.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from seed_envs.alfworld.generator import tables
from seed_envs.alfworld.goals import Goal
from seed_envs.alfworld.pddl import OBJECT_FLAGS, RECEPTACLE_FLAGS, Problem

START_PLACE = 99


class Receptacle(NamedTuple):
    """One receptacle of a room: its kind, the number of its place, whether it has a door."""

    kind: str
    place: int
    door: bool


class Thing(NamedTuple):
    """One object: its kind, the receptacles (by index) it stands in, and the vessel (by thing index) or -1."""

    kind: str
    receptacles: tuple[int, ...]
    vessel: int = -1


def receptacle_ids(receptacles: Sequence[Receptacle]) -> list[str]:
    """Ids for receptacles whose sorted order is the given order within each kind.

    Args:
        receptacles: the room.

    Returns:
        One id each.
    """
    ids = []
    for number, receptacle in enumerate(receptacles):
        base, _, basin = receptacle.kind.partition("basin")
        ids.append(f"{base}_bar_{number:03d}" + (f"_bar_{receptacle.kind}" if basin or base != receptacle.kind else ""))
    return ids


def build_problem(receptacles: Sequence[Receptacle], things: Sequence[Thing], goal: Goal) -> Problem:
    """Write a room and its things down as facts.

    Args:
        receptacles: the room.
        things: all objects, fixed ones included.
        goal: what has to be achieved.

    Returns:
        The facts, ready for compiling or for writing a game file.
    """
    r_ids = receptacle_ids(receptacles)
    o_ids = [f"{thing.kind}_bar_{number:03d}" for number, thing in enumerate(things)]
    kinds = {thing.kind for thing in things}
    flags: dict[str, set[str]] = {name: set() for name in (*OBJECT_FLAGS, *RECEPTACLE_FLAGS)}
    abilities = {
        "pickupable": tables.PICKUPABLE,
        "cleanable": tables.CLEANABLE,
        "heatable": tables.HEATABLE,
        "coolable": tables.COOLABLE,
        "toggleable": tables.TOGGLEABLE,
        "sliceable": tables.SLICEABLE,
        "isreceptacleobject": tables.VESSELS,
    }
    for flag, members in abilities.items():
        flags[flag] = {name for name, thing in zip(o_ids, things, strict=True) if thing.kind in members}
    flags["openable"] = {name for name, receptacle in zip(r_ids, receptacles, strict=True) if receptacle.door}
    places = [f"loc_bar_{receptacle.place:02d}" for receptacle in receptacles]
    return Problem(
        start=f"loc_bar_{max(START_PLACE, 1 + max(receptacle.place for receptacle in receptacles))}",
        receptacle_types={name: receptacle.kind for name, receptacle in zip(r_ids, receptacles, strict=True)},
        object_types={name: thing.kind for name, thing in zip(o_ids, things, strict=True)},
        can_contain={
            (kind, other)
            for kind in sorted({receptacle.kind for receptacle in receptacles})
            for other in tables.CAN_CONTAIN[kind] & kinds
        },
        receptacle_locations=dict(zip(r_ids, places, strict=True)),
        object_locations={
            (name, places[r]) for name, thing in zip(o_ids, things, strict=True) for r in thing.receptacles
        },
        inside={(name, r_ids[r]) for name, thing in zip(o_ids, things, strict=True) for r in thing.receptacles},
        inner={(name, o_ids[thing.vessel]) for name, thing in zip(o_ids, things, strict=True) if thing.vessel >= 0},
        flags=flags,
        goal=goal,
    )
