"""The compiled inner loop of searches. Importing this module imports numba, so only `kernels` does, when asked.

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
    """First position from `start` on whose passage is not before `document`; steps double, then halve."""
    step = 1
    low = start
    while low + step < stop and documents[low + step] < document:
        low += step
        step <<= 1
    high = min(low + step, stop)
    while low < high:
        middle = (low + high) >> 1
        if documents[middle] < document:
            low = middle + 1
        else:
            high = middle
    return low


@njit(nogil=True, cache=True)
def _best_of(values: Any, found_documents: Any, size: int, best_documents: Any, best_scores: Any) -> int:
    """The best of the candidates, which are in passage order."""
    k = best_documents.shape[0]
    found = 0
    for index in range(size):
        score = np.float32(values[index])
        if found < k or score > best_scores[k - 1]:
            found = _insert(score, found_documents[index], found, best_documents, best_scores)
    return found


@njit(nogil=True, cache=True)
def _merge(
    documents: Any, frequencies: Any, impacts: Any, codes: Any, norms: Any,
    posting: int, stop: int, count: int, weight: Any,
    old_documents: Any, old_values: Any, size: int, new_documents: Any, new_values: Any,
) -> int:  # fmt: skip
    """Adds a posting list to the candidates, both in passage order; returns how many candidates there are."""
    index = 0
    written = 0
    while posting < stop:
        document = documents[posting]
        while index < size and old_documents[index] < document:
            new_documents[written] = old_documents[index]
            new_values[written] = old_values[index]
            index += 1
            written += 1
        value = _score(posting, document, count, weight, frequencies, impacts, codes, norms)
        if index < size and old_documents[index] == document:
            value += old_values[index]
            index += 1
        new_documents[written] = document
        new_values[written] = value
        written += 1
        posting += 1
    while index < size:
        new_documents[written] = old_documents[index]
        new_values[written] = old_values[index]
        index += 1
        written += 1
    return written


@njit(nogil=True, cache=True)
def _search(
    documents: Any, frequencies: Any, impacts: Any, codes: Any, norms: Any,
    starts: Any, stops: Any, weights: Any, counts: Any, bounds: Any,
    accumulator: Any, seen: Any, sums: Any, best_documents: Any, best_scores: Any,
) -> int:  # fmt: skip
    """Scores a query and writes the best hits into the two output arrays; leaves the accumulator zeroed.

    Returns:
        How many hits were written, best first, equal scores by passage number.
    """
    k = best_documents.shape[0]
    order = _order(bounds)
    n_terms = order.shape[0]
    rest = 0.0
    for term in range(n_terms):
        rest += bounds[term] * SLACK
    spent, size, done, side, finished = 0.0, 0, 0, 0, False
    while done < n_terms and not finished:
        term = order[done]
        if size + stops[term] - starts[term] > MAX_SEEN:
            _accumulate(documents, frequencies, impacts, codes, norms, starts, stops, weights, counts, accumulator)
            return _scan(codes.shape[0], accumulator, best_documents, best_scores)
        size = _merge(
            documents, frequencies, impacts, codes, norms, starts[term], stops[term], counts[term], weights[term],
            seen[side], sums[side], size, seen[1 - side], sums[1 - side],
        )  # fmt: skip
        side = 1 - side
        done += 1
        rest -= bounds[term] * SLACK
        spent += bounds[term]
        # No passage has more than `spent` yet, so before that the attempt would be in vain.
        if done < n_terms and size >= k and rest < spent:
            _best_of(sums[side], seen[side], size, best_documents, best_scores)
            finished = np.float32(rest * SLACK) < best_scores[k - 1]
    candidates, values = seen[side], sums[side]
    for place in range(done, n_terms):
        term = order[place]
        # Passages that the rest cannot lift into the best k drop out; the others are looked up.
        floor = np.float64(best_scores[k - 1])
        posting, stop, kept = starts[term], stops[term], 0
        for index in range(size):
            if values[index] + rest * SLACK < floor:
                continue
            document, value = candidates[index], values[index]
            posting = _look_up(documents, posting, stop, document)
            if posting < stop and documents[posting] == document:
                value += _score(posting, document, counts[term], weights[term], frequencies, impacts, codes, norms)
            candidates[kept] = document
            values[kept] = value
            kept += 1
        size = kept
        rest -= bounds[term] * SLACK
        if place + 1 < n_terms:
            _best_of(values, candidates, size, best_documents, best_scores)
    return _best_of(values, candidates, size, best_documents, best_scores)


@njit(nogil=True, cache=True)
def _accumulate(
    documents: Any, frequencies: Any, impacts: Any, codes: Any, norms: Any,
    starts: Any, stops: Any, weights: Any, counts: Any, accumulator: Any,
) -> None:  # fmt: skip
    """Adds all posting lists to the accumulator."""
    for term in range(starts.shape[0]):
        for posting in range(starts[term], stops[term]):
            document = documents[posting]
            accumulator[document] += _score(
                posting, document, counts[term], weights[term], frequencies, impacts, codes, norms
            )


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


@njit(nogil=True, cache=True)
def search_batch(
    documents: Any, frequencies: Any, impacts: Any, codes: Any, norms: Any, offsets: Any, idf: Any, bounds: Any,
    numbers: Any, counts: Any, ends: Any,
    accumulator: Any, seen: Any, sums: Any, best_documents: Any, best_scores: Any, found: Any,
) -> None:  # fmt: skip
    """Searches for each query; fills its row of the outputs and says in `found` how many hits it has."""
    begin = 0
    for query in range(ends.shape[0]):
        end = ends[query]
        found[query] = 0
        if end > begin:
            terms = numbers[begin:end]
            repeats = counts[begin:end]
            found[query] = _search(
                documents, frequencies, impacts, codes, norms,
                offsets[terms], offsets[terms + 1], idf[terms] * repeats.astype(np.float32), repeats,
                bounds[terms] * repeats,
                accumulator, seen, sums, best_documents[query], best_scores[query],
            )  # fmt: skip
        begin = end
