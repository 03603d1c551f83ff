"""Writes hindsight skills by rule, from a finished trajectory and its outcome only.

After a success: the workflow that worked, without the detours.  After a
failure: what was searched in vain or done wrong, and what to do instead.  A
place is named only if the episode showed it.  ``annotate`` writes sentences;
``annotate_terse`` the short form for word-level models.  Neither sees the
game's state or the oracle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from seed_envs.alfworld.explorer import STATIONS, Hint
from seed_envs.alfworld.goals import Goal
from seed_envs.alfworld.memory import Memory, kind_of
from seed_envs.alfworld.reading import read_goal_line
from seed_envs.alfworld.retelling import retold, retold_terse, turns
from seed_envs.trajectory import Trajectory

MAX_TERSE_WORDS: Final = 26


@dataclass
class Findings:
    """What an episode shows about its task.

    Attributes:
        goal: the goal.
        memory: everything seen.
        won: the outcome.
        fetched: (object, receptacle) of every taking of a wanted object, in order.
        refused: how many commands did nothing.
        skipped: wanted objects that were put at the goal without the treatment.
        mistreated: (treatment, object) pairs that the goal did not ask for.
    """

    goal: Goal
    memory: Memory = field(default_factory=Memory)
    won: bool = False
    fetched: list[tuple[str, str]] = field(default_factory=list)
    refused: int = 0
    skipped: list[str] = field(default_factory=list)
    mistreated: list[tuple[str, str]] = field(default_factory=list)

    @property
    def treatment(self) -> str:
        """The treatment that the goal asks for, or ""."""
        return self.goal.kind if self.goal.kind in STATIONS else ""

    def sources(self) -> list[tuple[str, str]]:
        """(object, receptacle) where wanted objects were found and can be fetched, best first, at most as needed."""
        needed = 2 if self.goal.kind == "two" else 1
        found: dict[str, str] = {}
        for item, place in self.fetched[::-1] if self.won and needed == 1 else self.fetched:
            found.setdefault(item, self.memory.first_seen.get(item, place))
        for item, place in self.memory.first_seen.items():
            if kind_of(item) == self.goal.object_type:
                found.setdefault(item, place)
        pairs = list(found.items())
        if self.goal.kind == "two":
            pairs = [pair for pair in pairs if kind_of(pair[1]) != self.goal.target_type] or pairs
        return pairs[:needed]

    def station(self) -> str:
        """A station for the treatment that the room was seen to have, or ""."""
        used = [name for kind, _, name in self.memory.treatments if kind == self.treatment]
        if used:
            return used[-1]
        wanted = STATIONS.get(self.goal.kind, "")
        return next((name for name in self.memory.places if wanted and kind_of(name) == wanted), "")

    def destination(self) -> str:
        """The goal receptacle that was used, or one that the room was seen to have, or ""."""
        kind = self.goal.target_type
        used = [place for place in self.memory.placed.values() if kind_of(place) == kind]
        if used:
            return max(sorted(set(used)), key=used.count)
        return next((name for name in (*self.memory.visited, *self.memory.places) if kind_of(name) == kind), "")

    def lamp(self) -> tuple[str, str]:
        """(lamp, receptacle it stands on) as seen, or two empty texts."""
        for item, place in self.memory.first_seen.items():
            if kind_of(item) == self.goal.target_type:
                return item, place
        return "", ""

    def searched(self) -> list[str]:
        """Receptacles that were looked into and held no wanted object, in order."""
        return [
            place
            for place in self.memory.visited
            if place in self.memory.contents
            and not any(at == place for item, at in self.memory.first_seen.items() if self._wanted(item))
        ]

    def unsearched(self) -> list[str]:
        """Receptacles that the room was seen to have and that were not looked into, in order."""
        return [place for place in self.memory.places if place not in self.memory.contents]

    def _wanted(self, item: str) -> bool:
        return kind_of(item) == self.goal.object_type


def study(trajectory: Trajectory) -> list[Findings]:
    """Read an episode.

    Args:
        trajectory: a finished episode.

    Returns:
        What it shows about each goal of its task, the one under a lamp last; nothing when the task is not stated in
        official words.
    """
    goal = read_goal_line(trajectory.goal)
    parts = () if goal is None else goal.parts
    return [_study(trajectory, part, alone=len(parts) == 1) for part in sorted(parts, key=lambda g: g.kind == "look")]


def _study(trajectory: Trajectory, goal: Goal, alone: bool) -> Findings:
    findings = Findings(goal, won=trajectory.success)
    memory = findings.memory
    for step, answer in turns(trajectory, memory):
        held = memory.held
        memory.update(answer)
        findings.refused += not step.action_valid
        if memory.held and memory.held != held and kind_of(memory.held) == goal.object_type:
            findings.fetched.append((memory.held, memory.here))
        if held and not memory.held:
            _note_placing(findings, held)
    for kind, item, _ in memory.treatments:
        # Beside a second goal, what is done to its object is none of this one's business.
        if kind != findings.treatment and (alone or kind_of(item) == goal.object_type):
            findings.mistreated += [] if (kind, item) in findings.mistreated else [(kind, item)]
    return findings


def _note_placing(findings: Findings, item: str) -> None:
    goal, memory = findings.goal, findings.memory
    at_goal = kind_of(memory.placed.get(item, "")) == goal.target_type and kind_of(item) == goal.object_type
    if at_goal and findings.treatment and not memory.done(findings.treatment, item) and item not in findings.skipped:
        findings.skipped.append(item)


def annotate(trajectory: Trajectory) -> str:
    """The hindsight skill of an episode, in a few sentences.

    Args:
        trajectory: a finished episode.

    Returns:
        Advice to a player of the same task.
    """
    studies = study(trajectory)
    if not studies:
        return retold(trajectory)
    workflow = [errand for findings in studies for errand in _workflow(findings)]
    if trajectory.success:
        return f"This order of actions works: {_sentence(workflow)} Do not search anywhere else."
    parts = []
    for findings in studies:
        parts += _mistakes(findings)
        if len(findings.sources()) < (2 if findings.goal.kind == "two" else 1):
            parts += _search_advice(findings)
    if workflow:
        parts.append(f"Next time: {_sentence(workflow)}")
    return " ".join(dict.fromkeys(parts))


def _sentence(steps: Sequence[str]) -> str:
    return f"{', then '.join(steps)}."


def _workflow(findings: Findings) -> list[str]:
    """The errands of a plan, as far as the episode showed where things are."""
    goal, steps = findings.goal, []
    station, destination = findings.station(), findings.destination()
    lamp, stand = findings.lamp()
    for item, place in findings.sources():
        opened = " and open it" if place in findings.memory.closed or kind_of(place) in ("fridge", "microwave") else ""
        steps.append(f"go to {place}{opened}")
        steps.append(f"take {item}")
        if findings.treatment and station:
            steps.append(f"go to {station} and {findings.treatment} {item} with it")
        if goal.kind == "look":
            steps += [f"go to {stand}", f"use {lamp}"] if lamp else [f"look for a {goal.target_type} and use it"]
        elif destination:
            steps.append(f"go to {destination} and put {item} there")
    return steps


def _mistakes(findings: Findings) -> list[str]:
    goal, parts = findings.goal, []
    if findings.skipped:
        item = findings.skipped[0]
        parts.append(f"Putting {item} away was useless because it had not been treated: {goal.kind} it first.")
    if findings.mistreated:
        kind, item = findings.mistreated[0]
        wanted = f"the task asks to {findings.treatment} it" if findings.treatment else "the task does not ask for it"
        parts.append(f"It was wrong to {kind} {item}: {wanted}.")
    if findings.refused >= 2:
        parts.append(f"{findings.refused} commands did nothing; use only actions that are possible where you stand.")
    return parts


def _search_advice(findings: Findings) -> list[str]:
    goal, parts = findings.goal, []
    wanted = f"second {goal.object_type}" if findings.sources() else goal.object_type
    searched, left = findings.searched(), findings.unsearched()
    if searched:
        parts.append(f"There was no {wanted} in {', '.join(searched[:8])}.")
    if not searched and not left:
        parts.append(f"No {wanted} was found: visit more places, and open closed ones, before doing anything else.")
    if left:
        parts.append(f"Search the places not yet looked into, such as {', '.join(left[:5])}, and open closed ones.")
    return parts


def annotate_terse(trajectory: Trajectory) -> str:
    """The hindsight skill of an episode in a closed vocabulary of lower-case words, at most 26 words.

    Args:
        trajectory: a finished episode.

    Returns:
        Such as ``go to shelf 1, take mug 1, clean it with sinkbasin 1, move it to desk 1``.
    """
    studies = study(trajectory)
    if not studies:
        return _fit(retold_terse(trajectory))
    steps = [step for findings in studies for step in _terse_workflow(findings)]
    if trajectory.success:
        return _fit(steps)
    for findings in studies:
        steps += _terse_advice(findings)
    return _fit(steps)


def _terse_advice(findings: Findings) -> list[str]:
    if len(findings.sources()) >= (2 if findings.goal.kind == "two" else 1):
        return []
    empty, left = findings.searched()[-4:], findings.unsearched()[:2]
    advice = [f"{findings.goal.object_type} not in {' '.join(empty)}"] if empty else []
    advice += [f"search {' '.join(left)}"] if left else []
    return advice or [f"search each place then take {findings.goal.object_type}"]


def _terse_workflow(findings: Findings) -> list[str]:
    goal, steps = findings.goal, []
    station, destination = findings.station(), findings.destination()
    lamp, stand = findings.lamp()
    for item, place in findings.sources():
        steps += [f"go to {place}", f"take {item}"]
        if findings.treatment and station:
            steps.append(f"{findings.treatment} it with {station}")
        if goal.kind == "look":
            steps += [f"use {lamp} at {stand}"] if lamp else []
        elif destination:
            steps.append(f"move it to {destination}")
    return steps


def _fit(steps: Sequence[str]) -> str:
    """Join steps, dropping the last ones that would exceed the limit of words."""
    kept: list[str] = []
    words = 0
    for step in steps:
        words += len(step.split())
        if words > MAX_TERSE_WORDS:
            break
        kept.append(step)
    return ", ".join(kept)


def read_terse(skill: str) -> Hint:
    """Read a terse skill back as advice for the explorer.

    Args:
        skill: what ``annotate_terse`` wrote (other text gives an empty hint).

    Returns:
        Places to look into first and last.
    """
    sources: list[str] = []
    avoid: list[str] = []
    for step in skill.lower().split(","):
        words = step.split()
        names = [f"{a} {b}" for a, b in pairwise(words) if b.isdigit()]
        if words[:2] == ["go", "to"] or words[:1] == ["search"]:
            sources += names
        elif words[1:3] == ["not", "in"]:
            avoid += names
    return Hint(tuple(sources), tuple(avoid))
