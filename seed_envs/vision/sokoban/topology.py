"""Room shapes by a random walk that opens small masks, as gym-sokoban does it.

Two versions draw from different generators: :func:`walk_classic` keeps the exact draw order of the framework generator,
:func:`walk` takes all its numbers from one block of a NumPy generator, which is faster and equally distributed over
shapes. Neither places targets, boxes or the player.
"""

from __future__ import annotations

import random
from functools import lru_cache

import numpy as np

TURN_PROBABILITY = 0.35
_STEPS = ((1, 0), (0, 1), (-1, 0), (0, -1))
_MASKS = (
    ((0, -1), (0, 0), (0, 1)),
    ((-1, 0), (0, 0), (1, 0)),
    ((0, -1), (0, 0), (1, 0)),
    ((0, -1), (0, 0), (1, -1), (1, 0)),
    ((0, 0), (0, 1), (1, 0)),
)
"""Cells opened around the walker, as (row, column) offsets."""


def walk_length(height: int, width: int) -> int:
    """Default number of steps of the walk: ``int(1.7 * (height + width))``."""
    return int(1.7 * (height + width))


@lru_cache(maxsize=64)
def _opened(height: int, width: int) -> tuple[tuple[tuple[int, ...], ...], ...]:
    """``[cell][mask]`` -> the inner cells that the mask opens when the walker stands on ``cell``."""
    table = []
    for cell in range(height * width):
        row, column = divmod(cell, width)
        table.append(
            tuple(
                tuple(
                    (row + down) * width + column + right
                    for down, right in mask
                    if 0 < row + down < height - 1 and 0 < column + right < width - 1
                )
                for mask in _MASKS
            )
        )
    return tuple(table)


def walk_classic(rng: random.Random, height: int, width: int, steps: int) -> bytearray:
    """Draws a room shape in the draw order of the framework generator.

    Args:
        rng: A private ``random.Random``.
        height: Rows.
        width: Columns.
        steps: Length of the walk.

    Returns:
        One byte per cell, 0 wall and 1 floor; the border is wall.
    """
    opened = _opened(height, width)
    room = bytearray(height * width)
    down, right = _STEPS[rng.sample(range(4), 1)[0]]
    row, column = rng.randint(1, height - 1), rng.randint(1, width - 1)
    for _ in range(steps):
        if rng.random() < TURN_PROBABILITY:
            down, right = _STEPS[rng.sample(range(4), 1)[0]]
        row = max(min(row + down, height - 2), 1)
        column = max(min(column + right, width - 2), 1)
        for cell in opened[row * width + column][rng.sample(range(5), 1)[0]]:
            room[cell] = 1
    return room


def walk(rng: np.random.Generator, height: int, width: int, steps: int) -> bytearray:
    """Draws a room shape with the same walk from one block of uniform numbers.

    Args:
        rng: Source of randomness; exactly ``3 * steps + 3`` numbers are drawn from it.
        height: Rows.
        width: Columns.
        steps: Length of the walk.

    Returns:
        One byte per cell, 0 wall and 1 floor; the border is wall.
    """
    opened = _opened(height, width)
    room = bytearray(height * width)
    draws = rng.random(3 * steps + 3).tolist()
    down, right = _STEPS[int(draws[0] * 4)]
    row, column = 1 + int(draws[1] * (height - 1)), 1 + int(draws[2] * (width - 1))
    last_row, last_column = height - 2, width - 2
    for index in range(3, 3 * steps + 3, 3):
        if draws[index] < TURN_PROBABILITY:
            down, right = _STEPS[int(draws[index + 1] * 4)]
        row += down
        column += right
        row = 1 if row < 1 else last_row if row > last_row else row
        column = 1 if column < 1 else last_column if column > last_column else column
        for cell in opened[row * width + column][int(draws[index + 2] * 5)]:
            room[cell] = 1
    return room
