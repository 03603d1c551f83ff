"""The board: the table, the cards and the lines with the current formula, as an RGB array.

Cards in one row are laid out as gym_cards does at 300 pixels, scaled; two rows show four cards larger. 308 pixels are
11 x 11 tokens of Qwen2.5-VL without resampling.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from seed_envs.vision.ezpoints.cards import TABLE, card_picture
from seed_envs.vision.ezpoints.hands import Hand

SIZES = (308, 300)
_BASE = 300
_TEXT_LEFT = 10


class Layout(NamedTuple):
    """Where things stand, at 300 pixels.

    Attributes:
        card: Width and height of a card.
        places: The (x, y) of every card.
        font: Height of the letters.
        lines: (text, y, height) of every line of text; ``{}`` stands for the formula.
    """

    card: tuple[int, int]
    places: tuple[tuple[int, int], ...]
    font: int
    lines: tuple[tuple[str, int, int], ...]


_WIDE = (("Formula: {}", 254, 40),)
_LAYOUTS = {
    (2, 1): Layout((135, 189), ((5, 55), (153, 55)), 20, _WIDE),
    (4, 1): Layout(
        (67, 93), ((5, 103), (78, 103), (152, 103), (226, 103)), 16, (("Formula:", 208, 20), ("{}", 238, 20))
    ),
    (4, 2): Layout((86, 120), ((56, 4), (158, 4), (56, 130), (158, 130)), 20, _WIDE),
}
"""By number of cards and of rows; two cards always lie side by side."""


@lru_cache(maxsize=1024)
def _line(text: str, width: int, height: int, size: int) -> NDArray[np.uint8]:
    """A line of text, white on the table colour; text too long for one line shrinks."""
    from PIL import Image, ImageDraw, ImageFont

    image = Image.new("RGB", (width, height), TABLE)
    draw = ImageDraw.Draw(image)
    font = ImageFont.load_default(size)
    while draw.textlength(text, font=font) > width and size > 8:
        size -= 1
        font = ImageFont.load_default(size)
    draw.text((0, height // 2), text, font=font, fill="white", anchor="lm")
    return np.asarray(image)


@lru_cache(maxsize=4)
def _table(size: int) -> NDArray[np.uint8]:
    """The empty table."""
    return np.full((size, size, 3), TABLE, np.uint8)


class Board:
    """The picture of one hand; only the lines of text change.

    Attributes:
        pixels: RGB array of shape (size, size, 3), drawn over at every update.
    """

    def __init__(self, hand: Hand, size: int, rows: int = 1) -> None:
        """Draws table and cards.

        Args:
            hand: Two or four cards.
            size: Side of the picture in pixels.
            rows: Rows in which four cards lie.
        """
        self._size = size
        self.pixels = _table(size).copy()
        self._layout = _LAYOUTS[len(hand), rows if len(hand) == 4 else 1]
        width, height = map(self._scaled, self._layout.card)
        for card, (x, y) in zip(hand, self._layout.places, strict=True):
            left, top = self._scaled(x), self._scaled(y)
            self.pixels[top : top + height, left : left + width] = card_picture(card, width, height)
        self._left, self._font = self._scaled(_TEXT_LEFT), self._scaled(self._layout.font)
        self.update("")

    def _scaled(self, length: int) -> int:
        return round(length * self._size / _BASE)

    def update(self, formula: str) -> None:
        """Writes the formula.

        Args:
            formula: Tokens joined by blanks.
        """
        width = self._size - 2 * self._left
        for text, y, tall in self._layout.lines:
            top, height = self._scaled(y), self._scaled(tall)
            line = _line(text.format(formula), width, height, self._font)
            self.pixels[top : top + height, self._left : self._left + width] = line


def card_sheet(width: int = 108, height: int = 151) -> NDArray[np.uint8]:
    """All 52 cards, one suit per row, for looking at."""
    from seed_envs.vision.ezpoints.hands import SUITS, Card

    rows = [
        np.concatenate([card_picture(Card(rank, suit), width, height) for rank in range(1, 14)], axis=1)
        for suit in SUITS
    ]
    return np.concatenate(rows)
