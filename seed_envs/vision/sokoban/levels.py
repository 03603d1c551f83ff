"""A Sokoban level: an immutable starting position, its validation, and its identity under the eight symmetries.

Cells are numbered row by row, ``cell = row * width + column``. This module knows nothing about moving or drawing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter

from seed_envs.errors import DataInvalid

WALL, FLOOR, TARGET, BOX_ON_TARGET, BOX, PLAYER, PLAYER_ON_TARGET = range(7)
"""Cell codes of gym-sokoban. ``PLAYER_ON_TARGET`` is used for drawing and text only."""

MAX_SIDE = 64
MAX_BOXES = 64


@dataclass(frozen=True, slots=True)
class Level:
    """A starting position.

    Attributes:
        height: Number of rows, the border included.
        width: Number of columns, the border included.
        fixed: One byte per cell: ``WALL``, ``FLOOR`` or ``TARGET``.
        boxes: Cells of the boxes, ascending.
        player: Cell of the player.
    """

    height: int
    width: int
    fixed: bytes
    boxes: tuple[int, ...]
    player: int

    @property
    def targets(self) -> tuple[int, ...]:
        """Cells of the targets, ascending."""
        return tuple(cell for cell, code in enumerate(self.fixed) if code == TARGET)

    def room(self) -> bytearray:
        """Returns the cell codes with boxes and player (as code 5) drawn in."""
        room = bytearray(self.fixed)
        for box in self.boxes:
            room[box] = BOX_ON_TARGET if self.fixed[box] == TARGET else BOX
        room[self.player] = PLAYER
        return room

    def validate(self, where: str = "level") -> Level:
        """Checks that the level is closed, consistent and within the size caps.

        Args:
            where: How error messages name the level.

        Returns:
            The level itself.

        Raises:
            DataInvalid: If a rule is broken; the message says which.
        """
        height, width, fixed = self.height, self.width, self.fixed
        if not (3 <= height <= MAX_SIDE and 3 <= width <= MAX_SIDE):
            raise DataInvalid(f"{where}: size {height}x{width} is outside 3x3 to {MAX_SIDE}x{MAX_SIDE}")
        if len(fixed) != height * width or any(code > TARGET for code in fixed):
            raise DataInvalid(f"{where}: expected {height * width} cells of wall, floor or target")
        if not (1 <= len(self.boxes) <= MAX_BOXES):
            raise DataInvalid(f"{where}: expected 1 to {MAX_BOXES} boxes, found {len(self.boxes)}")
        if fixed.count(TARGET) != len(self.boxes):
            raise DataInvalid(f"{where}: {len(self.boxes)} boxes but {fixed.count(TARGET)} targets")
        if list(self.boxes) != sorted(set(self.boxes)):
            raise DataInvalid(f"{where}: boxes must be distinct cells in ascending order, found {self.boxes}")
        border = (*range(width), *range((height - 1) * width, height * width))
        sides = (*range(0, height * width, width), *range(width - 1, height * width, width))
        if any(fixed[cell] != WALL for cell in (*border, *sides)):
            raise DataInvalid(f"{where}: the room is open; the whole border must be wall")
        if any(not 0 <= cell < len(fixed) or fixed[cell] == WALL for cell in (*self.boxes, self.player)):
            raise DataInvalid(f"{where}: a box or the player stands inside a wall")
        if self.player in self.boxes:
            raise DataInvalid(f"{where}: the player stands on a box")
        return self

    def unsolved(self, where: str = "level") -> Level:
        """Returns the level itself.

        Raises:
            DataInvalid: If every box already stands on a target: such a level is no task.
        """
        if all(self.fixed[box] == TARGET for box in self.boxes):
            raise DataInvalid(f"{where}: nothing to do, every box already stands on a target")
        return self


@lru_cache(maxsize=64)
def _symmetries(height: int, width: int) -> tuple[tuple[bytes, Callable[[bytes], tuple[int, ...]]], ...]:
    """The eight (shape, permuting function) pairs of a ``height`` x ``width`` grid."""
    grid = [[row * width + column for column in range(width)] for row in range(height)]
    found = []
    for turn in range(4):
        for image in (grid, [row[::-1] for row in grid]):
            shape = bytes((width, height) if turn % 2 else (height, width))
            found.append((shape, itemgetter(*(cell for row in image for cell in row))))
        grid = [list(column) for column in zip(*grid[::-1], strict=True)]
    return tuple(found)


def canonical_bytes(height: int, width: int, cells: bytes) -> bytes:
    """Returns one representative of ``cells`` that all eight rotations and reflections share."""
    return min([shape + bytes(permuted(cells)) for shape, permuted in _symmetries(height, width)])


def level_hash(level: Level) -> str:
    """Identity of a level (walls, targets, boxes and player) up to symmetry: 16 hexadecimal digits."""
    cells = level.room()
    cells[level.player] = PLAYER_ON_TARGET if level.fixed[level.player] == TARGET else PLAYER
    return hashlib.sha256(canonical_bytes(level.height, level.width, bytes(cells))).hexdigest()[:16]


def room_digest(height: int, width: int, fixed: bytes) -> bytes:
    """Identity of an empty room (walls and targets only) up to symmetry, as 32 bytes.

    Splits are decided by this digest, so that levels which differ only in where boxes and player start never fall into
    different splits.
    """
    return hashlib.sha256(canonical_bytes(height, width, fixed)).digest()
