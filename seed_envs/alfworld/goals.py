"""The six goals: what they mean, and how the game prints them.

A goal is three words (kind, object type, target type), and perhaps a second
goal that has to be met at the same time.  Reading a goal out of PDDL is done
in ``pddl``, out of a sentence in ``reading``; this module reads nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

TASK_TYPES: Final[dict[str, str]] = {
    "simple": "pick_and_place_simple",
    "look": "look_at_obj_in_light",
    "clean": "pick_clean_then_place_in_recep",
    "heat": "pick_heat_then_place_in_recep",
    "cool": "pick_cool_then_place_in_recep",
    "two": "pick_two_obj_and_place",
}
"""Short name of a task family -> the name used in the official game paths."""

KIND_OF_TYPE: Final[dict[str, str]] = {long: short for short, long in TASK_TYPES.items()}

SENTENCES: Final[dict[str, tuple[str, str]]] = {
    "simple": ("put a {o} in {t}", "put some {o} on {t}"),
    "look": ("look at {o} under the {t}", "examine the {o} with the {t}"),
    "clean": ("put a clean {o} in {t}", "clean some {o} and put it in {t}"),
    "heat": ("put a hot {o} in {t}", "heat some {o} and put it in {t}"),
    "cool": ("put a cool {o} in {t}", "cool some {o} and put it in {t}"),
    "two": ("put two {o} in {t}", "find two {o} and put them in {t}"),
}
"""The two official phrasings of every kind."""

SENTENCE_PREFIX: Final = "Your task is to: "
JOINT: Final = ", and "
"""What stands between the two halves of the sentence of two goals; no official phrase holds it."""


class Goal(NamedTuple):
    """What has to be achieved.

    Attributes:
        kind: ``simple``, ``look``, ``clean``, ``heat``, ``cool`` or ``two``.
        object_type: lower-case type of the object to bring.
        target_type: lower-case type of the receptacle, or of the lamp for ``look``.
        also: a second goal that must be met in the same state, or None.
    """

    kind: str
    object_type: str
    target_type: str
    also: Goal | None = None

    @classmethod
    def from_values(cls, values: Sequence[Any]) -> Goal:
        """Rebuild a goal from its values as JSON keeps them.

        Args:
            values: three words, and perhaps the values of a second goal or None.
        """
        also = values[3] if len(values) > 3 else None
        return cls(values[0], values[1], values[2], None if also is None else cls.from_values(also))

    @property
    def parts(self) -> tuple[Goal, ...]:
        """The goal itself, or the two goals it joins, each by itself."""
        return (self,) if self.also is None else (self._replace(also=None), *self.also.parts)

    @property
    def task_type(self) -> str:
        """The family's official name; of two goals the first one's."""
        return TASK_TYPES[self.kind]

    def sentence(self, variant: int = 0) -> str:
        """The goal line as the game prints it.

        Args:
            variant: 0 or 1, which of the two official phrasings.

        Returns:
            For example ``Your task is to: put a clean mug in shelf.``
        """
        phrases = [SENTENCES[goal.kind][variant].format(o=goal.object_type, t=goal.target_type) for goal in self.parts]
        return f"{SENTENCE_PREFIX}{JOINT.join(phrases)}."
