"""The exact sentences of the game.

Pure functions from a game and a state to text.  Nothing here changes a state
or decides whether a command is allowed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from seed_envs.alfworld.game import Game, State
from seed_envs.alfworld.quirks import Quirks

Opening = Literal["full", "room", "start"]
NOTHING_HAPPENS: Final = "Nothing happens."
BANNER: Final = "-= Welcome to TextWorld, ALFRED! =-"
MIDDLE: Final = "You are in the middle of a room. Looking quickly around you, you see"
HELP: Final = """Available commands:
  look:                             look around your current location
  inventory:                        check your current inventory
  go to (receptacle):               move to a receptacle
  open (receptacle):                open a receptacle
  close (receptacle):               close a receptacle
  take (object) from (receptacle):  take an object from a receptacle
  move (object) to (receptacle):  place an object in or on a receptacle
  examine (something):              examine a receptacle or an object
  use (object):                     use an object
  heat (object) with (receptacle):  heat an object using a receptacle
  clean (object) with (receptacle): clean an object using a receptacle
  cool (object) with (receptacle):  cool an object using a receptacle
  slice (object) with (object):     slice an object using a sharp object
"""
TERSE_TEXTS: Final = ("go to, take, clean it with, move it to, use at.", "not in. search. search each place then take.")
"""Texts that hold every word of a terse skill beside the names of things."""


def listing(items: Sequence[str]) -> str:
    """Join ready items the way every list of the game is joined.

    Args:
        items: for example ``["a mug 1", "a pen 2"]``.

    Returns:
        ``nothing``, the single item, or a list whose last item follows ``, and`` even when there are two.
    """
    if not items:
        return "nothing"
    if len(items) == 1:
        return items[0]
    return f"{', '.join(items[:-1])}, and {items[-1]}"


def with_article(names: Sequence[str], indices: Sequence[int]) -> list[str]:
    """Items of a list: the article is always "a".

    Args:
        names: all names by index.
        indices: which to list, in order.

    Returns:
        ``["a mug 1", …]``.
    """
    return ["a " + names[index] for index in indices]


def receptacle_text(game: Game, state: State, receptacle: int) -> str:
    """What arriving at, opening or examining a receptacle tells.

    Args:
        game: the game.
        state: the current state.
        receptacle: index of the receptacle.

    Returns:
        One or two sentences.
    """
    name = game.receptacles[receptacle]
    if not game.openable >> receptacle & 1:
        start = f"On the {name}, you see "
    elif state.opened >> receptacle & 1:
        start = f"The {name} is open. In it, you see "
    else:
        return f"The {name} is closed."
    inside, phrases = state.contents[receptacle], game.phrases
    if not inside:
        return start + "nothing."
    if len(inside) == 1:
        return f"{start}{phrases[inside[0]]}."
    return f"{start}{', '.join([phrases[item] for item in inside[:-1]])}, and {phrases[inside[-1]]}."


def object_text(game: Game, state: State, item: int, quirks: Quirks) -> str:
    """What examining an object tells.

    Args:
        game: the game.
        state: the current state.
        item: index of the object.
        quirks: the switches.

    Returns:
        One or two sentences.
    """
    name = game.objects[item]
    if game.vessels >> item & 1:
        held_inside = [inner for inner, outer in state.inner if outer == item != inner]
        inside = f"In it, you see {listing(with_article(game.objects, held_inside))}."
        if quirks.frozen_vessels:
            return f"This is a normal {name}. {inside}"
        words = condition_words(state, item)
        return f"This is a {words or 'normal'} {name}. {inside}"
    words = condition_words(state, item)
    if words and words != "sliced":
        return f"This is a {words} {name}."
    # The grammar asks for the switch before the slices. Nothing is ever told to be off: the original records that a
    # fact does not hold only when a command ended it, and no command switches off.
    if game.toggleable >> item & 1 and state.toggled >> item & 1:
        return f"This {name} is on."
    if words and game.sliceable >> item & 1:
        return f"This is a {words} {name}."
    return f"There's nothing special about {name}."


def condition_words(state: State, item: int) -> str:
    """The adjectives of an object's condition in the original's order of precedence.

    Args:
        state: the current state.
        item: index of the object.

    Returns:
        Such as ``hot and clean sliced``, ``cold``, or "" for an ordinary object.
    """
    clean, hot, cool = state.clean >> item & 1, state.hot >> item & 1, state.cool >> item & 1
    if state.sliced >> item & 1:
        if hot:
            return "hot and clean sliced" if clean else "hot sliced"
        if cool:
            return "cool and clean sliced" if clean else "cool sliced"
        return "clean sliced" if clean else "sliced"
    if hot:
        return "hot and clean" if clean else "hot"
    if cool:
        return "cool and clean" if clean else "cold"
    return "clean" if clean else ""


def look_text(game: Game, state: State, quirks: Quirks) -> str:
    """What ``look`` tells.

    Args:
        game: the game.
        state: the current state.
        quirks: the switches.

    Returns:
        One or two sentences.
    """
    here = game.at_place[state.place]
    if not here:
        seen = "nothing" if quirks.silent_middle else listing(with_article(game.receptacles, range(len(game.places))))
        return f"{MIDDLE} {seen}."
    floor: list[str] = []
    if quirks.floor_echo and state.removed:
        for item in state.nearby[state.place]:
            floor += ["a " + game.objects[item] for receptacle in here if (item, receptacle) in state.removed]
    facing = listing([game.receptacles[receptacle] for receptacle in here])
    return f"You are facing the {facing}. Next to it, you see {listing(floor)}."


def inventory_text(game: Game, state: State) -> str:
    """What ``inventory`` tells.

    Args:
        game: the game.
        state: the current state.

    Returns:
        One sentence.
    """
    if state.held < 0:
        return "You are not carrying anything."
    return f"You are carrying: a {game.objects[state.held]}."


def opening_text(game: Game) -> str:
    """The first observation of an episode.

    Args:
        game: the game.

    Returns:
        Banner, view of the room, goal line, separated by blank lines.
    """
    here = game.at_place[game.start.place]
    if here:
        facing = listing([game.receptacles[receptacle] for receptacle in here])
        view = f"You are facing the {facing}. Next to it, you see nothing."
    else:
        view = f"{MIDDLE} {listing(with_article(game.receptacles, range(len(game.places))))}."
    return f"{BANNER}\n\n{view}\n\n{game.sentence}"


def opening_part(text: str, opening: Opening) -> str:
    """Cut the opening text down.

    Args:
        text: banner, view of the room and goal line, separated by blank lines.
        opening: ``full`` (all of it), ``room`` (the view of the room), ``start`` (the first sentence of that view).

    Returns:
        The part.
    """
    if opening == "full":
        return text
    room = text.split("\n\n")[1]
    return room if opening == "room" else room.split(". ", 1)[0] + "."
