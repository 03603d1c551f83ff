"""The rules: one command in, one sentence out, the state replaced.

``Engine`` plays one game.  It follows the original text game exactly,
including its odd behaviour unless switched off, and never raises on an
agent's input: whatever is not admissible answers "Nothing happens.".  It
knows nothing of rewards, step limits or tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple

from seed_envs.alfworld import texts
from seed_envs.alfworld.actions import Rules, accessible, admissible, sliceable_here, takeable
from seed_envs.alfworld.game import Game, State


class Reply(NamedTuple):
    """Answer to one command.

    Attributes:
        text: what the game prints.
        valid: whether the command was admissible.
    """

    text: str
    valid: bool


_state: Callable[[Iterable[object]], State] = partial(tuple.__new__, State)
"""Builds a state from a sequence of fields; half the cost of calling ``State``."""

_NOTHING = Reply(texts.NOTHING_HAPPENS, False)


class Engine:
    """A game being played.

    Attributes:
        game: the compiled game, shared and read-only.
        rules: quirks and wording.
        state: the current state; assign a saved one to go back to it.
        won: whether the goal is met in the current state.
    """

    __slots__ = ("_list", "_verbs", "game", "rules", "state", "won")

    def __init__(self, game: Game, rules: Rules | None = None) -> None:
        """Start a game.

        Args:
            game: the compiled game.
            rules: quirks and wording; ``None`` is the original.
        """
        self.game = game
        self.rules = Rules() if rules is None else rules
        self.state = game.start
        self.won = False
        self._list: tuple[State, list[str]] | None = None

    def reset(self) -> str:
        """Return to the initial state.

        Returns:
            The opening text.
        """
        self.restore(self.game.start)
        return texts.opening_text(self.game)

    def restore(self, state: State) -> None:
        """Continue from a saved state.

        Args:
            state: a value read from :attr:`state` of an engine on the same game.
        """
        self.state = state
        self.won = is_won(self.game, state)

    def resume(self, state: State, commands: Sequence[str]) -> None:
        """Continue from a saved state whose history is known too.

        Args:
            state: a value read from :attr:`state`.
            commands: the commands that led there; engines that cannot jump play them again.
        """
        self.restore(state)

    def admissible(self) -> list[str]:
        """The sorted list of admissible commands, built on first read after a change."""
        cached = self._list
        if cached is None or cached[0] is not self.state:
            cached = self._list = (self.state, admissible(self.game, self.state, self.rules))
        return cached[1]

    def act(self, command: str) -> Reply:
        """Execute one command.

        Args:
            command: compared exactly (case included) after stripping surrounding white space.

        Returns:
            What the game prints and whether the command was admissible.
        """
        command = command.strip()
        verb, _, rest = command.partition(" ")
        if not rest:
            return self._bare(command)
        handler = _VERBS.get(verb)
        return _NOTHING if handler is None else handler(self, rest)

    def _bare(self, command: str) -> Reply:
        if command == "look":
            return Reply(texts.look_text(self.game, self.state, self.rules.quirks), True)
        if command == "inventory":
            return Reply(texts.inventory_text(self.game, self.state), True)
        if command == "help" and self.rules.wording == "move":
            return Reply(texts.HELP, True)
        return _NOTHING

    def _here(self, name: str) -> int:
        """Index of the receptacle with this name if it is at the agent's location, else -1."""
        receptacle = self.game.receptacle_index.get(name, -1)
        return receptacle if receptacle >= 0 and self.game.places[receptacle] == self.state.place else -1

    def _go(self, rest: str) -> Reply:
        if rest[:3] != "to ":
            return _NOTHING
        game, old = self.game, self.state
        receptacle = game.receptacle_index.get(rest[3:], -1)
        if receptacle < 0:
            return _NOTHING
        place = game.places[receptacle]
        if place != old.place:
            self.state = _state((place, *old[1:]))
            if game.goal_place:
                self.won = is_won(game, self.state)
        elif self.rules.quirks.no_goto_here:
            return _NOTHING
        name = game.place_names[place] if self.rules.wording == "put" else rest[3:]
        return Reply(f"You arrive at {name}. {texts.receptacle_text(game, self.state, receptacle)}", True)

    def _open(self, name: str) -> Reply:
        receptacle, old = self._here(name), self.state
        if receptacle < 0 or accessible(self.game, old, receptacle):
            return _NOTHING
        self.state = _state((old.place, old.held, old.opened | 1 << receptacle, *old[3:]))
        return Reply(f"You open the {name}. {texts.receptacle_text(self.game, self.state, receptacle)}", True)

    def _close(self, name: str) -> Reply:
        receptacle, old = self._here(name), self.state
        if receptacle < 0 or not old.opened >> receptacle & 1 or not self.game.openable >> receptacle & 1:
            return _NOTHING
        self.state = _state((old.place, old.held, old.opened & ~(1 << receptacle), *old[3:]))
        return Reply(f"You close the {name}.", True)

    def _examine(self, name: str) -> Reply:
        receptacle = self._here(name)
        if receptacle >= 0:
            return Reply(texts.receptacle_text(self.game, self.state, receptacle), True)
        item = self.game.object_index.get(name, -1)
        if item < 0:
            return _NOTHING
        if item == self.state.held or (not self.rules.quirks.examine_held_only and self._visible(item)):
            return Reply(texts.object_text(self.game, self.state, item, self.rules.quirks), True)
        return _NOTHING

    def _visible(self, item: int) -> bool:
        game, state = self.game, self.state
        here = game.at_place[state.place]
        return any(item in state.contents[r] for r in here if accessible(game, state, r))

    def _take(self, rest: str) -> Reply:
        name, _, source = rest.partition(" from ")
        game, old = self.game, self.state
        item, receptacle = game.object_index.get(name, -1), self._here(source)
        if (
            old.held >= 0
            or item < 0
            or receptacle < 0
            or item not in old.contents[receptacle]
            or not takeable(game, self.rules.quirks) >> item & 1
            or not accessible(game, old, receptacle)
        ):
            return _NOTHING
        quirks = self.rules.quirks
        losing = (receptacle,) if quirks.ghosts else [r for r, row in enumerate(old.contents) if item in row]
        contents = list(old.contents)
        for r in losing:
            contents[r] = tuple(o for o in contents[r] if o != item)
        inner = old.inner
        if not quirks.frozen_vessels:
            inner = tuple(pair for pair in inner if item not in pair)
        nearby = old.nearby
        if item in nearby[old.place]:
            row = tuple(o for o in nearby[old.place] if o != item)
            nearby = (*nearby[: old.place], row, *nearby[old.place + 1 :])
        removed = old.removed | {(item, r) for r in losing}
        self.state = _state((old.place, item, old.opened, tuple(contents), nearby, removed, *old[6:11], inner))
        self.won = is_won(game, self.state)
        return Reply(f"You pick up the {name} from the {source}.", True)

    def _move(self, rest: str) -> Reply:
        return self._place(rest, " to ") if self.rules.wording == "move" else _NOTHING

    def _put(self, rest: str) -> Reply:
        return self._place(rest, " in/on ") if self.rules.wording == "put" else _NOTHING

    def _place(self, rest: str, separator: str) -> Reply:
        name, _, target = rest.partition(separator)
        game, old = self.game, self.state
        item, receptacle = old.held, self._here(target)
        if (
            item < 0
            or receptacle < 0
            or game.objects[item] != name
            or not game.fits[receptacle] >> item & 1
            or not accessible(game, old, receptacle)
        ):
            return _NOTHING
        contents, nearby = old.contents, old.nearby
        if item not in contents[receptacle]:
            row = tuple(sorted((*contents[receptacle], item)))
            contents = (*contents[:receptacle], row, *contents[receptacle + 1 :])
        if item not in nearby[old.place]:
            row = tuple(sorted((*nearby[old.place], item)))
            nearby = (*nearby[: old.place], row, *nearby[old.place + 1 :])
        removed = old.removed - {(item, receptacle)}
        self.state = _state((old.place, -1, old.opened, contents, nearby, removed, *old[6:]))
        self.won = is_won(game, self.state)
        if self.rules.wording == "put":
            return Reply(f"You put the {name} in/on the {target}.", True)
        return Reply(f"You move the {name} to the {target}.", True)

    def _use(self, name: str) -> Reply:
        game, old = self.game, self.state
        item = game.object_index.get(name, -1)
        if item < 0 or not game.toggleable >> item & 1:
            return _NOTHING
        if not any(item in old.contents[r] for r in game.at_place[old.place]):
            return _NOTHING
        bit = 1 << item
        turn_off = bool(old.toggled & bit) and not self.rules.quirks.use_only_on
        toggled = old.toggled & ~bit if turn_off else old.toggled | bit
        self.state = _state((*old[:9], toggled, *old[10:]))
        self.won = is_won(game, self.state)
        return Reply(f"You turn {'off' if turn_off else 'on'} the {name}.", True)

    def _station(self, rest: str, able: int, stations: int, needs_door: bool) -> tuple[str, str] | None:
        """Names of the held object and the station when the treatment is possible, else None."""
        name, _, target = rest.partition(" with ")
        held, receptacle = self.state.held, self._here(target)
        if held < 0 or receptacle < 0 or self.game.objects[held] != name:
            return None
        if not able >> held & 1 or not stations >> receptacle & 1:
            return None
        if needs_door and not self.rules.quirks.closed_stations and not accessible(self.game, self.state, receptacle):
            return None
        return name, target

    def _clean(self, rest: str) -> Reply:
        found = self._station(rest, self.game.cleanable, self.game.washers, needs_door=False)
        if found is None:
            return _NOTHING
        old = self.state
        self.state = _state((*old[:6], old.clean | 1 << old.held, *old[7:]))
        self.won = is_won(self.game, self.state)
        return Reply(f"You clean the {found[0]} using the {found[1]}.", True)

    def _heat(self, rest: str) -> Reply:
        found = self._station(rest, self.game.heatable, self.game.microwaves, needs_door=True)
        if found is None:
            return _NOTHING
        old, bit = self.state, 1 << self.state.held
        self.state = _state((*old[:7], old.hot | bit, old.cool & ~bit, *old[9:]))
        self.won = is_won(self.game, self.state)
        return Reply(f"You heat the {found[0]} using the {found[1]}.", True)

    def _cool(self, rest: str) -> Reply:
        found = self._station(rest, self.game.coolable, self.game.fridges, needs_door=True)
        if found is None:
            return _NOTHING
        old, bit = self.state, 1 << self.state.held
        self.state = _state((*old[:7], old.hot & ~bit, old.cool | bit, *old[9:]))
        self.won = is_won(self.game, self.state)
        return Reply(f"You cool the {found[0]} using the {found[1]}.", True)

    def _slice(self, rest: str) -> Reply:
        name, _, knife = rest.partition(" with ")
        game, old = self.game, self.state
        item = game.object_index.get(name, -1)
        if item < 0 or old.held < 0 or game.objects[old.held] != knife:
            return _NOTHING
        if item not in sliceable_here(game, old, self.rules.quirks):
            return _NOTHING
        self.state = _state((*old[:10], old.sliced | 1 << item, old.inner))
        return Reply(f"You sliced the {name} with the {knife}.", True)


_VERBS: dict[str, Callable[[Engine, str], Reply]] = {
    "go": Engine._go,
    "open": Engine._open,
    "close": Engine._close,
    "examine": Engine._examine,
    "take": Engine._take,
    "move": Engine._move,
    "put": Engine._put,
    "use": Engine._use,
    "clean": Engine._clean,
    "heat": Engine._heat,
    "cool": Engine._cool,
    "slice": Engine._slice,
}


def is_won(game: Game, state: State) -> bool:
    """Whether the goal is met.

    Args:
        game: the game.
        state: any of its states.

    Returns:
        True when the game is won in this state.
    """
    if game.parts:
        return all(is_won(part, state) for part in game.parts)
    kind, targets = game.goal.kind, game.targets
    if kind == "look":
        if state.held < 0 or not targets >> state.held & 1:
            return False
        lit = state.toggled & game.lamps
        return bool(lit) and any(lit >> o & 1 for r in game.at_place[state.place] for o in state.contents[r])
    if kind == "two":
        return any(sum(targets >> o & 1 for o in state.contents[r]) >= 2 for r in game.destinations)
    counting = treated(game, state)
    return bool(counting) and any(counting >> o & 1 for r in game.destinations for o in state.contents[r])


def treated(game: Game, state: State) -> int:
    """Mask of the goal's objects that already are in the wanted condition.

    Args:
        game: the game.
        state: any of its states.

    Returns:
        The mask; for goals without a treatment, all objects of the wanted type.
    """
    kind = game.goal.kind
    if kind == "clean":
        return game.targets & state.clean
    if kind == "heat":
        return game.targets & state.hot
    if kind == "cool":
        return game.targets & state.cool
    return game.targets


def condition_rate(game: Game, state: State) -> tuple[float, dict[str, bool]]:
    """How much of the goal is met, counted as the ALFRED benchmark counts goal conditions.

    Args:
        game: the game.
        state: any of its states.

    Returns:
        The share of met conditions in 0..1, and the named sub-goals (of two goals those of the second as ``also_…``).
    """
    if game.parts:
        first, second = (condition_rate(part, state)[1] for part in game.parts)
        joined = {**first, **{f"also_{name}": met for name, met in second.items()}}
        return sum(joined.values()) / len(joined), joined
    kind, targets = game.goal.kind, game.targets
    counts = [sum(targets >> o & 1 for o in state.contents[r]) for r in game.destinations]
    best = max(counts, default=0)
    if kind == "simple":
        flags = {"placed": best > 0}
    elif kind == "two":
        flags = {"first_placed": best > 0, "second_placed": best > 1}
    elif kind == "look":
        lit = state.toggled & game.lamps
        lamp = bool(lit) and any(lit >> o & 1 for r in game.at_place[state.place] for o in state.contents[r])
        flags = {"held": state.held >= 0 and bool(targets >> state.held & 1), "lamp_on_here": lamp}
    else:
        flags = {"placed": best > 0, "treated": bool(treated(game, state)), "treated_placed": is_won(game, state)}
    return sum(flags.values()) / len(flags), flags
