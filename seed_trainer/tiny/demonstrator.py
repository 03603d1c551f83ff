"""Scripted players for pre-training: one that fumbles, and one that acts on advice it can read.

They see what a policy sees (goal, observations, a skill) and nothing of the game's hidden state, so a model can learn
to do what they do. They are no oracle and no benchmark agent: the fumbling one is bad on purpose.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from seed_envs.alfworld.goals import SENTENCES, Goal

STATIONS: Final = {"clean": "sinkbasin", "heat": "microwave", "cool": "fridge"}

_THING = r"[a-z]+ [0-9]+"
_SEEN = re.compile(rf"(?:on the|the) ({_THING})(?: is open\. in it)?, you see ([^.]*)\.", re.IGNORECASE)
_CLOSED = re.compile(rf"the ({_THING}) is closed", re.IGNORECASE)
_ROOM = re.compile(r"looking quickly around you, you see ([^.]*)\.", re.IGNORECASE)
_ARRIVED = re.compile(rf"you arrive at ({_THING})", re.IGNORECASE)
_TAKEN = re.compile(rf"you pick up the ({_THING}) from the ({_THING})", re.IGNORECASE)
_MOVED = re.compile(rf"you move the ({_THING}) to the ({_THING})", re.IGNORECASE)
_TREATED = re.compile(rf"you (clean|heat|cool) the ({_THING}) using", re.IGNORECASE)
_LIT = re.compile(rf"you turn on the ({_THING})", re.IGNORECASE)
_NAME = re.compile(_THING)
_GOALS: Final = [
    (kind, re.compile(phrase.format(o="(?P<o>[a-z]+)", t="(?P<t>[a-z]+)")))
    for kind in ("two", "clean", "heat", "cool", "look", "simple")
    for phrase in SENTENCES[kind]
]


def read_goal(text: str) -> Goal:
    """Read a goal sentence.

    Raises:
        ValueError: When it is none of the twelve official phrasings.
    """
    sentence = text.lower().rpartition("your task is to: ")[2].strip().rstrip(".")
    for kind, pattern in _GOALS:
        match = pattern.fullmatch(sentence)
        if match:
            return Goal(kind, match["o"], match["t"])
    raise ValueError(f"cannot read the goal {text!r}; expected one of {sorted(SENTENCES)} in its official wording")


def kind_of(name: str) -> str:
    """The type of a named thing: ``cabinet 2`` is a ``cabinet``."""
    return name.partition(" ")[0]


@dataclass(frozen=True)
class Habits:
    """How well a player plays; all numbers are probabilities.

    Attributes:
        noise: A step is a random command.
        skip_treatment: An episode leaves out cleaning, heating or cooling.
        wrong_station: An episode treats at the wrong station.
        forget: A search step ignores which places were searched.
        overlook: An object that is there is not noticed at this step.
        follow: Whether a skill is acted on at all.
    """

    noise: float = 0.02
    skip_treatment: float = 0.0
    wrong_station: float = 0.0
    forget: float = 0.0
    overlook: float = 0.0
    follow: bool = True


#: Plays without advice the way an untrained but fluent policy might.
FUMBLING: Final = Habits(
    noise=0.10, skip_treatment=0.30, wrong_station=0.20, forget=0.25, overlook=0.15, follow=False
)
#: Does what the advice says and what the goal asks.
SKILFUL: Final = Habits()


@dataclass
class Advice:
    """What a skill text says about places: where to go first, where it is no use to look."""

    good: list[str] = field(default_factory=list)
    bad: list[str] = field(default_factory=list)


@dataclass
class _Memory:
    places: list[str] = field(default_factory=list)
    contents: dict[str, list[str]] = field(default_factory=dict)
    closed: set[str] = field(default_factory=set)
    here: str = ""
    held: str = ""
    treated: set[str] = field(default_factory=set)
    delivered: dict[str, str] = field(default_factory=dict)
    lit: bool = False


class Demonstrator:
    """One player for one episode.

    Args:
        goal: What has to be achieved.
        habits: How well it plays.
        advice: Where to look first and where not; used when the habits say so.
        rng: Its private source of randomness.
        places: The furniture, where it is the same in every game; otherwise read off the first observation.
    """

    def __init__(
        self, goal: Goal, habits: Habits, advice: Advice, rng: random.Random, places: Sequence[str] = ()
    ) -> None:
        self.goal, self.habits, self.rng = goal, habits, rng
        self.advice = advice if habits.follow else Advice()
        self.memory = _Memory(places=list(places))
        self.treats = goal.kind in STATIONS and rng.random() >= habits.skip_treatment
        self.station = STATIONS.get(goal.kind, "")
        if self.treats and rng.random() < habits.wrong_station:
            self.station = rng.choice([name for name in STATIONS.values() if name != self.station])
        self.destination = ""

    def act(self, observation: str) -> str:
        """Look at an observation and return a command."""
        self._observe(observation.lower())
        if self.rng.random() < self.habits.noise:
            return self._random_command()
        return self._deliver() if self.memory.held else self._fetch()

    # -- perception ------------------------------------------------------------------------------------------------

    def _observe(self, text: str) -> None:
        memory = self.memory
        room = _ROOM.search(text)
        if room and not memory.places:
            memory.places = _NAME.findall(room[1])
        if arrived := _ARRIVED.search(text):
            memory.here = arrived[1]
        if closed := _CLOSED.search(text):
            memory.closed.add(closed[1])
        if seen := _SEEN.search(text):
            memory.closed.discard(seen[1])
            memory.contents[seen[1]] = _NAME.findall(seen[2])
        if taken := _TAKEN.search(text):
            memory.held = taken[1]
            memory.delivered.pop(taken[1], None)
            memory.contents[taken[2]] = [name for name in memory.contents.get(taken[2], []) if name != taken[1]]
        if moved := _MOVED.search(text):
            memory.held = ""
            memory.contents.setdefault(moved[2], []).append(moved[1])
            if kind_of(moved[2]) == self.goal.target_type:
                memory.delivered[moved[1]] = moved[2]
        if treated := _TREATED.search(text):
            memory.treated.add(treated[2])
        memory.lit = memory.lit or bool(_LIT.search(text))

    # -- decisions -------------------------------------------------------------------------------------------------

    def _fetch(self) -> str:
        for place in self._by_nearness(self.memory.contents):
            for name in self.memory.contents[place]:
                wanted = kind_of(name) == self.goal.object_type and name not in self.memory.delivered
                if wanted and self.rng.random() >= self.habits.overlook:
                    return self._at(place, f"take {name} from {place}")
        return self._search()

    def _deliver(self) -> str:
        memory, goal = self.memory, self.goal
        if kind_of(memory.held) != goal.object_type:
            return self._drop()
        if goal.kind == "look":
            return self._use_lamp()
        if self.treats and memory.held not in memory.treated:
            station = self._instance(self.station)
            if station:
                verb = next(verb for verb, name in STATIONS.items() if name == self.station)
                if memory.here == station and self.station != STATIONS[goal.kind]:
                    self.treats = False  # the wrong station was tried once; a fumbling player moves on
                return self._go(station) or f"{verb} {memory.held} with {station}"
        destination = self._destination()
        return self._at(destination, f"move {memory.held} to {destination}") if destination else self._search()

    def _use_lamp(self) -> str:
        for place in self._by_nearness(self.memory.contents):
            for name in self.memory.contents[place]:
                if kind_of(name) == self.goal.target_type:
                    return self._go(place) or f"use {name}"
        return self._search()

    def _drop(self) -> str:
        places = [self.memory.here] if self.memory.here else []
        place = places[0] if places and self.rng.random() < 0.7 else self.rng.choice(self.memory.places)
        return self._at(place, f"move {self.memory.held} to {place}")

    def _search(self) -> str:
        memory = self.memory
        if memory.here in memory.closed:
            return f"open {memory.here}"
        unseen = [place for place in memory.places if place not in memory.contents]
        for place in self.advice.good:
            if place in unseen:
                return self._at(place, "look")
        if self.habits.forget and self.rng.random() < self.habits.forget:
            unseen = [place for place in memory.places if place != memory.here]
        hopeful = [place for place in unseen if place not in self.advice.bad] or unseen or memory.places
        return self._at(self.rng.choice(hopeful), "look")

    # -- helpers ---------------------------------------------------------------------------------------------------

    def _by_nearness(self, places: Sequence[str] | dict[str, list[str]]) -> list[str]:
        return sorted(places, key=lambda place: place != self.memory.here)

    def _instance(self, kind: str) -> str:
        return next((place for place in self.memory.places if kind_of(place) == kind), "")

    def _destination(self) -> str:
        if not self.destination:
            choices = [place for place in self.memory.places if kind_of(place) == self.goal.target_type]
            self.destination = self.rng.choice(choices) if choices else ""
        return next(iter(self.memory.delivered.values()), self.destination)

    def _go(self, place: str) -> str:
        """The command that gets there, or "" when already there."""
        return "" if self.memory.here == place else f"go to {place}"

    def _at(self, place: str, command: str) -> str:
        """Go, open, then act."""
        return self._go(place) or (f"open {place}" if place in self.memory.closed else command)

    def _random_command(self) -> str:
        memory, rng = self.memory, self.rng
        here = memory.here or rng.choice(memory.places)
        visible = memory.contents.get(here, [])
        options = [f"go to {rng.choice(memory.places)}", f"open {here}", f"examine {here}", "inventory", "look"]
        if visible and not memory.held:
            options += [f"take {rng.choice(visible)} from {here}"] * 2
        if memory.held:
            options += [f"move {memory.held} to {here}"] * 2
        return rng.choice(options)
