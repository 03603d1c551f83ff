"""Says why a command was refused.

Used for ``info["invalid_reason"]`` and for the verbose feedback option.  It
speaks only of what the agent has seen or could know by standing there: what is
behind a closed door or in another place is never told.
"""

from __future__ import annotations

from seed_envs.alfworld.actions import Rules, accessible
from seed_envs.alfworld.game import Game, State
from seed_envs.errors import close_matches

VERBS: tuple[str, ...] = tuple(
    "look inventory help go open close examine take move put use clean heat cool slice".split()
)
_SHAPES = {
    "take": " from ",
    "move": " to ",
    "put": " in/on ",
    "clean": " with ",
    "heat": " with ",
    "cool": " with ",
    "slice": " with ",
}
_STATION_NAMES = {"clean": "a sinkbasin", "heat": "a microwave", "cool": "a fridge"}


def explain(game: Game, state: State, rules: Rules, command: str) -> str:
    """The reason why an inadmissible command did nothing.

    Args:
        game: the game.
        state: the state in which it was tried.
        rules: quirks and wording.
        command: what the agent wrote.

    Returns:
        One sentence.
    """
    command = command.strip()
    if len(command) > 200:
        return f"A command has a few words; this has {len(command):,} characters."
    verb, _, rest = command.partition(" ")
    if verb not in VERBS:
        return f"There is no command that begins with {verb[:40]!r}.{close_matches(verb, VERBS)}"
    if (verb == "put" and rules.wording == "move") or (verb == "move" and rules.wording == "put"):
        shape = "move (object) to (receptacle)" if verb == "put" else "put (object) in/on (receptacle)"
        return f"This game says: {shape}."
    if verb in ("open", "close", "examine", "use"):
        return _simple(game, state, rules, verb, rest)
    if verb == "go":
        return _go(game, state, rest)
    separator = _SHAPES.get(verb)
    if separator is None:
        if command == "help":
            return "This game has no help command."
        return f"The command is just {verb!r}."
    thing, found, other = rest.partition(separator)
    if not found:
        return f"Expected: {verb} (something){separator}(something)."
    return _pair(game, state, rules, verb, thing, other)


def _receptacle(game: Game, state: State, name: str) -> tuple[int, str]:
    """Index of a receptacle at hand, or -1 and what is wrong."""
    index = game.receptacle_index.get(name, -1)
    if index < 0:
        return -1, f"There is no {name[:60]!r} to go to in this room.{close_matches(name, game.receptacles)}"
    if game.places[index] != state.place:
        return -1, f"The {name} is not here; go to it first."
    return index, ""


def _go(game: Game, state: State, rest: str) -> str:
    if not rest.startswith("to "):
        return "Expected: go to (receptacle)."
    index, problem = _receptacle(game, state, rest[3:])
    return f"You are already at the {rest[3:]}." if index >= 0 else problem


def _simple(game: Game, state: State, rules: Rules, verb: str, name: str) -> str:
    index, problem = _receptacle(game, state, name)
    if verb == "use":
        return f"There is no {name[:60]!r} here that can be switched on."
    if verb == "examine" and index < 0:
        if name in game.receptacle_index:
            return problem
        if rules.quirks.examine_held_only:  # Said of every name: which objects exist elsewhere is not told.
            return f"Only the held object can be examined, and you are not carrying {name[:60]!r}."
        return f"There is no {name[:60]!r} at hand to examine."
    if index < 0:
        return problem
    if not game.openable >> index & 1:
        return f"The {name} has no door."
    return f"The {name} is already {'open' if verb == 'open' else 'closed'}."


def _pair(game: Game, state: State, rules: Rules, verb: str, thing: str, other: str) -> str:
    if verb == "slice":
        if state.held < 0 or game.objects[state.held] != other:
            return f"You are not carrying {other[:60]!r}."
        if not game.knives >> state.held & 1:
            return f"The {other} does not cut."
        return f"There is no {thing[:60]!r} here that can be sliced."
    index, problem = _receptacle(game, state, other)
    if verb == "take":
        return _take(game, state, rules, thing, other, index, problem)
    if state.held < 0 or game.objects[state.held] != thing:
        return f"You are not carrying {thing[:60]!r}."
    if index < 0:
        return problem
    if verb in ("move", "put"):
        if not accessible(game, state, index):
            return f"The {other} is closed."
        return f"The {thing} does not belong into the {other}."
    stations = {"clean": game.washers, "heat": game.microwaves, "cool": game.fridges}[verb]
    if not stations >> index & 1:
        return f"To {verb} something, use {_STATION_NAMES[verb]}."
    able = {"clean": game.cleanable, "heat": game.heatable, "cool": game.coolable}[verb]
    return f"The {other} is closed." if able >> state.held & 1 else f"The {thing} cannot be treated so ({verb})."


def _take(game: Game, state: State, rules: Rules, thing: str, other: str, index: int, problem: str) -> str:
    if index < 0:
        return problem
    if state.held >= 0:
        return f"Your hands are full: you are carrying {game.objects[state.held]}."
    if not accessible(game, state, index):
        return f"The {other} is closed."
    item = game.object_index.get(thing, -1)
    if item < 0 or item not in state.contents[index]:
        return f"There is no {thing[:60]!r} on or in the {other}."
    if game.pickupable >> item & 1 and not rules.quirks.dead_ends:
        return f"The {thing} fits nowhere else in this room, so it is left where it is."
    return f"The {thing} cannot be picked up."
