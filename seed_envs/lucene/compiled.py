"""The compiled inner loop of a search. Importing this module imports numba, so only `kernels` does, when asked.

Terms are taken in order of the most they can add. As soon as the terms that are left cannot lift an unseen passage
into the best k, they are looked up for the passages seen so far only (the MaxScore idea). Sums of float32 term scores
are exact in double, so the order of the terms changes no bit of the result.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

BLOCK = 128
"""Passages per block of a full scan; a block without a score is skipped."""
MAX_SEEN = 8192
"""Most passages for which an early end is tried."""
SLACK = 1.00001
"""Upper bounds are widened by this, for roundings."""


@njit(nogil=True, fastmath=True, cache=True)
def _block_maximum(values: Any, start: int, stop: int) -> Any:
    # Reassociation changes no maximum, and lets the compiler use vector registers.
    best = 0.0
    for position in range(start, stop):
        best = max(best, values[position])
    return best


@njit(nogil=True, inline="always", cache=True)
def _score(
    posting: int, document: int, count: int, weight: Any, frequencies: Any, impacts: Any, codes: Any, norms: Any
) -> Any:
    if count == 1:
        return np.float64(impacts[posting])
    one = np.float32(1.0)
    return np.float64(weight - weight / (one + np.float32(frequencies[posting]) * norms[codes[document]]))


@njit(nogil=True, cache=True)
def _insert(score: Any, document: int, found: int, best_documents: Any, best_scores: Any) -> int:
    """Puts a hit into the sorted best ones; equal scores by passage number. Returns how many there are."""
    k = best_documents.shape[0]
    if found == k:
        last = best_scores[k - 1]
        if score < last or (score == last and document > best_documents[k - 1]):
            return k
    else:
        found += 1
    place = found - 1
    while place > 0 and (
        best_scores[place - 1] < score or (best_scores[place - 1] == score and best_documents[place - 1] > document)
    ):
        best_scores[place] = best_scores[place - 1]
        best_documents[place] = best_documents[place - 1]
        place -= 1
    best_scores[place] = score
    best_documents[place] = document
    return found


@njit(nogil=True, cache=True)
def _order(bounds: Any) -> Any:
    """Term numbers by falling bound."""
    count = bounds.shape[0]
    order = np.arange(count)
    for position in range(1, count):
        term = order[position]
        place = position
        while place > 0 and bounds[order[place - 1]] < bounds[term]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = term
    return order


@njit(nogil=True, cache=True)
def _look_up(documents: Any, start: int, stop: int, document: int) -> int:
    """Position of a passage in a posting list, -1 if it is not there."""
    # Without a branch on the comparison: its outcome cannot be predicted.
    base, size = start, stop - start
    while size > 1:
        half = size >> 1
        base += half * (documents[base + half - 1] < document)
        size -= half
    return base if size == 1 and documents[base] == document else -1


@njit(nogil=True, cache=True)
def search(
    documents: Any, frequencies: Any, impacts: Any, codes: Any, norms: Any,
    starts: Any, stops: Any, weights: Any, counts: Any, bounds: Any,
    accumulator: Any, seen: Any, best_documents: Any, best_scores: Any,
) -> int:  # fmt: skip
    """Scores a query and writes the best hits into the two output arrays; leaves the accumulator zeroed.

    Returns:
        How many hits were written, best first, equal scores by passage number.
    """
    k = best_documents.shape[0]
    order = _order(bounds)
    rest = 0.0
    for term in range(order.shape[0]):
        rest += bounds[term] * SLACK
    spent, n_seen, done, finished = 0.0, 0, 0, False
    while done < order.shape[0] and not finished:
        term = order[done]
        done += 1
        rest -= bounds[term] * SLACK
        spent += bounds[term]
        for posting in range(starts[term], stops[term]):
            document = documents[posting]
            before = accumulator[document]
            accumulator[document] = before + _score(
                posting, document, counts[term], weights[term], frequencies, impacts, codes, norms
            )
            if before == 0.0:
                if n_seen < MAX_SEEN:
                    seen[n_seen] = document
                n_seen += 1
        # No passage has more than `spent` yet, so before that the attempt would be in vain.
        if done < order.shape[0] and k <= n_seen <= MAX_SEEN and rest < spent:
            found = 0
            for index in range(n_seen):
                value = np.float32(accumulator[seen[index]])
                if found < k or value > best_scores[k - 1]:
                    found = _insert(value, seen[index], found, best_documents, best_scores)
            finished = np.float32(rest * SLACK) < best_scores[k - 1]
    if n_seen > MAX_SEEN:
        return _scan(codes.shape[0], accumulator, best_documents, best_scores)
    n_left = n_seen
    for position in range(done, order.shape[0]):
        term = order[position]
        # Passages that the rest cannot lift into the best k drop out; the others move to the front.
        floor = np.float64(best_scores[k - 1])
        kept = 0
        for index in range(n_left):
            document = seen[index]
            if accumulator[document] + rest * SLACK < floor:
                accumulator[document] = 0.0
                continue
            posting = _look_up(documents, starts[term], stops[term], document)
            if posting >= 0:
                accumulator[document] += _score(
                    posting, document, counts[term], weights[term], frequencies, impacts, codes, norms
                )
            seen[kept] = document
            kept += 1
        n_left = kept
        rest -= bounds[term] * SLACK
        if position + 1 < order.shape[0]:
            found = 0
            for index in range(n_left):
                found = _insert(np.float32(accumulator[seen[index]]), seen[index], found, best_documents, best_scores)
    found = 0
    for index in range(n_left):
        document = seen[index]
        found = _insert(np.float32(accumulator[document]), document, found, best_documents, best_scores)
        accumulator[document] = 0.0
    return found


@njit(nogil=True, cache=True)
def _scan(size: int, accumulator: Any, best_documents: Any, best_scores: Any) -> int:
    """The best hits of a full accumulator, which it zeroes."""
    k = best_documents.shape[0]
    found = 0
    for start in range(0, size, BLOCK):
        stop = min(start + BLOCK, size)
        maximum = _block_maximum(accumulator, start, stop)
        if maximum == 0.0:
            continue
        if found < k or np.float32(maximum) > best_scores[k - 1]:
            for document in range(start, stop):
                if accumulator[document] != 0.0:
                    score = np.float32(accumulator[document])
                    if found < k or score > best_scores[k - 1]:
                        found = _insert(score, document, found, best_documents, best_scores)
        accumulator[start:stop] = 0.0
    return found
