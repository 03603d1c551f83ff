"""Where levels come from, part 2: Boxoban folders, ``.xsb`` files, pool files and the packs shipped with the package.

Ids: ``boxoban/unfiltered/test/000/17``, ``my_levels/3``, ``pack-6x6-b1/3`` (file name without extension, index). The
files of a source are read when first needed and kept; no path ever comes from an action.
"""

from __future__ import annotations

import bisect
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from seed_envs.data import data_dir
from seed_envs.data_card import GENERATED, DataSource, counted
from seed_envs.errors import DataInvalid, NoTaskMatches, UnknownTask, close_matches
from seed_envs.hashing import content_hash, file_hash
from seed_envs.vision.sokoban.astar import PushSearch
from seed_envs.vision.sokoban.generator import split_of
from seed_envs.vision.sokoban.levels import WALL, Level
from seed_envs.vision.sokoban.oracle import Oracle
from seed_envs.vision.sokoban.pools import Pool
from seed_envs.vision.sokoban.solver import box_bits
from seed_envs.vision.sokoban.sources import SPLITS, check_split, turns_for
from seed_envs.vision.sokoban.xsb import (
    BOXOBAN_VARIABLE,
    MAX_FILE_BYTES,
    boxoban_files,
    load_boxoban,
    load_levels,
)

PACKS = Path(__file__).parent / "packs"
FILE_TURNS = 400
"""Turns for level files, whose shortest solutions are not known: the longest of 300 Boxoban solutions by A* has 230."""
LONGEST = {"pack-6x6-b1": 15, "pack-6x6-b2": 27, "pack-8x8-b2": 43}
"""Longest of the shortest solutions in each pack shipped with the package."""
BOXOBAN_SIDE = 10
_INDEX = re.compile(r"0|[1-9]\d{0,6}")
SEARCHED_POSITIONS = 50_000
"""Positions looked at, in all, to find levels of a file that cannot be solved; enough for about 500 easy ones."""


def load_checked(path: Path) -> list[Level]:
    """Reads a level file and warns of the levels in it that are known to have no solution."""
    levels = load_levels(path)
    warn_of_dead_levels(levels, path.name)
    return levels


def warn_of_dead_levels(levels: Sequence[Level], name: str) -> None:
    """Warns of levels without a solution: deadlocked ones, and those that a bounded search proves unsolvable.

    Args:
        levels: The levels of a file.
        name: What the warning calls it.
    """
    left, dead = SEARCHED_POSITIONS, []
    for index, level in enumerate(levels):
        search, boxes = PushSearch(level.height, level.width, level.fixed), box_bits(level.boxes)
        if search.certainly_dead(boxes):
            dead.append(f"{index} (deadlocked)")
        elif left > 0:
            outcome = search.solve(level.player, boxes, min(left, 1_000), None)
            left -= max(outcome.states, 1)
            if outcome.status == "unsolvable":
                dead.append(f"{index} (unsolvable)")
    if dead:
        shown = ", ".join(dead[:10]) + (", …" if len(dead) > 10 else "")
        warnings.warn(f"{name}: {len(dead)} of {len(levels)} levels have no solution: {shown}", stacklevel=2)


@lru_cache(maxsize=32)
def _load_boxoban(root: Path, name: str) -> list[Level]:
    levels = load_boxoban(root, name)
    warn_of_dead_levels(levels, f"{name}.txt")
    return levels


class NumberedIds(Sequence[str]):
    """The ids ``prefix/0 ... prefix/n-1`` of several files, one after the other, made when looked at."""

    def __init__(self, counts: dict[str, int]) -> None:
        """Takes the number of levels by prefix."""
        self._counts = counts
        self._prefixes = list(counts)
        self._ends = list(accumulate(counts.values()))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[position] for position in range(*index.indices(len(self)))]
        position = index + len(self) if index < 0 else index
        if not 0 <= position < len(self):
            raise IndexError(f"{index} of {len(self)} levels")
        file = bisect.bisect_right(self._ends, position)
        return f"{self._prefixes[file]}/{position - (self._ends[file - 1] if file else 0)}"

    def __iter__(self) -> Iterator[str]:
        return (self[index] for index in range(len(self)))

    def __contains__(self, value: object) -> bool:
        prefix, _, index = value.rpartition("/") if isinstance(value, str) else ("", "", "")
        return bool(_INDEX.fullmatch(index)) and int(index) < self._counts.get(prefix, 0)


def draw(rng: np.random.Generator, ids: Sequence[str], split: str) -> str:
    """Draws one id.

    Raises:
        NoTaskMatches: If the split is empty.
    """
    if not ids:
        raise NoTaskMatches(f"these level files have no level in split {split!r}; try split='all'")
    return ids[int(rng.integers(len(ids)))]


class BoxobanSource:
    """A folder of Boxoban level files; ``train``, ``valid`` and ``test`` in a file's path decide its split.

    Files without such a word (Boxoban's *hard* set) count as test. ``all`` is every file.
    """

    splits: tuple[str, ...] = (*SPLITS, "all")
    height = width = BOXOBAN_SIDE
    turn_limit = FILE_TURNS

    def __init__(self, folder: str | Path | None = None) -> None:
        """Takes a folder; None looks at ``$SEED_BOXOBAN_DIR`` and the other places data may be.

        Raises:
            DataMissing: If there is no such folder, or no level file in it.
        """
        command = "git clone https://github.com/google-deepmind/boxoban-levels"
        self.root = data_dir("boxoban", folder, BOXOBAN_VARIABLE, command)
        self.names = boxoban_files(self.root)
        self.default_split = "train" if any(self._split_of(name) == "train" for name in self.names) else "all"
        self._ids: dict[str, NumberedIds] = {}

    @staticmethod
    def _split_of(name: str) -> str:
        return "train" if "train" in name else "validation" if "valid" in name else "test"

    def _count(self, name: str) -> int:
        path = self.root / f"{name}.txt"
        if path.stat().st_size > MAX_FILE_BYTES:
            raise DataInvalid(f"{path}: {path.stat().st_size} bytes; at most {MAX_FILE_BYTES} are read")
        count = sum(1 for line in path.read_bytes().splitlines() if line.startswith(b";"))
        if not count:
            raise DataInvalid(f"{path}: holds no level; in Boxoban files a line that begins with ';' is above each")
        return count

    def task_ids(self, split: str) -> Sequence[str]:
        """The ids of a split, file by file."""
        check_split(split, self.splits)
        if split not in self._ids:
            chosen = [name for name in self.names if split in ("all", self._split_of(name))]
            self._ids[split] = NumberedIds({f"boxoban/{name}": self._count(name) for name in chosen})
        return self._ids[split]

    def belongs(self, task_id: str, split: str) -> bool:
        """Whether an id is listed in a split."""
        return task_id in self.task_ids(split)

    @cached_property
    def data(self) -> DataSource:
        """The folder, with one hash over names and contents of its level files."""
        lines = (f"{name} {file_hash(self.root / f'{name}.txt')}\n".encode() for name in self.names)
        found = sum(1 for path in self.root.rglob("*.txt") if path.is_file())
        skipped = counted({"text file without levels": found - len(self.names)})
        return DataSource("own", ((self.root.name, content_hash(lines)),), "", skipped)

    def choose(self, rng: np.random.Generator, split: str) -> str:
        """Draws a level of the split."""
        return draw(rng, self.task_ids(split), split)

    def load(self, task_id: str) -> Oracle:
        """Reads the file of the id (kept in memory) and picks the level."""
        prefix, _, index = task_id.rpartition("/")
        name = prefix.removeprefix("boxoban/")
        if name == prefix or name not in self.names or not _INDEX.fullmatch(index):
            known = [f"boxoban/{known}/0" for known in self.names[:1000]]
            raise UnknownTask(f"task {task_id!r} is unknown below {self.root}.{close_matches(task_id, known)}")
        levels = _load_boxoban(self.root, name)
        if int(index) >= len(levels):
            raise UnknownTask(f"task {task_id!r}: {name} holds the levels 0 to {len(levels) - 1}")
        level = levels[int(index)]
        if (level.height, level.width) != (BOXOBAN_SIDE, BOXOBAN_SIDE):
            raise DataInvalid(f"{task_id}: {level.height}x{level.width}; Boxoban levels are 10x10")
        return Oracle.of(level)


class FileSource:
    """The levels of one file: ``.xsb`` and other text maps, or ``.pool``.

    The splits follow the room's identity up to symmetry, exactly as for generated levels; ``all`` is the whole file.
    Smaller rooms of a file with several sizes are padded with walls at the right and at the bottom.
    """

    splits: tuple[str, ...] = (*SPLITS, "all")

    def __init__(self, path: str | Path, default_split: str = "all") -> None:
        """Reads the file.

        Args:
            path: The file.
            default_split: The split to draw from when none is named.

        Raises:
            DataMissing, DataInvalid: If there is no such file or it is faulty.
        """
        file = Path(path)
        reader: Callable[[Path], Sequence[Level]] = Pool.load if file.suffix == ".pool" else load_checked
        self._levels = reader(file)
        shipped = file.parent == PACKS
        self.turn_limit = turns_for(LONGEST[file.stem]) if shipped else FILE_TURNS
        self.data = GENERATED if shipped else DataSource("own", ((file.name, file_hash(file)),))
        self.name, self.default_split = file.stem, default_split
        self.height = max(level.height for level in self._levels)
        self.width = max(level.width for level in self._levels)
        self._ids: dict[str, list[str]] | None = None

    def task_ids(self, split: str) -> Sequence[str]:
        """The ids of a split in file order."""
        check_split(split, self.splits)
        if split == "all":
            return NumberedIds({self.name: len(self._levels)})
        if self._ids is None:
            self._ids = {name: [] for name in SPLITS}
            for index, level in enumerate(self._levels):
                self._ids[split_of(level.height, level.width, level.fixed)].append(f"{self.name}/{index}")
        return self._ids[split]

    def belongs(self, task_id: str, split: str) -> bool:
        """Whether an id is listed in a split."""
        return task_id in self.task_ids(split)

    def choose(self, rng: np.random.Generator, split: str) -> str:
        """Draws a level of the split."""
        return draw(rng, self.task_ids(split), split)

    def load(self, task_id: str) -> Oracle:
        """Picks a level by its index in the file."""
        prefix, _, index = task_id.rpartition("/")
        if prefix != self.name or not _INDEX.fullmatch(index) or int(index) >= len(self._levels):
            raise UnknownTask(
                f"task {task_id!r} is unknown; this file has {self.name}/0 to {self.name}/{len(self._levels) - 1}"
            )
        return Oracle.of(pad(self._levels[int(index)], self.height, self.width))


def pad(level: Level, height: int, width: int) -> Level:
    """Adds walls at the right and at the bottom until the level has the given size."""
    if (level.height, level.width) == (height, width):
        return level

    def moved(cell: int) -> int:
        return cell // level.width * width + cell % level.width

    fixed = bytearray([WALL]) * (height * width)
    for cell, code in enumerate(level.fixed):
        fixed[moved(cell)] = code
    return Level(height, width, bytes(fixed), tuple(moved(box) for box in level.boxes), moved(level.player))


def pack_names() -> list[str]:
    """Names of the level packs shipped with the package."""
    return sorted(path.stem for path in PACKS.glob("*.pool"))
