"""Random draws whose meaning does not change between library versions.

Built on ``numpy``'s PCG64 stream of doubles only, so that a task id names the
same game on every machine.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

T = TypeVar("T")


class Draw:
    """A private random stream named by a text.

    Args:
        name: anything that identifies the stream, such as a task id.
    """

    def __init__(self, name: str) -> None:
        entropy = int.from_bytes(hashlib.sha256(name.encode()).digest()[:16], "big")
        self._generator = np.random.Generator(np.random.PCG64(np.random.SeedSequence(entropy)))
        self._buffer: list[float] = []

    def unit(self) -> float:
        """A number in [0, 1)."""
        if not self._buffer:
            self._buffer = self._generator.random(64).tolist()
        return self._buffer.pop()

    def below(self, bound: int) -> int:
        """A whole number from 0 to ``bound - 1``."""
        return int(self.unit() * bound)

    def choice(self, items: Sequence[T]) -> T:
        """One of the items, all equally likely."""
        return items[self.below(len(items))]

    def weighted(self, items: Sequence[T], weights: Sequence[float]) -> T:
        """One of the items, with probabilities proportional to the weights."""
        mark = self.unit() * sum(weights)
        for item, weight in zip(items, weights, strict=True):
            mark -= weight
            if mark < 0:
                return item
        return items[-1]

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """A new list in random order."""
        order = list(items)
        for last in range(len(order) - 1, 0, -1):
            other = self.below(last + 1)
            order[last], order[other] = order[other], order[last]
        return order
