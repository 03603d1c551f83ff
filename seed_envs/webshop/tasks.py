"""Task ids and splits: goal ids in the shuffled order, cut into named, disjoint splits.

``ASIN/n`` is the n-th goal of a product before the shuffle, so an id means the same in every process and mode.
"""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import SupportsIndex

from seed_envs.errors import UnknownSplit, UnknownTask, close_matches
from seed_envs.tasks import Manifest
from seed_envs.webshop.catalogue import Product
from seed_envs.webshop.combined import combined
from seed_envs.webshop.goals import Goal

#: Below this number of goals the fixed ranges would leave no training set; shares are used instead.
SMALL_CATALOGUE = 4000
_EVAL_SHARE = 10


def _original_bounds(count: int) -> tuple[int, int]:
    """Where the eval range starts and ends."""
    return (500, 1500) if count >= SMALL_CATALOGUE else (max(count // 10, 1), max(3 * count // 10, 2))


def _verl_bound(count: int) -> int:
    return 500 if count >= SMALL_CATALOGUE else max(count // 10, 1)


def product_part(asin: str) -> str:
    """The part of the ``product`` scheme a product belongs to: 10 % test, 10 % eval, the rest train.

    >>> product_part("ZA00000001")
    'train'
    """
    bucket = int.from_bytes(hashlib.sha256(asin.encode()).digest()[:4], "big") % _EVAL_SHARE
    return {0: "test", 1: "eval"}.get(bucket, "train")


def _by_product(part: str) -> Callable[[Sequence[Goal]], Sequence[Goal]]:
    return lambda goals: [goal for goal in goals if product_part(goal.product.asin) == part]


#: Split that also looks at the products, and the split that its goals are chosen from.
COMBINED, _COMBINED_FROM = "combined", "test"
#: Split name to selection. ``train``/``eval``/``test`` are the original's ranges, ``verl-*`` those of verl-agent,
#: ``product-*`` never share a product.
SPLITS: dict[str, Callable[[Sequence[Goal]], Sequence[Goal]]] = {
    "train": lambda goals: goals[_original_bounds(len(goals))[1] :],
    "eval": lambda goals: goals[slice(*_original_bounds(len(goals)))],
    "test": lambda goals: goals[: _original_bounds(len(goals))[0]],
    "verl-train": lambda goals: goals[_verl_bound(len(goals)) :],
    "verl-test": lambda goals: goals[: _verl_bound(len(goals))],
    "product-train": _by_product("train"),
    "product-eval": _by_product("eval"),
    "product-test": _by_product("test"),
    "all": lambda goals: goals,
}

SCHEMES: dict[str, tuple[str, ...]] = {
    "original": ("train", "eval", "test"),
    "verl": ("verl-train", "verl-test"),
    "product": ("product-train", "product-eval", "product-test"),
}


class TaskTable:
    """Goals by id and splits by name, for one goal list.

    Args:
        goals: The shuffled goals.
        products: The catalogue, for the panel ``combined``.
    """

    def __init__(self, goals: Sequence[Goal], products: Sequence[Product] = ()) -> None:
        self._goals = goals
        self._products = products
        self._manifests: dict[str, Manifest] = {}
        self._weighted: dict[str, tuple[float, ...]] = {}

    @cached_property
    def _by_id(self) -> dict[str, Goal]:
        return {goal.task_id: goal for goal in self._goals}

    def goal(self, task_id: object) -> Goal:
        """The goal of an id.

        Raises:
            UnknownTask: With close matches.
        """
        found = self._by_id.get(task_id) if isinstance(task_id, str) else None
        if found is None:
            self.manifest("all").check(task_id)
            raise UnknownTask(f"task {task_id!r} is not in this catalogue")
        return found

    def at(self, index: object) -> Goal:
        """The goal at a position of the shuffled list.

        Raises:
            UnknownTask: If the position does not exist.
        """
        position = operator.index(index) if isinstance(index, SupportsIndex) and not isinstance(index, bool) else -1
        if not 0 <= position < len(self._goals):
            raise UnknownTask(f"goal {index!r} does not exist; expected an integer from 0 to {len(self._goals) - 1}")
        return self._goals[position]

    def _select(self, split: str) -> Sequence[Goal]:
        if split == COMBINED:
            return self._combined
        if split not in SPLITS:
            known = [*SPLITS, COMBINED]
            raise UnknownSplit(f"split {split!r} is unknown; expected one of {known}.{close_matches(split, known)}")
        return SPLITS[split](self._goals)

    @cached_property
    def _combined(self) -> Sequence[Goal]:
        return combined(self._select(_COMBINED_FROM), self._products)

    def manifest(self, split: str) -> Manifest:
        """The ids of a split in listed order.

        Raises:
            UnknownSplit: With close matches.
        """
        if split not in self._manifests:
            ids = tuple(goal.task_id for goal in self._select(split))
            self._manifests[split] = Manifest(f"webshop/{split}", ids)
        return self._manifests[split]

    def weights(self, split: str) -> tuple[float, ...]:
        """Cumulative sampling weights of a split's goals, in listed order."""
        if split not in self._weighted:
            total, cumulative = 0.0, []
            for goal in self._select(split):
                total += goal.weight
                cumulative.append(total)
            self._weighted[split] = tuple(cumulative)
        return self._weighted[split]
