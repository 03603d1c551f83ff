"""Which hand a task id stands for, and which ids a split holds.

Ids: ``deal/123`` (the framework's deal from seed 123), ``uniform-12/train/7``, ``solvable-24/test/7``, and
``cards/H5-S7`` for named cards. Everything needed to deal the hand again is in the id.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import combinations_with_replacement
from pathlib import Path

import numpy as np

from seed_envs.arguments import check_choice
from seed_envs.errors import NoTaskMatches, UnboundedSplit, UnknownOption, UnknownSplit, UnknownTask, close_matches
from seed_envs.tasks import Manifest
from seed_envs.vision.ezpoints.hands import (
    HANDS,
    SUITS,
    Card,
    Hand,
    all_pairs,
    deal_classic,
    deal_four,
    deal_uniform,
    parse_hand,
    values_of,
    winning_pairs,
)
from seed_envs.vision.ezpoints.rules import Puzzle
from seed_envs.vision.ezpoints.solver import solve

SPLITS = ("train", "validation", "test", "all")
PANEL_SIZE = 256
MANIFESTS = Path(__file__).parent / "manifests"
_DEAL_RANGES = {"train": (0, 2**16 - 1), "validation": (2**16, 2**31), "test": (2**31, 2**32 - 1)}
"""Seeds by split, upper end excluded, as the frameworks use them."""
_MAX_NUMBER = 2**31
_NUMBERED = re.compile(r"(uniform|solvable)-(\d{1,5})/(train|validation|test)/(0|[1-9]\d{0,9})")
_SEEDED = re.compile(r"deal/(0|[1-9]\d{0,9})")


def id_of_hand(hand: Hand) -> str:
    """The id that names these cards."""
    return "cards/" + "-".join(card.name for card in hand)


def split_of(values: tuple[int, ...]) -> str:
    """The Points24 split that a set of card values belongs to (about 80, 10 and 10 %)."""
    first = hashlib.sha256(",".join(map(str, values)).encode()).digest()[0]
    return "train" if first < 204 else "validation" if first < 230 else "test"


def _rng(*key: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(list(key))))


class HandSource:
    """The tasks of one card game.

    EZPoints has only seven hands (of values), so its splits differ in deals, suits and order, never in hands. The hands
    of Points24 are split by their values.
    """

    def __init__(self, puzzle: Puzzle, hands: str) -> None:
        """Takes the game and how its hands are dealt.

        Args:
            puzzle: The game.
            hands: ``"classic"`` (the framework's deal, two cards and target 12 only) or ``"uniform"``.

        Raises:
            UnknownOption: For another name, or a target that no hand reaches.
        """
        self.puzzle = puzzle
        check_choice("hands", hands, HANDS)
        if type(puzzle.target) is not int or puzzle.target < 0:
            raise UnknownOption(f"target={puzzle.target!r}; expected a whole number of at least 0")
        if puzzle.cards == 2 and not winning_pairs(puzzle.target):
            raise UnknownOption(f"target={puzzle.target}: no two cards reach it by + or *")
        if puzzle.cards == 4 and not any(map(self._has_hands, SPLITS)):
            raise UnknownOption(f"target={puzzle.target}: no four cards reach it")
        self._classic = puzzle.cards == 2 and hands == "classic"
        if self._classic and puzzle.target != 12:
            raise UnknownOption(f"hands='classic' deals for target 12 only; use hands='uniform' for {puzzle.target}")
        self.name = "deal" if self._classic else f"{'uniform' if puzzle.cards == 2 else 'solvable'}-{puzzle.target}"

    def task_ids(self, split: str) -> Sequence[str]:
        """The ids of a finite split.

        Raises:
            UnboundedSplit: For ``train``.
            UnknownSplit: For another name.
            NoTaskMatches: If no hand of the split reaches the target.
        """
        if split not in SPLITS:
            raise UnknownSplit(f"split {split!r} is unknown; there are {list(SPLITS)}.{close_matches(split, SPLITS)}")
        if split == "train":
            raise UnboundedSplit(f"{self.name}/train is procedural; draw its hands with reset(seed=...), or use 'all'")
        if split == "all":
            hands = all_pairs(self.puzzle.target) if self.puzzle.cards == 2 else all_quadruples(self.puzzle.target)
            return [id_of_hand(hand) for hand in hands]
        if self._classic:
            first = _DEAL_RANGES[split][0]
            ids = [f"deal/{first + number}" for number in range(PANEL_SIZE)]
        else:
            self._require_hands(split)
            ids = [f"{self.name}/{split}/{number}" for number in range(PANEL_SIZE)]
        path = MANIFESTS / f"{self.name}-{split}.txt"
        return (
            Manifest.load(path) if path.is_file() else Manifest(f"{self.puzzle.name}/{self.name}/{split}", tuple(ids))
        )

    def choose(self, rng: np.random.Generator, split: str) -> str:
        """Draws a task id of a split.

        Raises:
            NoTaskMatches: If no hand of the split reaches the target.
        """
        if split != "train":
            ids = self.task_ids(split)
            return ids[int(rng.integers(len(ids)))]
        if self._classic:
            return f"deal/{int(rng.integers(*_DEAL_RANGES['train']))}"
        self._require_hands(split)
        return f"{self.name}/train/{int(rng.integers(_MAX_NUMBER))}"

    def load(self, task_id: str) -> Hand:
        """Deals the hand of an id.

        Raises:
            UnknownTask: If the id is not one of this game, or names cards that cannot win.
            NoTaskMatches: If no hand of the id's split reaches the target.
        """
        if task_id.startswith("cards/"):
            return self._named(task_id)
        seeded = _SEEDED.fullmatch(task_id) if (self.puzzle.cards, self.puzzle.target) == (2, 12) else None
        if seeded and int(seeded[1]) < 2**32 - 1:
            return deal_classic(int(seeded[1]))
        match = _NUMBERED.fullmatch(task_id)
        kind = "uniform" if self.puzzle.cards == 2 else "solvable"
        if match is None or match[1] != kind or int(match[2]) != self.puzzle.target or int(match[4]) >= _MAX_NUMBER:
            example = f"{self.name}/0" if self._classic else f"{self.name}/test/0"
            raise UnknownTask(f"task {task_id!r} is unknown; ids look like {example!r} or {self._example()!r}")
        return self._numbered(match[3], int(match[4]))

    def _has_hands(self, split: str) -> bool:
        """Whether some hand of a split reaches the target; the hands of two cards are not split."""
        return self.puzzle.cards == 2 or _solvable_in(split, self.puzzle.target)

    def _require_hands(self, split: str) -> None:
        if not self._has_hands(split):
            known = [name for name in SPLITS if self._has_hands(name)]
            raise NoTaskMatches(f"no hand of split {split!r} reaches {self.puzzle.target}; take one of {known}")

    def _example(self) -> str:
        return "cards/H5-S7" if self.puzzle.cards == 2 else "cards/H5-S7-D2-CK"

    def _numbered(self, split: str, number: int) -> Hand:
        self._require_hands(split)
        puzzle = self.puzzle
        rng = _rng(puzzle.cards, puzzle.target, SPLITS.index(split), number)
        if puzzle.cards == 2:
            return deal_uniform(rng, puzzle.target)
        while split_of(values_of(hand := deal_four(rng, puzzle.target))) != split:
            pass
        return hand

    def _named(self, task_id: str) -> Hand:
        puzzle = self.puzzle
        hand = parse_hand(task_id.removeprefix("cards/"), puzzle.cards)
        if hand is None:
            raise UnknownTask(f"task {task_id!r}: expected {puzzle.cards} cards, as in {self._example()!r}")
        values = values_of(hand)
        solvable = values in winning_pairs(puzzle.target) if puzzle.cards == 2 else bool(solve(values, puzzle.target))
        if not solvable:
            raise UnknownTask(
                f"task {task_id!r}: no formula of {', '.join(map(str, values))} has the value {puzzle.target}"
            )
        return hand


_FOUR_VALUES = tuple(combinations_with_replacement(range(1, 11), 4))


@lru_cache(maxsize=64)
def _solvable_in(split: str, target: int) -> bool:
    """Whether a set of four values in a split reaches ``target``."""
    return any(split in ("all", split_of(values)) and solve(values, target) for values in _FOUR_VALUES)


@lru_cache(maxsize=16)
def value_sets(target: int) -> tuple[tuple[int, ...], ...]:
    """All sets of four card values (ascending, repeats allowed) from which ``target`` can be made."""
    return tuple(values for values in _FOUR_VALUES if solve(values, target))


def all_quadruples(target: int) -> list[Hand]:
    """One hand for every solvable set of four values, with suits taken in turn."""
    return [
        tuple(Card(value, SUITS[(index + place) % 4]) for place, value in enumerate(values))
        for index, values in enumerate(value_sets(target))
    ]


def hand_hash(load: Callable[[str], Hand], ids: Sequence[str]) -> str:
    """SHA-256 over the hands behind some ids: equal hash, equal cards."""
    return hashlib.sha256("".join(f"{id_of_hand(load(task_id))}\n" for task_id in ids).encode()).hexdigest()
