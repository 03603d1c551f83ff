"""Named switches between the original game's odd behaviour and a repaired world.

The original ALFWorld text game has ten well-known oddities.  Results are only
comparable when they are present, so every switch defaults to the original's
behaviour.  This module holds the names and their meaning; it does not decide
anything itself: ``engine``, ``actions`` and ``texts`` read the switches.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Literal

from seed_envs.errors import UnknownOption, close_matches

QuirkSpec = Literal["faithful", "fixed"] | Mapping[str, bool]


@dataclasses.dataclass(frozen=True, slots=True)
class Quirks:
    """Ten switches; ``True`` keeps the original behaviour.

    Attributes:
        silent_middle: ``look`` in the middle of the room lists nothing (repaired: it lists the receptacles).
        no_goto_here: ``go to R`` fails when R stands where the agent already is (repaired: it describes R).
        examine_held_only: ``examine O`` works for the held object only (repaired: also for visible objects).
        use_only_on: ``use`` always turns on (repaired: it toggles, and the task needs the lamp on).
        frozen_vessels: objects that can hold objects never show hot, clean or cool, and their contents never
            change (repaired: state is told; taking either object ends the containment).
        closed_stations: heating and cooling work with the door closed (repaired: the door must be open).
        floor_echo: "Next to it" names objects moved between receptacles of one place (repaired: nothing).
        slice_unseen: slicing needs the object's recorded place only (repaired: the object must be visible).
        ghosts: an object recorded in two receptacles stays listed in the other one after it was taken, and counts
            for the goal while held (repaired: taking removes it everywhere).
        dead_ends: an object that fits nowhere can be taken, and then the hands are full for ever (repaired: it
            cannot be taken).
    """

    silent_middle: bool = True
    no_goto_here: bool = True
    examine_held_only: bool = True
    use_only_on: bool = True
    frozen_vessels: bool = True
    closed_stations: bool = True
    floor_echo: bool = True
    slice_unseen: bool = True
    ghosts: bool = True
    dead_ends: bool = True

    @classmethod
    def resolve(cls, spec: QuirkSpec | Quirks) -> Quirks:
        """Turn an argument into switches.

        Args:
            spec: ``"faithful"``, ``"fixed"``, or a mapping from switch name to ``True`` (as in the original) or
                ``False`` (repaired); switches not named stay as in the original.

        Returns:
            The resolved switches.

        Raises:
            UnknownOption: for any other text or an unknown switch name.
        """
        if isinstance(spec, Quirks):
            return spec
        names = [field.name for field in dataclasses.fields(cls)]
        if isinstance(spec, str):
            if spec == "faithful":
                return cls()
            if spec == "fixed":
                return cls(**dict.fromkeys(names, False))
        if not isinstance(spec, Mapping):
            raise UnknownOption(f"quirks={spec!r}: expected 'faithful', 'fixed' or a mapping of switches {names}")
        for name, value in spec.items():
            if name not in names:
                raise UnknownOption(f"unknown quirk {name!r}; known: {names}.{close_matches(name, names)}")
            if not isinstance(value, bool):
                raise UnknownOption(f"quirk {name!r} must be True (as the original) or False (repaired), got {value!r}")
        return cls(**dict(spec))
