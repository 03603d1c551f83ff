"""A small integer generator (SplitMix64) seeded by text: the same numbers on every platform and Python version.

Used for generated data that is identified by checksums; everything random at run time uses Gymnasium's generators.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")
_MASK = (1 << 64) - 1


class Stream:
    """A stream of integers.

    Args:
        *key: What the stream is for; equal keys give equal streams.
    """

    def __init__(self, *key: object) -> None:
        text = "\n".join(str(part) for part in key)
        self._state = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")

    def next(self) -> int:
        """64 random bits."""
        self._state = (self._state + 0x9E3779B97F4A7C15) & _MASK
        value = self._state
        value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
        return value ^ (value >> 31)

    def below(self, limit: int) -> int:
        """A number from 0 to limit - 1."""
        return (self.next() >> 11) * limit >> 53

    def choice(self, values: Sequence[T]) -> T:
        """One of the values."""
        return values[self.below(len(values))]
