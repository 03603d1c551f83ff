"""A player without privileges: it sees what an agent sees, and looks where things usually lie.

The counterpart of the original's hand-coded expert (without its faults).
Deterministic by default; ``Habits`` make worse players of it, for
demonstrations of different quality.  It reads texts and the admissible list
only, never the state of the game.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from seed_envs.alfworld.generator import compact
from seed_envs.alfworld.generator.draw import Draw
from seed_envs.alfworld.generator.rooms import typical_places
from seed_envs.alfworld.goals import Goal
from seed_envs.alfworld.memory import Memory, kind_of
from seed_envs.alfworld.reading import guess_goal

STATIONS: Final[dict[str, str]] = {"clean": "sinkbasin", "heat": "microwave", "cool": "fridge"}
LAMP_STANDS: Final = ("desk", "sidetable", "dresser", "shelf", "diningtable", "coffeetable")


@dataclass(frozen=True)
class Habits:
    """How well the explorer plays; the defaults play as well as it can.

    Attributes:
        prior: what it believes about where things lie: ``official`` (frequencies of the official games), ``compact``
            (the usual places of the compact preset) or ``none`` (order of the room's list).
        noise: probability that a step is a random admissible command.
        skip_station: probability, per episode, that it forgets to clean, heat or cool.
        confuse_station: probability, per episode, that it uses the wrong station.
        overlook: probability, per sight, that it does not notice the wanted object.
        wander: probability, per search step, that it goes to a random place, searched or not.
    """

    prior: str = "official"
    noise: float = 0.0
    skip_station: float = 0.0
    confuse_station: float = 0.0
    overlook: float = 0.0
    wander: float = 0.0


@dataclass(frozen=True)
class Hint:
    """Advice that the explorer follows first (for example read from a skill).

    Attributes:
        sources: receptacles to look into first, in this order.
        avoid: receptacles to look into last.
    """

    sources: tuple[str, ...] = ()
    avoid: tuple[str, ...] = ()


@dataclass
class Explorer:
    """One player for one episode.

    Args:
        goal_line: text that ends with the goal sentence.
        habits: how well it plays.
        hint: advice to follow.
        name: names the private random stream (only habits with probabilities draw from it).

    A sentence in other than the official words is read by keywords; what was not understood is never found.
    """

    goal_line: str
    habits: Habits = field(default_factory=Habits)
    hint: Hint = field(default_factory=Hint)
    name: str = "explorer"

    def __post_init__(self) -> None:
        self.goal: Goal = guess_goal(self.goal_line)
        self.memory = Memory()
        self._draw = Draw(self.name)
        self._destination = ""
        self._treatment = self._choose_treatment()
        parts = self.goal.parts if self.goal.also else ()
        # Whoever holds the object under the lamp can do nothing else: that goal comes last.
        parts = tuple(sorted(parts, key=lambda goal: goal.kind == "look"))
        self._parts = [Explorer(goal.sentence(), self.habits, self.hint, f"{self.name}/{goal}") for goal in parts]
        for part in self._parts:
            part.memory = self.memory

    def act(self, observation: str, admissible: Sequence[str]) -> str:
        """Choose the next command.

        Args:
            observation: what the game answered last (the opening text at first).
            admissible: the admissible commands.

        Returns:
            An admissible command.
        """
        self.observe(observation)
        return self.choose(admissible)

    def observe(self, observation: str) -> None:
        """Learn from one answer, whoever chose the command.

        Args:
            observation: what the game answered.
        """
        self.memory.update(observation)

    def choose(self, admissible: Sequence[str]) -> str:
        """Choose a command on the grounds of what was observed so far.

        Args:
            admissible: the admissible commands.

        Returns:
            One of them.
        """
        if not self.memory.places:
            self.memory.places = [name.removeprefix("go to ") for name in admissible if name.startswith("go to ")]
        if self.habits.noise and self._draw.unit() < self.habits.noise:
            return self._draw.choice(admissible)
        if self._parts:
            return self._current().choose(admissible)
        wanted = self._decide(admissible)
        return wanted if wanted in admissible else self._search(admissible)

    def _current(self) -> Explorer:
        """Of two goals the one to pursue now: that of the held object, else one whose object was seen."""
        left = [part for part in self._parts if not part.met()] or self._parts
        if left[0].goal.kind == "look":
            return left[0]
        held = kind_of(self.memory.held)
        seen = {kind_of(item) for items in self.memory.contents.values() for item in items}
        left = [part for part in left if part.goal.kind != "look"]
        return max(left, key=lambda part: 2 * (part.goal.object_type == held) + (part.goal.object_type in seen))

    def met(self) -> bool:
        """Whether, as far as it was seen, a goal of placing is met."""
        memory, goal = self.memory, self.goal
        inside = [
            [item for item in items if kind_of(item) == goal.object_type]
            for place, items in memory.contents.items()
            if kind_of(place) == goal.target_type
        ]
        if goal.kind == "two":
            return any(len(items) >= 2 for items in inside)
        treatment = goal.kind if goal.kind in STATIONS else ""
        return any(not treatment or memory.done(treatment, item) for items in inside for item in items)

    def _choose_treatment(self) -> str:
        """The treatment this episode applies: the right one, a wrong one, or none."""
        kind, habits = self.goal.kind, self.habits
        if kind not in STATIONS or (habits.skip_station and self._draw.unit() < habits.skip_station):
            return ""
        if habits.confuse_station and self._draw.unit() < habits.confuse_station:
            return self._draw.choice([other for other in STATIONS if other != kind])
        return kind

    def _decide(self, admissible: Sequence[str]) -> str:
        memory = self.memory
        if memory.held:
            return (
                self._deliver(admissible) if kind_of(memory.held) == self.goal.object_type else self._drop(admissible)
            )
        for place in sorted(memory.contents, key=lambda name: name != memory.here):
            for item in memory.contents[place]:
                if kind_of(item) == self.goal.object_type and self._still_wanted(item, place) and self._notice():
                    return self._at(place, f"take {item} from {place}")
        return self._search(admissible)

    def _still_wanted(self, item: str, place: str) -> bool:
        if self.goal.kind == "look" or kind_of(place) != self.goal.target_type:
            return True
        if self.goal.kind == "two":
            return bool(self._destination) and place != self._destination
        # An object that already lies at the goal still has to be treated.
        return bool(self._treatment) and not self.memory.done(self._treatment, item)

    def _notice(self) -> bool:
        return not self.habits.overlook or self._draw.unit() >= self.habits.overlook

    def _deliver(self, admissible: Sequence[str]) -> str:
        memory, held = self.memory, self.memory.held
        if self.goal.kind == "look":
            return self._light(admissible)
        if self._treatment and not memory.done(self._treatment, held):
            station = self._nearest(STATIONS[self._treatment])
            command = f"{self._treatment} {held} with {station}"
            if command in admissible:
                return command
            if station and memory.here != station:
                return f"go to {station}"
            if station in memory.closed:
                return f"open {station}"
            self._treatment = ""  # Nothing came of it: go on without.
        target = self._choose_destination()
        if not target:
            return self._search(admissible)
        return self._at(target, _placing(held, target, admissible))

    def _light(self, admissible: Sequence[str]) -> str:
        memory, lamp_kind = self.memory, self.goal.target_type
        for command in admissible:
            if command.startswith(f"use {lamp_kind} "):
                return command
        for place, items in memory.contents.items():
            if any(kind_of(item) == lamp_kind for item in items) and place != memory.here:
                return f"go to {place}"
        return self._search(admissible)

    def _choose_destination(self) -> str:
        """The receptacle of the goal's type to use; kept, so that two objects meet."""
        memory, kind = self.memory, self.goal.target_type
        if not self._destination:
            here = memory.here if kind_of(memory.here) == kind else ""
            known = [place for place in memory.visited if kind_of(place) == kind]
            self._destination = here or (known[0] if known else self._nearest(kind))
        return self._destination

    def _nearest(self, kind: str) -> str:
        """A receptacle of a kind, the current one first, then in numerical order."""
        memory = self.memory
        if kind_of(memory.here) == kind:
            return memory.here
        return min((p for p in memory.places if kind_of(p) == kind), key=_number, default="")

    def _drop(self, admissible: Sequence[str]) -> str:
        """Get rid of an object that is not wanted."""
        memory, held = self.memory, self.memory.held
        placing = [command for command in admissible if command.startswith((f"move {held} to ", f"put {held} in/on "))]
        if placing:
            return placing[0]
        if memory.here in memory.closed:
            return f"open {memory.here}"
        tables = ("countertop", "diningtable", "sidetable", "coffeetable", "desk", "dresser", "shelf", "cabinet")
        for kind in (*tables, "drawer", "bed", "sofa", "armchair"):
            place = self._nearest(kind)
            if place and place != memory.here:
                return f"go to {place}"
        return self._search(admissible)

    def _at(self, place: str, command: str) -> str:
        """Go there, open the door if it is closed, then do it."""
        memory = self.memory
        if memory.here != place:
            return f"go to {place}"
        return f"open {place}" if place in memory.closed else command

    def _search(self, admissible: Sequence[str]) -> str:
        """Open what is closed here, else go on to the most likely place not yet seen."""
        memory = self.memory
        if memory.here in memory.closed and f"open {memory.here}" in admissible:
            return f"open {memory.here}"
        reachable = [place for place in memory.places if f"go to {place}" in admissible]
        if not reachable:
            return "look"
        if self.habits.wander and self._draw.unit() < self.habits.wander:
            return f"go to {self._draw.choice(reachable)}"
        unseen = [place for place in reachable if place not in memory.contents]
        if not unseen:
            # Everything was looked at: forget what is not remembered to hold the object, and look again.
            memory.contents.clear()
            unseen = reachable
        return f"go to {min(unseen, key=self._rank)}"

    def _rank(self, place: str) -> tuple[float, ...]:
        """Search order: hinted places, then likely ones; never promising ones last."""
        hint, kind = self.hint, kind_of(place)
        first = hint.sources.index(place) if place in hint.sources else len(hint.sources)
        wanted = self.goal.object_type
        if self.memory.held and self.goal.kind == "look":
            likely = -float(LAMP_STANDS.index(kind)) if kind in LAMP_STANDS else -100.0
        else:
            likely = _likelihood(self.habits.prior, wanted, kind, self.memory.places)
        order = float(self.memory.places.index(place))
        return (float(place in hint.avoid), float(first), -likely, -order)


def _likelihood(prior: str, wanted: str, kind: str, places: Sequence[str]) -> float:
    """How likely a thing lies on one receptacle of a kind."""
    if prior == "none":
        return 0.0
    if prior == "compact":
        usual = compact.USUAL.get(wanted, ())
        return (2.0 - usual.index(kind)) if kind in usual else 0.0
    table: Mapping[str, int] = typical_places().get(wanted, {})
    number = sum(kind_of(place) == kind for place in places)
    return table.get(kind, 0) / max(number, 1)


def _number(name: str) -> int:
    return int(name.rpartition(" ")[2])


def _placing(held: str, target: str, admissible: Sequence[str]) -> str:
    older = f"put {held} in/on {target}"
    return older if older in admissible else f"move {held} to {target}"
