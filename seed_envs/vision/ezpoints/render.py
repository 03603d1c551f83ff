"""The board: the table, the cards and the line with the current formula, as an RGB array.

The layout is that of gym_cards for 300 pixels, scaled; 308 pixels are 11 x 11 tokens of Qwen2.5-VL without resampling.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from seed_envs.vision.ezpoints.cards import TABLE, card_picture
from seed_envs.vision.ezpoints.hands import Hand

SIZES = (308, 300)
_BASE = 300
_TEXT_LEFT, _TEXT_TOP, _TEXT_SIZE, _TEXT_HEIGHT = 10, 254, 20, 40
_LAYOUTS: dict[int, tuple[tuple[int, int], tuple[tuple[int, int], ...]]] = {
    2: ((135, 189), ((5, 55), (153, 55))),
    4: ((86, 120), ((56, 4), (158, 4), (56, 130), (158, 130))),
}
"""By number of cards: (width, height) of a card and the (x, y) of each, at 300 pixels."""


@lru_cache(maxsize=1024)
def _line(text: str, width: int, height: int, size: int) -> NDArray[np.uint8]:
    """The formula line, white on the table colour; text too long for one line shrinks."""
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
    """The picture of one hand; only the formula line changes.

    Attributes:
        pixels: RGB array of shape (size, size, 3), drawn over at every update.
    """

    def __init__(self, hand: Hand, size: int) -> None:
        """Draws table and cards.

        Args:
            hand: Two or four cards.
            size: Side of the picture in pixels.
        """
        self._size = size
        self.pixels = _table(size).copy()
        (width, height), places = _LAYOUTS[len(hand)]
        width, height = self._scaled(width), self._scaled(height)
        for card, (x, y) in zip(hand, places, strict=True):
            left, top = self._scaled(x), self._scaled(y)
            self.pixels[top : top + height, left : left + width] = card_picture(card, width, height)
        self._left, self._top, self._height = map(self._scaled, (_TEXT_LEFT, _TEXT_TOP, _TEXT_HEIGHT))
        self.update("")

    def _scaled(self, length: int) -> int:
        return round(length * self._size / _BASE)

    def update(self, formula: str) -> None:
        """Writes the formula.

        Args:
            formula: Tokens joined by blanks.
        """
        width = self._size - 2 * self._left
        line = _line(f"Formula: {formula}", width, self._height, self._scaled(_TEXT_SIZE))
        self.pixels[self._top : self._top + self._height, self._left : self._left + width] = line


def card_sheet(width: int = 108, height: int = 151) -> NDArray[np.uint8]:
    """All 52 cards, one suit per row, for looking at."""
    from seed_envs.vision.ezpoints.hands import SUITS, Card

    rows = [
        np.concatenate([card_picture(Card(rank, suit), width, height) for rank in range(1, 14)], axis=1)
        for suit in SUITS
    ]
    return np.concatenate(rows)
