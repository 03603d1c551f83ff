"""A sorted list of terms as bytes and offsets, searched by bisection: opens without reading, needs no dictionary."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


class Vocabulary:
    """Terms sorted by UTF-8 bytes.

    Args:
        data: all terms, concatenated, uint8.
        offsets: where each begins, with the total at the end, shape (n + 1,).
    """

    def __init__(self, data: NDArray[np.uint8], offsets: NDArray[Any]) -> None:
        self._data = data
        self._offsets = offsets

    def __len__(self) -> int:
        return int(self._offsets.shape[0]) - 1

    def term(self, number: int) -> bytes:
        """The UTF-8 bytes of term `number`."""
        return bytes(self._data[self._offsets[number] : self._offsets[number + 1]])

    def find(self, term: str) -> int:
        """The number of a term, -1 when it is not there."""
        wanted = term.encode("utf-8", "surrogatepass")
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) // 2
            if self.term(middle) < wanted:
                low = middle + 1
            else:
                high = middle
        return low if low < len(self) and self.term(low) == wanted else -1
