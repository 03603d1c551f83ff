"""The compiled inner loop of a search. Importing this module imports numba, so only `kernels` does, when asked."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

BLOCK = 128
"""Passages per block of the final scan; a block without a score is skipped."""


@njit(nogil=True, fastmath=True, cache=True)
def _block_maximum(values: Any, start: int, stop: int) -> Any:
    # Reassociation changes no maximum, and lets the compiler use vector registers.
    best = 0.0
    for position in range(start, stop):
        best = max(best, values[position])
    return best


@njit(nogil=True, cache=True)
def _accumulate(
    documents: Any, frequencies: Any, impacts: Any, codes: Any, norms: Any,
    starts: Any, stops: Any, weights: Any, counts: Any, accumulator: Any,
) -> None:  # fmt: skip
    one = np.float32(1.0)
    for term in range(starts.shape[0]):
        weight = weights[term]
        if counts[term] == 1:
            for posting in range(starts[term], stops[term]):
                accumulator[documents[posting]] += np.float64(impacts[posting])
        else:
            for posting in range(starts[term], stops[term]):
                document = documents[posting]
                saturation = np.float32(frequencies[posting]) * norms[codes[document]]
                accumulator[document] += np.float64(weight - weight / (one + saturation))


@njit(nogil=True, cache=True)
def search(
    documents: Any, frequencies: Any, impacts: Any, codes: Any, norms: Any,
    starts: Any, stops: Any, weights: Any, counts: Any,
    accumulator: Any, best_documents: Any, best_scores: Any,
) -> int:  # fmt: skip
    """Scores all postings of a query, picks the best into the two output arrays and clears the accumulator.

    Returns:
        How many hits were written, best first, equal scores by passage number.
    """
    _accumulate(documents, frequencies, impacts, codes, norms, starts, stops, weights, counts, accumulator)
    k = best_documents.shape[0]
    found = 0
    floor = np.float32(0.0)
    size = codes.shape[0]
    for start in range(0, size, BLOCK):
        stop = min(start + BLOCK, size)
        maximum = _block_maximum(accumulator, start, stop)
        if maximum == 0.0:
            continue
        if found < k or np.float32(maximum) > floor:
            for document in range(start, stop):
                value = accumulator[document]
                score = np.float32(value)
                if value == 0.0 or (found == k and score <= floor):
                    continue
                found = min(found + 1, k)
                place = found - 1
                while place > 0 and best_scores[place - 1] < score:
                    best_scores[place] = best_scores[place - 1]
                    best_documents[place] = best_documents[place - 1]
                    place -= 1
                best_scores[place] = score
                best_documents[place] = document
                if found == k:
                    floor = best_scores[k - 1]
        accumulator[start:stop] = 0.0
    return found
