"""Sokoban positions as pictures, drawn with Pillow primitives; no image files and no fonts.

The art: a brick wall, a plain sand-coloured floor, a red ring as target, a brown wooden crate with a cross, the same
crate in green once it stands on a target, and a small blue figure. With the default tile of 28 pixels one tile is
exactly one token of Qwen2.5-VL.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from seed_envs.vision.sokoban.levels import TARGET
from seed_envs.vision.sokoban.rules import Game
from seed_envs.vision.sokoban.text import visible_cells

if TYPE_CHECKING:
    from PIL.ImageDraw import ImageDraw

TILE_SIZES = (16, 28, 32, 64)
_OVERSAMPLING = 8
_FLOOR, _SEAM = (236, 226, 203), (216, 203, 174)
_MORTAR, _BRICK, _BRICK_LIGHT = (92, 84, 80), (150, 82, 66), (172, 100, 82)
_RING, _BLUE, _SKIN, _INK = (206, 52, 48), (44, 92, 190), (244, 200, 160), (30, 34, 48)
_WOOD, _WOOD_EDGE = (190, 132, 62), (116, 72, 26)
_GREEN, _GREEN_EDGE = (92, 170, 84), (36, 98, 44)


class _Pen:
    """Draws shapes given in fractions of the tile."""

    def __init__(self, draw: ImageDraw, size: int) -> None:
        self._draw, self._size = draw, size

    def _scale(self, *fractions: float) -> list[int]:
        return [round(fraction * self._size) for fraction in fractions]

    def box(self, left: float, top: float, right: float, bottom: float, colour: tuple[int, int, int]) -> None:
        self._draw.rectangle(self._scale(left, top, right, bottom), fill=colour)

    def disc(self, x: float, y: float, radius: float, colour: tuple[int, int, int]) -> None:
        self._draw.ellipse(self._scale(x - radius, y - radius, x + radius, y + radius), fill=colour)

    def stroke(self, points: tuple[float, ...], thickness: float, colour: tuple[int, int, int]) -> None:
        self._draw.line(self._scale(*points), fill=colour, width=max(1, round(thickness * self._size)))


def _wall(pen: _Pen) -> None:
    pen.box(0, 0, 1, 1, _MORTAR)
    for row in range(4):
        top = row / 4 + 0.02
        for start in (0.0, 0.5) if row % 2 else (-0.25, 0.25, 0.75):
            left, right = max(start + 0.02, 0), min(start + 0.48, 1)
            pen.box(left, top, right, top + 0.21, _BRICK)
            pen.box(left, top, right, top + 0.05, _BRICK_LIGHT)


def _floor(pen: _Pen) -> None:
    pen.box(0, 0, 1, 1, _SEAM)
    pen.box(0.02, 0.02, 0.98, 0.98, _FLOOR)


def _target(pen: _Pen) -> None:
    _floor(pen)
    pen.disc(0.5, 0.5, 0.34, _RING)
    pen.disc(0.5, 0.5, 0.21, _FLOOR)


def _crate(pen: _Pen, wood: tuple[int, int, int], edge: tuple[int, int, int]) -> None:
    _floor(pen)
    pen.box(0.08, 0.08, 0.92, 0.92, edge)
    pen.box(0.17, 0.17, 0.83, 0.83, wood)
    pen.stroke((0.18, 0.18, 0.82, 0.82), 0.11, edge)
    pen.stroke((0.18, 0.82, 0.82, 0.18), 0.11, edge)


def _figure(pen: _Pen) -> None:
    pen.box(0.34, 0.74, 0.46, 0.94, _INK)
    pen.box(0.54, 0.74, 0.66, 0.94, _INK)
    pen.stroke((0.30, 0.50, 0.18, 0.68), 0.10, _BLUE)
    pen.stroke((0.70, 0.50, 0.82, 0.68), 0.10, _BLUE)
    pen.box(0.30, 0.44, 0.70, 0.78, _BLUE)
    pen.disc(0.5, 0.27, 0.20, _SKIN)
    pen.box(0.29, 0.07, 0.71, 0.18, _BLUE)
    pen.disc(0.43, 0.28, 0.035, _INK)
    pen.disc(0.57, 0.28, 0.035, _INK)


def _draw_code(pen: _Pen, code: int) -> None:
    """Draws the tile of one cell code (order of :mod:`levels`)."""
    if code == 0:
        _wall(pen)
    elif code == 1:
        _floor(pen)
    elif code == 2:
        _target(pen)
    elif code == 3:
        _crate(pen, _GREEN, _GREEN_EDGE)
    elif code == 4:
        _crate(pen, _WOOD, _WOOD_EDGE)
    else:
        (_target if code == 6 else _floor)(pen)
        _figure(pen)


@lru_cache(maxsize=8)
def tile_atlas(tile: int) -> NDArray[np.uint8]:
    """The seven tiles, indexed by cell code.

    Args:
        tile: Side of a tile in pixels.

    Returns:
        Read-only array of shape (7, tile, tile, 3).
    """
    from PIL import Image, ImageDraw

    atlas = np.empty((7, tile, tile, 3), np.uint8)
    large = tile * _OVERSAMPLING
    for code in range(7):
        image = Image.new("RGB", (large, large))
        _draw_code(_Pen(ImageDraw.Draw(image), large), code)
        atlas[code] = np.asarray(image.resize((tile, tile), Image.Resampling.BOX))
    atlas.setflags(write=False)
    return atlas


def frame(cells: bytes | bytearray, height: int, width: int, tile: int) -> NDArray[np.uint8]:
    """Draws a whole room.

    Args:
        cells: Visible cell codes (see :func:`seed_envs.vision.sokoban.text.visible_cells`).
        height: Rows.
        width: Columns.
        tile: Side of a tile in pixels.

    Returns:
        RGB array of shape (height * tile, width * tile, 3).
    """
    codes = np.frombuffer(cells, np.uint8).reshape(height, width)
    return tile_atlas(tile)[codes].swapaxes(1, 2).reshape(height * tile, width * tile, 3)


class Canvas:
    """A picture of one running game that redraws only the tiles a step changed."""

    def __init__(self, game: Game, tile: int) -> None:
        """Draws the room once.

        Args:
            game: The game to follow.
            tile: Side of a tile in pixels.
        """
        level = game.level
        self._game, self._tile, self._width, self._fixed = game, tile, level.width, level.fixed
        self._tiles = list(tile_atlas(tile))
        self.pixels = frame(visible_cells(game), level.height, level.width, tile)

    def _paint(self, cell: int, code: int) -> None:
        tile = self._tile
        top, left = cell // self._width * tile, cell % self._width * tile
        self.pixels[top : top + tile, left : left + tile] = self._tiles[code]

    def update(self, before: int) -> None:
        """Follows one step of the game.

        Args:
            before: The player's cell before the step.
        """
        game = self._game
        player = game.player
        if player == before:
            return
        self._paint(before, self._fixed[before])
        self._paint(player, 6 if self._fixed[player] == TARGET else 5)
        if game.moved_box >= 0:
            pushed = 2 * player - before
            self._paint(pushed, game.room[pushed])
