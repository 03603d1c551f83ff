"""Sokoban positions as text: symbol grids, coordinates, and a one-sentence caption. Levels in files: :mod:`xsb`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from seed_envs.vision.sokoban.levels import (
    BOX,
    BOX_ON_TARGET,
    FLOOR,
    PLAYER,
    PLAYER_ON_TARGET,
    TARGET,
    WALL,
)
from seed_envs.vision.sokoban.rules import Game

GRID_SYMBOLS = "#_O√XPS"
"""Symbols of the framework grids by cell code; see the environment's page for their meaning."""
XSB_SYMBOLS = "# .*$@+"


def visible_cells(game: Game) -> bytearray:
    """Cell codes as a viewer sees them: a player standing on a target is ``PLAYER_ON_TARGET``."""
    cells = bytearray(game.room)
    if game.level.fixed[game.player] == TARGET:
        cells[game.player] = PLAYER_ON_TARGET
    return cells


def tab_grid(game: Game) -> str:
    """The grid of RAGEN and verl-agent: per cell a blank, the symbol, a blank and a tab."""
    return _grid(game, GRID_SYMBOLS, lambda row: "".join(f" {symbol} \t" for symbol in row))


def plain_grid(game: Game) -> str:
    """Symbols joined by single blanks."""
    return _grid(game, GRID_SYMBOLS, " ".join)


def xsb_grid(game: Game) -> str:
    """The map in XSB symbols, exactly as wide as the room."""
    return _grid(game, XSB_SYMBOLS, "".join)


def _grid(game: Game, symbols: str, join: Callable[[str], str]) -> str:
    width = game.level.width
    text = visible_cells(game).decode("latin-1").translate(symbols)
    return "\n".join([join(text[start : start + width]) for start in range(0, len(text), width)])


def coordinates(game: Game) -> str:
    """Everything by (row, column), counted from 1 at the top left, one kind of thing per line."""
    cells = visible_cells(game)

    def places(*codes: int) -> str:
        return _places([cell for cell, code in enumerate(cells) if code in codes], game.level.width)

    return "\n".join(
        (
            f"Room: {game.level.height} rows, {game.level.width} columns",
            f"Player: {places(PLAYER, PLAYER_ON_TARGET)}",
            f"Boxes off target: {places(BOX)}",
            f"Boxes on target: {places(BOX_ON_TARGET)}",
            f"Targets without a box: {places(TARGET, PLAYER_ON_TARGET)}",
            f"Floor: {places(FLOOR)}",
            f"Walls inside: {_places(_inner_walls(game), game.level.width)}",
        )
    )


def _inner_walls(game: Game) -> list[int]:
    height, width = game.level.height, game.level.width
    inside = (row * width + column for row in range(1, height - 1) for column in range(1, width - 1))
    return [cell for cell in inside if game.level.fixed[cell] == WALL]


def _places(cells: Sequence[int], width: int) -> str:
    return ", ".join(f"({cell // width + 1}, {cell % width + 1})" for cell in cells) or "none"


def caption(game: Game) -> str:
    """One sentence that locates player, boxes and targets, without walls."""
    width, cells = game.level.width, visible_cells(game)
    boxes = _places([cell for cell, code in enumerate(cells) if code in (BOX, BOX_ON_TARGET)], width)
    targets = _places(game.level.targets, width)
    return (
        f"In this room of {game.level.height} by {width} cells the player stands at {_places([game.player], width)}, "
        f"boxes at {boxes}, targets at {targets} (row, column from the top left)."
    )


TEXT_FORMATS: dict[str, Callable[[Game], str]] = {
    "tab": tab_grid,
    "plain": plain_grid,
    "xsb": xsb_grid,
    "coordinates": coordinates,
    "caption": caption,
}
"""Text formats by name; every function maps a game to its text."""
