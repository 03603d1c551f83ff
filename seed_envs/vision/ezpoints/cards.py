"""Playing cards drawn with Pillow primitives: rounded paper, corner ranks, pips, and framed letters for face cards.

Letters come from the font built into Pillow; no picture or font file is read. A card is drawn once per size and kept.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from seed_envs.vision.ezpoints.hands import Card

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageDraw import ImageDraw

Colour = tuple[int, int, int]
TABLE: Colour = (53, 101, 77)
"""Colour of the table, #35654d."""
_PAPER, _EDGE, _RED, _BLACK, _SHADE = (252, 251, 246), (150, 150, 146), (200, 28, 36), (24, 24, 28), (238, 232, 214)
_OVERSAMPLING = 4
_LEFT, _MIDDLE, _RIGHT = 0.33, 0.50, 0.67
_ROWS = {
    "top": 0.20,
    "third": 0.40,
    "upper": 0.30,
    "high": 0.35,
    "half": 0.50,
    "lower": 0.70,
    "fourth": 0.60,
    "low": 0.80,
}
_PIPS: dict[int, tuple[tuple[float, str], ...]] = {
    1: ((_MIDDLE, "half"),),
    2: ((_MIDDLE, "top"), (_MIDDLE, "low")),
    3: ((_MIDDLE, "top"), (_MIDDLE, "half"), (_MIDDLE, "low")),
}
_COLUMNS: dict[int, tuple[tuple[str, ...], tuple[str, ...]]] = {
    4: (("top", "low"), ()),
    5: (("top", "low"), ("half",)),
    6: (("top", "half", "low"), ()),
    7: (("top", "half", "low"), ("high",)),
    8: (("top", "half", "low"), ("high", "lower")),
    9: (("top", "third", "fourth", "low"), ("half",)),
    10: (("top", "third", "fourth", "low"), ("upper", "lower")),
}
"""Rows of the two outer columns, and rows of the middle column, for the ranks 4 to 10."""


def _pip_places(rank: int) -> list[tuple[float, float]]:
    """Centres of the pips as fractions of the card."""
    if rank in _PIPS:
        return [(x, _ROWS[row]) for x, row in _PIPS[rank]]
    outer, middle = _COLUMNS[rank]
    return [(x, _ROWS[row]) for row in outer for x in (_LEFT, _RIGHT)] + [(_MIDDLE, _ROWS[row]) for row in middle]


def _colour(suit: str) -> Colour:
    return _RED if suit in "HD" else _BLACK


def draw_suit(draw: ImageDraw, suit: str, x: float, y: float, size: float) -> None:
    """Draws a suit symbol.

    Args:
        draw: Where to draw.
        suit: One of ``H S D C``.
        x: Centre, in pixels.
        y: Centre, in pixels.
        size: Height of the symbol, in pixels.
    """
    colour, half = _colour(suit), size / 2

    def disc(dx: float, dy: float, radius: float) -> None:
        cx, cy, r = x + dx * half, y + dy * half, radius * half
        draw.ellipse((cx - r, cy - r, cx + r, cy + r), fill=colour)

    def polygon(*points: tuple[float, float]) -> None:
        draw.polygon([(x + dx * half, y + dy * half) for dx, dy in points], fill=colour)

    if suit == "D":
        polygon((0, -1), (0.72, 0), (0, 1), (-0.72, 0))
    elif suit == "H":
        disc(-0.44, -0.42, 0.48)
        disc(0.44, -0.42, 0.48)
        polygon((-0.86, -0.18), (0.86, -0.18), (0, 1))
        polygon((-0.5, -0.4), (0.5, -0.4), (0.8, -0.1), (-0.8, -0.1))
    elif suit == "S":
        disc(-0.44, 0.22, 0.46)
        disc(0.44, 0.22, 0.46)
        polygon((-0.85, 0.04), (0.85, 0.04), (0, -1))
        polygon((0, 0.2), (0.36, 1), (-0.36, 1))
    else:
        disc(0, -0.52, 0.44)
        disc(-0.5, 0.18, 0.44)
        disc(0.5, 0.18, 0.44)
        polygon((0, -0.2), (0.36, 1), (-0.36, 1))
        polygon((-0.4, -0.2), (0.4, -0.2), (0.3, 0.4), (-0.3, 0.4))


def _label(rank: int) -> str:
    return {1: "A", 11: "J", 12: "Q", 13: "K"}.get(rank, str(rank))


def _letters(draw: ImageDraw, text: str, x: float, y: float, height: float, colour: Colour) -> None:
    """Writes centred bold text."""
    from PIL import ImageFont

    font = ImageFont.load_default(height)
    draw.text(
        (x, y), text, font=font, fill=colour, anchor="mm", stroke_width=max(1, round(height / 26)), stroke_fill=colour
    )


def _corner(width: int, height: int, card: Card) -> Image:
    """A transparent layer with the rank and a small suit in the upper left corner."""
    from PIL import Image, ImageDraw

    layer = Image.new("RGBA", (width, height), (0, 0, 0, 0))
    draw = ImageDraw.Draw(layer)
    _letters(draw, _label(card.rank), width * 0.125, height * 0.085, height * 0.135, _colour(card.suit))
    draw_suit(draw, card.suit, width * 0.125, height * 0.19, height * 0.075)
    return layer


@lru_cache(maxsize=256)
def card_picture(card: Card, width: int, height: int) -> NDArray[np.uint8]:
    """Draws a card on the table colour.

    Args:
        card: The card.
        width: Pixels.
        height: Pixels.

    Returns:
        Read-only RGB array of shape (height, width, 3).
    """
    from PIL import Image, ImageDraw

    wide, high = width * _OVERSAMPLING, height * _OVERSAMPLING
    image = Image.new("RGB", (wide, high), TABLE)
    draw = ImageDraw.Draw(image)
    edge = max(2, wide // 90)
    draw.rounded_rectangle((0, 0, wide - 1, high - 1), radius=wide // 12, fill=_PAPER, outline=_EDGE, width=edge)
    if card.rank > 10:
        frame = (wide * 0.22, high * 0.15, wide * 0.78, high * 0.85)
        draw.rounded_rectangle(frame, radius=wide // 20, fill=_SHADE, outline=_colour(card.suit), width=edge)
        _letters(draw, _label(card.rank), wide * 0.5, high * 0.43, high * 0.36, _colour(card.suit))
        draw_suit(draw, card.suit, wide * 0.5, high * 0.72, high * 0.15)
    else:
        size = high * (0.3 if card.rank == 1 else 0.115)
        for x, y in _pip_places(card.rank):
            draw_suit(draw, card.suit, wide * x, high * y, size)
    corner = _corner(wide, high, card)
    for layer in (corner, corner.transpose(Image.Transpose.ROTATE_180)):
        image.paste(layer, (0, 0), layer)
    pixels = np.asarray(image.resize((width, height), Image.Resampling.BOX))
    pixels.setflags(write=False)
    return pixels
