"""The full-knowledge expert: a shortest plan from any state.

Every location is one command away from every other, so a plan is a short
sequence of errands (empty the hands, fetch, treat, put, switch on).  The
planner enumerates the sensible sequences and keeps the shortest.  It sees
everything, also behind closed doors; the searcher without that privilege is
in ``explorer``.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations
from typing import Any

from seed_envs.alfworld.actions import Rules, accessible, bits, takeable
from seed_envs.alfworld.engine import Engine, is_won, treated
from seed_envs.alfworld.game import Game, State
from seed_envs.errors import OracleUnavailable


class Errand:
    """A plan under construction: where the agent would be, which doors would be open, what was ordered so far."""

    __slots__ = ("commands", "game", "held", "opened", "place", "put")

    def __init__(self, game: Game, state: State, put: bool) -> None:
        """Start at a state; ``put`` selects the older wording."""
        self.game = game
        self.place = state.place
        self.opened = state.opened
        self.held = state.held
        self.commands: list[str] = []
        self.put = put

    def fork(self) -> Errand:
        """An independent copy."""
        copy = object.__new__(Errand)
        copy.game, copy.place, copy.opened, copy.held, copy.put = (
            self.game,
            self.place,
            self.opened,
            self.held,
            self.put,
        )
        copy.commands = self.commands.copy()
        return copy

    def visit(self, receptacle: int) -> None:
        """Go to a receptacle unless already there."""
        place = self.game.places[receptacle]
        if place != self.place:
            self.place = place
            self.commands.append("go to " + self.game.receptacles[receptacle])

    def reach(self, receptacle: int) -> None:
        """Go to a receptacle and open its door if it has a closed one."""
        self.visit(receptacle)
        if self.game.openable >> receptacle & 1 and not self.opened >> receptacle & 1:
            self.opened |= 1 << receptacle
            self.commands.append("open " + self.game.receptacles[receptacle])

    def take(self, item: int, receptacle: int) -> None:
        """Fetch an object."""
        self.reach(receptacle)
        self.commands.append(f"take {self.game.objects[item]} from {self.game.receptacles[receptacle]}")
        self.held = item

    def drop(self, receptacle: int) -> None:
        """Put the held object away."""
        self.reach(receptacle)
        item, target = self.game.objects[self.held], self.game.receptacles[receptacle]
        self.commands.append(f"put {item} in/on {target}" if self.put else f"move {item} to {target}")
        self.held = -1

    def price(self, receptacle: int) -> int:
        """Commands needed before something can be put into a receptacle."""
        game = self.game
        closed = game.openable >> receptacle & 1 and not self.opened >> receptacle & 1
        return (game.places[receptacle] != self.place) + bool(closed)


class Planner:
    """Finds shortest plans for one game.

    Args:
        game: the game.
        rules: quirks and wording.
        ghosts: whether a plan may win through an object that is still listed where it was taken from (only possible
            with that quirk); False asks for the ordinary way.
    """

    def __init__(self, game: Game, rules: Rules | None = None, *, ghosts: bool = True) -> None:
        self.game = game
        self.rules = Rules() if rules is None else rules
        self.ghosts = ghosts and self.rules.quirks.ghosts
        self._able = takeable(game, self.rules.quirks)
        self._parts = tuple(Planner(part, self.rules, ghosts=ghosts) for part in game.parts)

    def plan(self, state: State) -> list[str]:
        """A shortest winning sequence of commands.

        Args:
            state: any state of the game.

        Returns:
            The commands; empty when the game is already won. For two goals the shortest of the plans that meet one
            goal after the other, in either order; taking turns between the goals is not considered.

        Raises:
            OracleUnavailable: when the game can no longer be won, for example with full hands and no place for what
                they hold.
        """
        if is_won(self.game, state):
            return []
        best: list[str] | None = None
        for commands in self._both(state) if self._parts else (e.commands for e in self._candidates(state)):
            if best is None or (len(commands), commands) < (len(best), best):
                best = commands
        if best is None:
            raise OracleUnavailable(f"{self.game.game_id}: no plan wins from this state; {self._why(state)}")
        return best

    def _both(self, state: State) -> Iterator[list[str]]:
        """Plans that meet one goal after the other; those that undo the first by the second are left out."""
        engine = Engine(self.game, self.rules)
        for first, second in permutations(self._parts):
            done = is_won(first.game, state)
            for commands in [[]] if done else [errand.commands for errand in first._candidates(state)]:
                engine.restore(state)
                for command in commands:
                    engine.act(command)
                try:
                    rest = second.plan(engine.state)
                except OracleUnavailable:
                    continue
                for command in rest:
                    engine.act(command)
                if engine.won:
                    yield [*commands, *rest]

    def _why(self, state: State) -> str:
        if dead_end(self.game, state):
            return f"the hands hold {self.game.objects[state.held]}, which fits into no receptacle of the room"
        return "the objects of the goal cannot be brought where they are needed"

    def _candidates(self, state: State) -> Iterator[Errand]:
        kind = self.game.goal.kind
        start = Errand(self.game, state, self.rules.wording == "put")
        if kind == "look":
            return self._look(state, start)
        if kind == "two":
            return self._two(state, start)
        return self._single(state, start)

    def _sources(self, state: State, mask: int) -> list[tuple[int, int]]:
        """(object, receptacle) pairs from which an object of the mask can be taken."""
        mask &= self._able
        return [(o, r) for r, row in enumerate(state.contents) for o in row if mask >> o & 1]

    def _empty_hands(self, start: Errand, towards: int) -> Iterator[Errand]:
        """All sensible ways to get rid of the held object before fetching from ``towards``."""
        if start.held < 0:
            yield start
            return
        game, held = self.game, start.held
        here, there = game.at_place[start.place], game.at_place[game.places[towards]]
        elsewhere = [r for r in range(len(game.places)) if game.fits[r] >> held & 1]
        options = {r for r in (*here, *there) if game.fits[r] >> held & 1}
        options.update(r for r in elsewhere if r in game.destinations or _bit(game.fridges | game.microwaves, r))
        if elsewhere:
            options.add(min(elsewhere, key=start.price))
        for receptacle in sorted(options):
            errand = start.fork()
            errand.drop(receptacle)
            yield errand

    def _single(self, state: State, start: Errand) -> Iterator[Errand]:
        game, ready = self.game, treated(self.game, state)
        held = state.held
        if held >= 0 and game.targets >> held & 1:
            yield from self._finish(state, start, held, -1, bool(ready >> held & 1))
        for item, receptacle in self._sources(state, game.targets):
            for errand in self._empty_hands(start, receptacle):
                errand = errand.fork()
                errand.take(item, receptacle)
                yield from self._finish(state, errand, item, receptacle, bool(ready >> item & 1))

    def _finish(self, state: State, errand: Errand, item: int, source: int, ready: bool) -> Iterator[Errand]:
        """Treat the held object where needed and bring it to a destination."""
        game = self.game
        ghost = self.ghosts and any(item in state.contents[r] for r in game.destinations if r != source)
        for treated_errand in [errand] if ready or game.goal.kind == "simple" else self._treat(errand, item):
            if ghost and treated_errand is not errand:
                yield treated_errand
            options = [r for r in game.destinations if game.fits[r] >> item & 1]
            if options:
                last = treated_errand.fork()
                last.drop(min(options, key=last.price))
                yield last

    def _treat(self, errand: Errand, item: int) -> Iterator[Errand]:
        game, kind = self.game, self.game.goal.kind
        stations = {"clean": game.washers, "heat": game.microwaves, "cool": game.fridges}[kind]
        for station in bits(stations):
            copy = errand.fork()
            if kind == "clean" or self.rules.quirks.closed_stations:
                copy.visit(station)
            else:
                copy.reach(station)
            copy.commands.append(f"{kind} {game.objects[item]} with {game.receptacles[station]}")
            yield copy

    def _look(self, state: State, start: Errand) -> Iterator[Errand]:
        game = self.game
        lamps = [(o, r) for r, row in enumerate(state.contents) for o in row if game.lamps >> o & 1]
        if state.held >= 0 and game.targets >> state.held & 1:
            for lamp, stand in lamps:
                yield self._light(state, start.fork(), lamp, stand)
        for item, receptacle in self._sources(state, game.targets):
            for emptied in self._empty_hands(start, receptacle):
                for lamp, stand in lamps:
                    errand = emptied.fork()
                    errand.take(item, receptacle)
                    yield self._light(state, errand, lamp, stand)

    def _light(self, state: State, errand: Errand, lamp: int, stand: int) -> Errand:
        errand.visit(stand)
        if not state.toggled >> lamp & 1:
            errand.commands.append("use " + self.game.objects[lamp])
        return errand

    def _two(self, state: State, start: Errand) -> Iterator[Errand]:
        for destination in self._distinct_destinations(state, start):
            inside = {o for o in state.contents[destination] if self.game.targets >> o & 1}
            yield from self._gather(state, start, destination, inside)

    def _gather(self, state: State, start: Errand, destination: int, inside: set[int]) -> Iterator[Errand]:
        """Bring targets to one destination until two are there."""
        game, held = self.game, start.held
        if held >= 0 and game.targets >> held & 1 and held not in inside and _bit(game.fits[destination], held):
            errand = start.fork()
            errand.drop(destination)
            yield from self._gather_more(state, errand, destination, inside | {held})
        else:
            yield from self._gather_more(state, start, destination, inside)

    def _gather_more(self, state: State, start: Errand, destination: int, inside: set[int]) -> Iterator[Errand]:
        if len(inside) >= 2:
            yield start
            return
        for item, receptacle in self._sources(state, self.game.targets):
            # What the agent held at the start is somewhere else by now.
            if item in inside or receptacle == destination or not _bit(self.game.fits[destination], item):
                continue
            for errand in self._empty_hands(start, receptacle):
                errand = errand.fork()
                errand.take(item, receptacle)
                errand.drop(destination)
                yield from self._gather_more(state, errand, destination, inside | {item})

    def _distinct_destinations(self, state: State, start: Errand) -> list[int]:
        """Destinations that differ in cost or content; of equal ones the first."""
        game, targets = self.game, self.game.targets
        busy = {start.place} | {game.places[r] for _, r in self._sources(state, targets)}
        chosen: dict[tuple[object, ...], int] = {}
        for receptacle in game.destinations:
            place = game.places[receptacle]
            closed = not accessible(game, state, receptacle)
            inside = tuple(o for o in state.contents[receptacle] if targets >> o & 1)
            chosen.setdefault((closed, inside, place if place in busy else -1), receptacle)
        return list(chosen.values())


def _bit(mask: int, position: int) -> bool:
    return bool(mask >> position & 1)


def secrets(planner: Planner, state: State) -> dict[str, Any]:
    """What only the game itself knows, for privileged users.

    Args:
        planner: the game's planner.
        state: any of its states.

    Returns:
        ``plan`` (a shortest one, None when the game is lost), ``contents`` of all receptacles, ``dead_end``.
    """
    game = planner.game
    try:
        plan: list[str] | None = planner.plan(state)
    except OracleUnavailable:
        plan = None
    names = zip(game.receptacles, state.contents, strict=True)
    contents = {name: [game.objects[item] for item in row] for name, row in names}
    return {"plan": plan, "contents": contents, "dead_end": dead_end(game, state)}


def dead_end(game: Game, state: State) -> bool:
    """Whether the hands are full for ever: no receptacle of the room takes the held object.

    Args:
        game: the game.
        state: any of its states.

    Returns:
        True when nothing can be put down or taken any more.
    """
    return state.held >= 0 and not game.placeable >> state.held & 1
