"""What a player can know from observations and its own commands.

Shared by the explorer (which acts on it) and the annotator (which explains a
finished episode with it).  It reads the printed texts only and holds nothing
that was not seen.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

_NAME: Final = r"[a-z]+ [0-9]+"
_NAMES: Final = re.compile(_NAME)
_ROOM: Final = re.compile(r"Looking quickly around you, you see ([^.]*)\.")
_LISTED: Final = re.compile(rf"(?:On the|The) ({_NAME})(?: is open\. In it)?, you see ([^.]*)\.")
_CLOSED: Final = re.compile(rf"The ({_NAME}) is closed\.")
_ARRIVED: Final = re.compile(rf"You arrive at {_NAME}\. (?:On the|The) ({_NAME})")
_SHUT: Final = re.compile(rf"You close the ({_NAME})\.")
_TAKEN: Final = re.compile(rf"You pick up the ({_NAME}) from the ({_NAME})\.")
_PLACED: Final = re.compile(rf"You (?:move|put) the ({_NAME}) (?:to|in/on) the ({_NAME})\.")
_TREATED: Final = re.compile(rf"You (clean|heat|cool) the ({_NAME}) using the ({_NAME})\.")
_LIT: Final = re.compile(rf"You turn on the ({_NAME})\.")


def kind_of(name: str) -> str:
    """The type of a named thing: ``cabinet 2`` is a ``cabinet``."""
    return name.partition(" ")[0]


@dataclass
class Memory:
    """A player's knowledge.

    Attributes:
        places: receptacles of the room, as named by the opening text or a list of commands.
        contents: receptacle -> objects last seen there.
        closed: receptacles known to be closed.
        visited: receptacles arrived at, in order of the first visit.
        first_seen: object -> receptacle in which it was first seen.
        here: receptacle last gone to, or "".
        held: object in hand, or "".
        treatments: (treatment, object, station) in order.
        placed: object -> receptacle it was put into last.
        lit: lamps switched on.
    """

    places: list[str] = field(default_factory=list)
    contents: dict[str, list[str]] = field(default_factory=dict)
    closed: set[str] = field(default_factory=set)
    visited: list[str] = field(default_factory=list)
    first_seen: dict[str, str] = field(default_factory=dict)
    here: str = ""
    held: str = ""
    treatments: list[tuple[str, str, str]] = field(default_factory=list)
    placed: dict[str, str] = field(default_factory=dict)
    lit: list[str] = field(default_factory=list)

    def update(self, observation: str) -> None:
        """Learn from one answer of the game, which says by itself what was done.

        Args:
            observation: what came back.
        """
        room = _ROOM.search(observation)
        if room is not None and not self.places:
            self.places = _NAMES.findall(room.group(1))
        if arrived := _ARRIVED.match(observation):
            self.here = arrived.group(1)
            if self.here not in self.visited:
                self.visited.append(self.here)
        closed = _CLOSED.search(observation)
        if closed is not None:
            self.closed.add(closed.group(1))
        if shut := _SHUT.match(observation):
            self.closed.add(shut.group(1))
        for name, listed in _LISTED.findall(observation):
            self.closed.discard(name)
            self.contents[name] = _NAMES.findall(listed)
            for item in self.contents[name]:
                self.first_seen.setdefault(item, name)
        self._handle(observation)

    def _handle(self, observation: str) -> None:
        """Learn from an answer to take, put, treat or switch."""
        if taken := _TAKEN.search(observation):
            item, source = taken.groups()
            self.held = item
            self.placed.pop(item, None)
            self.contents[source] = [name for name in self.contents.get(source, []) if name != item]
        elif placed := _PLACED.search(observation):
            item, target = placed.groups()
            self.held = ""
            self.placed[item] = target
            if item not in self.contents.setdefault(target, []):
                self.contents[target].append(item)
        elif treated := _TREATED.search(observation):
            self.treatments.append((treated.group(1), treated.group(2), treated.group(3)))
        elif lit := _LIT.search(observation):
            self.lit.append(lit.group(1))

    def done(self, treatment: str, item: str) -> bool:
        """Whether an object's last relevant treatment is the given one.

        Args:
            treatment: ``clean``, ``heat`` or ``cool``.
            item: the object.
        """
        relevant = ("clean",) if treatment == "clean" else ("heat", "cool")
        kinds = [kind for kind, name, _ in self.treatments if name == item and kind in relevant]
        return bool(kinds) and kinds[-1] == treatment
