"""Where levels come from, part 1: procedural sources, whose task ids hold everything needed to make the level again.

Ids: ``retro-6x6-b1-s4-15/train/123`` (solved levels of :mod:`generator`) and ``classic-6x6-b1-d30/123`` (the framework
generator of :mod:`classic`). Levels in files: :mod:`files`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Protocol

import numpy as np

from seed_envs.data_card import GENERATED, DataSource
from seed_envs.errors import UnboundedSplit, UnknownOption, UnknownSplit, UnknownTask, close_matches
from seed_envs.hashing import content_hash
from seed_envs.tasks import Manifest
from seed_envs.vision.sokoban import classic
from seed_envs.vision.sokoban.generator import Difficulty, generate
from seed_envs.vision.sokoban.levels import level_hash
from seed_envs.vision.sokoban.oracle import Oracle

SPLITS: tuple[str, ...] = ("train", "validation", "test")
PANEL_SIZE = 256
"""Number of levels in the fixed validation and test panels of procedural sources."""
PANEL_TRIES = 16 * PANEL_SIZE
"""Numbers looked at for a retrograde panel; kinds with few distinct levels have smaller panels."""
MANIFESTS = Path(__file__).parent / "manifests"
_RETRO_DOMAIN = 0x50_4B
_PAPER_TURNS, _FRAMEWORK_TURNS = 15, 100
"""The papers' limit for rooms of 6x6 with one box, and the frameworks' for others, whose levels may need more."""
_MAX_NUMBER = 2**31
_CLASSIC_RANGES = {"train": (0, 2**16 - 1), "validation": (2**16, 2**31), "test": (2**31, 2**32 - 1)}
"""Seeds by split, upper end excluded: those the frameworks train on, and two halves of those they validate on."""


class LevelSource(Protocol):
    """A supply of levels.

    Attributes:
        splits: Names of its splits.
        default_split: The split to draw from when none is named.
        height: Rows of every level it loads.
        width: Columns of every level it loads.
        data: What the levels are made of.
        turn_limit: Turns that every level of the source can be solved in.
    """

    turn_limit: int
    splits: tuple[str, ...]
    default_split: str
    height: int
    width: int

    @property
    def data(self) -> DataSource:
        """What the levels are made of."""

    def belongs(self, task_id: str, split: str) -> bool:
        """Whether an id is one of a split's, on its list or not."""

    def task_ids(self, split: str) -> Sequence[str]:
        """The ids of a finite split in listed order; raises UnboundedSplit for one without a list."""

    def choose(self, rng: np.random.Generator, split: str) -> str:
        """Draws an id of a split."""

    def load(self, task_id: str) -> Oracle:
        """The level of an id, with what is known about it; raises UnknownTask."""


def turns_for(longest: int) -> int:
    """Turns for levels whose shortest solutions take up to ``longest`` steps: a third more."""
    return -(-4 * longest // 3)


def check_split(split: str, splits: Sequence[str]) -> None:
    """Raises UnknownSplit unless the split exists."""
    if split not in splits:
        raise UnknownSplit(
            f"split {split!r} is unknown; these levels have {list(splits)}.{close_matches(split, splits)}"
        )


def load_panel(name: str, make: Callable[[], Sequence[str]]) -> Manifest:
    """The checked-in manifest of that name, or one of the ids that ``make`` lists where none is shipped."""
    path = MANIFESTS / f"{name.replace('/', '-')}.txt"
    return Manifest.load(path) if path.is_file() else Manifest(f"sokoban/{name}", tuple(make()))


def panel_hash(source: LevelSource, ids: Sequence[str]) -> str:
    """SHA-256 over the identities of the levels behind some ids: equal hash, equal levels."""
    return content_hash(level_hash(source.load(task_id).level).encode() for task_id in ids)


class RetrogradeSource:
    """Solved levels of one difficulty, split by the room's identity up to symmetry.

    Attributes:
        kind: The difficulty.
        name: First part of the ids.
    """

    splits: tuple[str, ...] = SPLITS
    default_split = "train"
    data = GENERATED
    _PATTERN = re.compile(
        r"retro-(\d{1,3})x(\d{1,3})-b(\d)-s(\d{1,3})-(\d{1,3})/(train|validation|test)/(0|[1-9]\d{0,9})"
    )

    def __init__(self, kind: Difficulty) -> None:
        """Takes the kind of levels to make."""
        self.kind, self.height, self.width = kind, kind.height, kind.width
        self.turn_limit = turns_for(kind.max_steps)
        self.name = f"retro-{kind.height}x{kind.width}-b{kind.boxes}-s{kind.min_steps}-{kind.max_steps}"

    def task_ids(self, split: str) -> Sequence[str]:
        """The ids of the validation or test panel: 256 levels, no two equal up to symmetry.

        Raises:
            GenerationFailed: If no manifest is shipped for this kind and no such levels are found.
        """
        check_split(split, SPLITS)
        if split == "train":
            raise UnboundedSplit(f"{self.name}/train has {_MAX_NUMBER} levels; draw them with reset(seed=...)")
        return _retrograde_panel(self.kind, split)

    def belongs(self, task_id: str, split: str) -> bool:
        """Whether an id names a level of a split, in the panel or not."""
        match = self._PATTERN.fullmatch(task_id)
        return match is not None and match[6] == split

    def make_panel(self, split: str) -> list[str]:
        """Lists the first ids of a split whose levels differ, passing over every level already listed."""
        panel: dict[str, str] = {}
        for number in range(PANEL_TRIES):
            task_id = f"{self.name}/{split}/{number}"
            panel.setdefault(level_hash(self.load(task_id).level), task_id)
            if len(panel) == PANEL_SIZE:
                break
        return list(panel.values())

    def choose(self, rng: np.random.Generator, split: str) -> str:
        """Draws a number; of the panel for validation and test."""
        check_split(split, SPLITS)
        if split == "train":
            return f"{self.name}/train/{int(rng.integers(_MAX_NUMBER))}"
        panel = self.task_ids(split)
        return panel[int(rng.integers(len(panel)))]

    def load(self, task_id: str) -> Oracle:
        """Makes the level; the size must be this source's."""
        match = self._PATTERN.fullmatch(task_id)
        if match is None or int(match[7]) >= _MAX_NUMBER:
            raise UnknownTask(f"task {task_id!r} is unknown; these levels are called like '{self.name}/test/0'")
        height, width, boxes, low, high = (int(match[group]) for group in range(1, 6))
        if (height, width) != (self.height, self.width):
            raise UnknownTask(
                f"task {task_id!r} is {height}x{width}, this environment shows {self.height}x{self.width}"
            )
        try:
            kind = Difficulty(height, width, boxes, low, high)
        except ValueError as error:
            raise UnknownTask(f"task {task_id!r}: {error}") from error
        key = [_RETRO_DOMAIN, height, width, boxes, low, high, SPLITS.index(match[6]), int(match[7])]
        rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(key)))
        solved = generate(rng, kind, match[6])
        return Oracle(solved.level, solved.table)


@cache
def _retrograde_panel(kind: Difficulty, split: str) -> Manifest:
    """The panel of a kind; kept, because one that is not shipped has to be searched for."""
    source = RetrogradeSource(kind)
    return load_panel(f"{source.name}/{split}", lambda: source.make_panel(split))


class ClassicSource:
    """Levels of the framework generator; ids hold the framework's own seeds, so rooms can be compared one by one.

    Attributes:
        name: First part of the ids.
    """

    splits: tuple[str, ...] = SPLITS
    default_split = "train"
    data = GENERATED
    _PATTERN = re.compile(r"classic-(\d{1,2})x(\d{1,2})-b(\d)-d(\d{1,3})/(0|[1-9]\d{0,9})")

    def __init__(self, height: int, width: int, boxes: int, depth: int = classic.SEARCH_DEPTH) -> None:
        """Takes the framework's settings: size, boxes and search depth."""
        if min(height, width) < 4 or max(height, width) > 20 or not 1 <= boxes <= 5 or not 1 <= depth <= 300:
            raise UnknownOption(
                f"size {height}x{width}, boxes={boxes}, depth={depth}: the classic generator takes sides of 4 to 20, "
                "1 to 5 boxes and a depth of 1 to 300"
            )
        self.height, self.width = height, width
        self.turn_limit = _PAPER_TURNS if (height, width, boxes) == (6, 6, 1) else _FRAMEWORK_TURNS
        self.name = f"classic-{height}x{width}-b{boxes}-d{depth}"

    def task_ids(self, split: str) -> Sequence[str]:
        """The 256 smallest seeds of validation or test, as the frameworks have them: levels may repeat."""
        check_split(split, SPLITS)
        if split == "train":
            raise UnboundedSplit(f"{self.name} trains on the seeds 0 to {2**16 - 2}; draw them with reset(seed=...)")
        return load_panel(f"{self.name}/{split}", lambda: self.make_panel(split))

    def belongs(self, task_id: str, split: str) -> bool:
        """Whether the seed in an id is in a split's range."""
        match = self._PATTERN.fullmatch(task_id)
        low, high = _CLASSIC_RANGES[split]
        return match is not None and low <= int(match[5]) < high

    def make_panel(self, split: str) -> list[str]:
        """Lists the first ids of a split."""
        first = _CLASSIC_RANGES[split][0]
        return [f"{self.name}/{first + number}" for number in range(PANEL_SIZE)]

    def choose(self, rng: np.random.Generator, split: str) -> str:
        """Draws a seed of the split's range; of the panel for validation and test."""
        check_split(split, SPLITS)
        low, high = _CLASSIC_RANGES[split]
        return f"{self.name}/{int(rng.integers(low, high if split == 'train' else low + PANEL_SIZE))}"

    def load(self, task_id: str) -> Oracle:
        """Makes the level of the seed in the id."""
        match = self._PATTERN.fullmatch(task_id)
        if match is None or not task_id.startswith(f"{self.name}/") or int(match[5]) >= 2**32 - 1:
            raise UnknownTask(
                f"task {task_id!r} is unknown; these levels are called '{self.name}/<seed below 2**32 - 1>'"
            )
        height, width, boxes, depth, seed = (int(match[group]) for group in range(1, 6))
        return Oracle.of(classic.generate(seed, height, width, boxes, depth))
