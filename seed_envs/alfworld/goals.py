"""The six goals: what they mean, when they are met, and how far they have got.

A goal is three words (kind, object type, target type).  Reading a goal out of
PDDL is done in ``pddl``; this module does not read any file.
"""

from __future__ import annotations

from typing import Final, NamedTuple

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


class Goal(NamedTuple):
    """What has to be achieved.

    Attributes:
        kind: ``simple``, ``look``, ``clean``, ``heat``, ``cool`` or ``two``.
        object_type: lower-case type of the object to bring.
        target_type: lower-case type of the receptacle, or of the lamp for ``look``.
    """

    kind: str
    object_type: str
    target_type: str

    @property
    def task_type(self) -> str:
        """The family's official name."""
        return TASK_TYPES[self.kind]

    def sentence(self, variant: int = 0) -> str:
        """The goal line as the game prints it.

        Args:
            variant: 0 or 1, which of the two official phrasings.

        Returns:
            For example ``Your task is to: put a clean mug in shelf.``
        """
        phrase = SENTENCES[self.kind][variant].format(o=self.object_type, t=self.target_type)
        return f"{SENTENCE_PREFIX}{phrase}."
