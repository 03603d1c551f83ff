"""Solved levels of known difficulty: a random room, all its solvable positions, one of them as the start.

Because every position of the room is searched backwards from the solution (:mod:`solver`), a level's optimal length is
known exactly and can be asked for. Room shapes come from :mod:`topology`; rooms too large for a table from
:mod:`xsb` files instead.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from seed_envs.errors import SeedEnvsError, UnknownOption
from seed_envs.vision.sokoban.levels import TARGET, Level, level_hash, room_digest
from seed_envs.vision.sokoban.solver import StateBudgetExceeded, StateTable, box_cells
from seed_envs.vision.sokoban.topology import walk, walk_length

MAX_ATTEMPTS = 50_000
MAX_TOO_LARGE = 30
MAX_REPEATS = 2_000
MAX_TABLE_CELLS = 144
MAX_STEPS = 999
"""Greatest optimal length that can be asked for."""
SPLIT_SHARES = (("train", 0, 204), ("validation", 204, 230), ("test", 230, 256))
"""Rooms belong to the split whose range holds the first byte of their digest (about 80, 10 and 10 %)."""


class GenerationFailed(SeedEnvsError, ValueError):
    """No room of the wanted kind was found; the message names the settings."""


@dataclass(frozen=True, slots=True)
class Difficulty:
    """What kind of level to make.

    Attributes:
        height: Rows, the border included.
        width: Columns, the border included.
        boxes: Number of boxes.
        min_steps: Smallest optimal length.
        max_steps: Greatest optimal length.
    """

    height: int = 6
    width: int = 6
    boxes: int = 1
    min_steps: int = 4
    max_steps: int = 15

    def __post_init__(self) -> None:
        for name in ("height", "width", "boxes", "min_steps", "max_steps"):
            if type(value := getattr(self, name)) is not int:
                raise UnknownOption(f"{name}={value!r}: expected a whole number")
        if min(self.height, self.width) < 4 or self.height * self.width > MAX_TABLE_CELLS:
            raise UnknownOption(
                f"size {self.height}x{self.width}: generated rooms have sides of at least 4 and at most "
                f"{MAX_TABLE_CELLS} cells; use a level file for larger rooms"
            )
        if not 1 <= self.boxes <= 4:
            raise UnknownOption(f"boxes={self.boxes}: generated rooms have 1 to 4 boxes")
        if not 1 <= self.min_steps <= self.max_steps <= MAX_STEPS:
            raise UnknownOption(
                f"expected 1 <= min_steps <= max_steps <= {MAX_STEPS}, got {self.min_steps} and {self.max_steps}"
            )


@dataclass(frozen=True, slots=True)
class SolvedLevel:
    """A level with everything known about its room.

    Attributes:
        level: The level.
        table: Distances of all positions of the room.
        optimal_steps: Fewest steps that solve the level.
    """

    level: Level
    table: StateTable
    optimal_steps: int


def split_of(height: int, width: int, fixed: bytes) -> str:
    """The split that a room (walls and targets, up to symmetry) belongs to."""
    first = room_digest(height, width, fixed)[0]
    return next(name for name, low, high in SPLIT_SHARES if low <= first < high)


def place_targets(rng: np.random.Generator, room: bytearray, boxes: int) -> bool:
    """Turns ``boxes`` floor cells of ``room`` into targets; False if there is too little floor."""
    free = [cell for cell, code in enumerate(room) if code]
    if len(free) <= boxes + 1:
        return False
    for draw in rng.random(boxes).tolist():
        room[free.pop(int(draw * len(free)))] = TARGET
    return True


def generate(rng: np.random.Generator, kind: Difficulty, split: str | None = None) -> SolvedLevel:
    """Draws one level.

    Args:
        rng: Source of all randomness.
        kind: Size, boxes and optimal length wanted.
        split: Only rooms of this split; None takes any.

    Raises:
        GenerationFailed: If ``MAX_ATTEMPTS`` rooms held no such level, or ``MAX_TOO_LARGE`` of them had more
            positions than are searched.
    """
    height, width = kind.height, kind.width
    steps, too_large = walk_length(height, width), 0
    for _ in range(MAX_ATTEMPTS):
        room = walk(rng, height, width, steps)
        if not place_targets(rng, room, kind.boxes):
            continue
        fixed = bytes(room)
        if split is not None and split_of(height, width, fixed) != split:
            continue
        try:
            table = StateTable(height, width, fixed)
        except StateBudgetExceeded as error:
            too_large += 1
            if too_large == MAX_TOO_LARGE:
                raise GenerationFailed(
                    f"{height}x{width} rooms with {kind.boxes} boxes have {error}; take a smaller size, fewer boxes, "
                    "or levels from files (levels='boxoban')"
                ) from error
            continue
        starts = table.starts(kind.min_steps, kind.max_steps)
        if not starts:
            continue
        player, boxes = starts[int(rng.random() * len(starts))]
        level = Level(height, width, fixed, box_cells(boxes), player)
        return SolvedLevel(level, table, table.distance_of[player, boxes])
    raise GenerationFailed(
        f"none of {MAX_ATTEMPTS} rooms of {height}x{width}"
        + (f" in split {split!r}" if split else "")
        + " has a level "
        f"with boxes={kind.boxes} and an optimal length of {kind.min_steps} to {kind.max_steps}; widen min_steps and "
        "max_steps, or change size or boxes"
    )


def generate_distinct(rng: np.random.Generator, kind: Difficulty, count: int) -> list[Level]:
    """Draws levels, no two equal up to rotation and reflection.

    Args:
        rng: Source of all randomness.
        kind: Size, boxes and optimal length wanted.
        count: Number of levels.

    Raises:
        GenerationFailed: If ``MAX_REPEATS`` draws in a row gave no new level, because the kind has too few.
    """
    levels: dict[str, Level] = {}
    repeats = 0
    while len(levels) < count:
        level = generate(rng, kind).level
        repeats = repeats + 1 if levels.setdefault(level_hash(level), level) is not level else 0
        if repeats == MAX_REPEATS:
            raise GenerationFailed(f"found {len(levels)} distinct levels of {kind}, not {count}; ask for fewer")
    return list(levels.values())
