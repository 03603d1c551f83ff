"""Pictures of an episode: a plain transcript, and a map of the room as one HTML page.

Pure functions.  The page is self-contained (no scripts, no network) and shows
everything, also behind closed doors: it is for people, not for agents.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from seed_envs.alfworld.engine import condition_rate, is_won
from seed_envs.alfworld.game import Game, State
from seed_envs.alfworld.texts import condition_words

_STYLE = """
:root{color-scheme:light}
body{font:15px/1.45 system-ui,-apple-system,"Segoe UI",sans-serif;margin:24px;background:#f4f5f2;color:#1c2430}
h1{font-size:20px;margin:0 0 4px}h2{font-size:14px;margin:22px 0 8px;color:#566}
.meta{color:#566;margin:0 0 14px}
.chips span{display:inline-block;border-radius:12px;padding:2px 10px;margin:0 6px 6px 0;background:#e3e6df;color:#445}
.chips .met{background:#1f7a4d;color:#fff}
.bar{height:8px;background:#dde1d8;border-radius:4px;max-width:420px;margin:4px 0 10px}
.bar i{display:block;height:8px;background:#1f7a4d;border-radius:4px}
.room{display:grid;grid-template-columns:repeat(auto-fill,minmax(190px,1fr));gap:10px}
.place{border:1px solid #d3d8ce;border-radius:8px;background:#fff;padding:8px 10px}
.place.here{border:2px solid #b4531a;padding:7px 9px}
.r{margin:0 0 6px}.r:last-child{margin:0}.r b{font-weight:600}.door{font-size:12px;color:#677;margin-left:5px}
.goal b{color:#1d4f91}.items{margin:2px 0 0 0;padding:0;list-style:none;font-size:13px;color:#334}
.items .want{color:#1d4f91;font-weight:600}.items .none{color:#6b7280}.hidden li{opacity:.75}
.items .ghost{text-decoration:line-through}
pre{background:#fff;border:1px solid #d3d8ce;border-radius:8px;padding:12px;white-space:pre-wrap;font-size:13px}
"""
_LEGEND = (
    "One box a place, outlined where the agent is; blue: what the goal names; "
    "struck out: still listed here, but in hand."
)


def transcript(turns: Sequence[tuple[str, str]]) -> str:
    """A readable transcript.

    Args:
        turns: (command, answer) pairs; the first has an empty command.

    Returns:
        Commands after ``>``, each followed by the game's answer; characters that cannot be shown are escaped.
    """
    said = (f"> {_shown(command)}\n{answer}" if number else answer for number, (command, answer) in enumerate(turns))
    return "\n\n".join(said)


def _shown(command: str) -> str:
    """A command as it may be printed: an agent can write control characters and broken Unicode."""
    return command if command.isprintable() else repr(command)[1:-1]


def room_page(game: Game, state: State, turns: Sequence[tuple[str, str]]) -> str:
    """The room as one HTML page: receptacles by place with contents, inventory, goal progress, transcript.

    Args:
        game: the game.
        state: the current state.
        turns: (command, answer) pairs.

    Returns:
        A complete HTML document.
    """
    rate, flags = condition_rate(game, state)
    chips = "".join(
        f'<span class="{"met" if met else ""}">{escape(name.replace("_", " "))}</span>' for name, met in flags.items()
    )
    held = _item(game, state, state.held, in_hand=True) if state.held >= 0 else '<li class="none">nothing</li>'
    inhabited = [place for place in range(len(game.place_names)) if game.at_place[place]]
    places = "".join(_place(game, state, place) for place in sorted(inhabited, key=lambda at: _name_key(game, at)))
    middle = "" if game.at_place[state.place] else " The agent stands in the middle of the room."
    outcome = "won" if is_won(game, state) else "not yet won"
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(game.game_id)}</title>'
        f"<style>{_STYLE}</style></head><body><h1>{escape(game.sentence)}</h1>"
        f'<p class="meta">{escape(game.game_id)} · {outcome} · {len(turns) - 1} commands.{middle}</p>'
        f'<div class="bar"><i style="width:{round(100 * rate)}%"></i></div><div class="chips">{chips}</div>'
        f'<h2>In hand</h2><ul class="items">{held}</ul><h2>Room</h2><p class="meta">{_LEGEND}</p>'
        f'<div class="room">{places}</div><h2>Transcript</h2><pre>{escape(transcript(turns))}</pre></body></html>'
    )


def _name_key(game: Game, place: int) -> list[tuple[str, int]]:
    """Sorts places by their receptacles' names, "drawer 2" before "drawer 10"."""
    names = [game.receptacles[receptacle].rpartition(" ") for receptacle in game.at_place[place]]
    return sorted((kind, int(number)) for kind, _, number in names)


def _place(game: Game, state: State, place: int) -> str:
    rows = "".join(_receptacle(game, state, receptacle) for receptacle in game.at_place[place])
    return f'<div class="place{" here" if place == state.place else ""}">{rows}</div>'


def _receptacle(game: Game, state: State, receptacle: int) -> str:
    door, hidden = "", ""
    if game.openable >> receptacle & 1:
        is_open = bool(state.opened >> receptacle & 1)
        door = f'<span class="door">{"open" if is_open else "closed"}</span>'
        hidden = "" if is_open else " hidden"
    goal = " goal" if receptacle in game.destinations else ""
    items = "".join(_item(game, state, item) for item in state.contents[receptacle]) or '<li class="none">nothing</li>'
    name = escape(game.receptacles[receptacle])
    return f'<div class="r{goal}"><b>{name}</b>{door}<ul class="items{hidden}">{items}</ul></div>'


def _item(game: Game, state: State, item: int, *, in_hand: bool = False) -> str:
    words = condition_words(state, item)
    if state.toggled >> item & 1:
        words = f"{words} on".strip()
    marks = ["want"] * ((game.targets | game.lamps) >> item & 1) + ["ghost"] * (item == state.held and not in_hand)
    kind = f' class="{" ".join(marks)}"' if marks else ""
    return f"<li{kind}>{escape(game.objects[item])}{f' ({words})' if words else ''}</li>"
