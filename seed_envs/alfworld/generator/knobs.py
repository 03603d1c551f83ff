"""The knobs of the room generator, and the task ids that name them.

An id holds every knob that differs from its default, so that one id is one
game everywhere.  What the knobs do is in ``rooms``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

from seed_envs.alfworld.goals import KIND_OF_TYPE
from seed_envs.errors import UnknownOption, UnknownTask, close_matches

PARTS: Final = ("train", "valid_seen", "valid_unseen")
_LIMITS: Final = {
    "scene": (0, 999),
    "kinds": (-1, 60),
    "copies": (1, 4),
    "receptacles": (0, 60),
    "rooms": (1, 4),
    "goals": (1, 2),
    "unlikely": (0, 1),
    "crowd": (0, 60),
    "words": (0, 1),
}


@dataclasses.dataclass(frozen=True, slots=True)
class Knobs:
    """What a draw may be limited to; part of the task id.

    Attributes:
        task_type: one official family name, or "" for any.
        scene: one room number, or 0 for any of the part's rooms.
        kinds: how many kinds of movable things besides the goal's (-1: all that belong to the room).
        copies: largest number of copies of a kind (1-4).
        receptacles: keep only this many receptacles, those that the goal needs first (0: all).
        rooms: how many rooms of the part are joined into one, each of another kind (1-4).
        goals: 1, or 2 that have to be met at the same time, of different objects.
        unlikely: 1 puts things where the official games have them most rarely.
        crowd: how many kinds that are foreign to the room lie about as well (0-60); what the task is about then has no
            more copies than needed.
        words: 1 states the task in other words than the official sentences.
    """

    task_type: str = ""
    scene: int = 0
    kinds: int = -1
    copies: int = 3
    receptacles: int = 0
    rooms: int = 1
    goals: int = 1
    unlikely: int = 0
    crowd: int = 0
    words: int = 0

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
        for name, (low, high) in _LIMITS.items():
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
