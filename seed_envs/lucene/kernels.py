"""Score and pick: the inner loop of a BM25 search, compiled (numba) or in NumPy, with equal results to the bit.

A kernel gets the distinct terms of each query by number, and how often each occurs in it. Stored impacts are used where
`impact * count` is exact, that is for counts that are powers of two. Term scores are summed in double and cast once to
float32; equal scores rank by passage number. Kernels know neither text nor ids.
"""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seed_envs.errors import DependencyMissing


class Postings(NamedTuple):
    """Postings of all terms in term order.

    Attributes:
        documents: passage numbers, ascending within a term, int32.
        frequencies: term frequency of each posting.
        impacts: float32 score of each posting at query count 1.
        length_codes: one code per passage, uint8.
        inverse_norms: float32, one per length code.
        offsets: where the postings of each term begin, with the total at the end, int64.
        idf: float32, one per term.
        bounds: the most one occurrence of a term can add to a score, float64; set for the terms of every query.
    """

    documents: NDArray[np.int32]
    frequencies: NDArray[Any]
    impacts: NDArray[np.float32]
    length_codes: NDArray[np.uint8]
    inverse_norms: NDArray[np.float32]
    offsets: NDArray[np.int64]
    idf: NDArray[np.float32]
    bounds: NDArray[np.float64]


class Queries(NamedTuple):
    """Queries, one after the other: numbers and counts of their distinct terms, and where each query ends; int64."""

    terms: NDArray[np.int64]
    counts: NDArray[np.int64]
    ends: NDArray[np.int64]


class Best(NamedTuple):
    """Passages (int32) and scores (float32), both (queries, k), best first, and how many of a row count, (queries,)."""

    documents: NDArray[np.int32]
    scores: NDArray[np.float32]
    found: NDArray[np.int64]

    @classmethod
    def unset(cls, queries: int, k: int) -> Best:
        """Room for the hits of so many queries, to be filled."""
        shape = queries, k
        return cls(np.empty(shape, np.int32), np.empty(shape, np.float32), np.empty(queries, np.int64))


Hits = tuple[NDArray[np.int32], NDArray[np.float32]]
Kernel = Callable[[Postings, Queries, int], Best]

_workspace = threading.local()


def _accumulator(size: int) -> NDArray[np.float64]:
    """A zeroed accumulator of this thread; every kernel leaves it zeroed."""
    current: NDArray[np.float64] | None = getattr(_workspace, "accumulator", None)
    if current is None or current.shape[0] < size:
        current = np.zeros(size, dtype=np.float64)
        _workspace.accumulator = current
        _workspace.seen = np.empty((2, 8192), dtype=np.int32)
        _workspace.sums = np.empty((2, 8192), dtype=np.float64)
    return current


def is_power_of_two(count: int) -> bool:
    """Whether scaling a float by `count` is exact."""
    return count & (count - 1) == 0


#: From one posting per so many passages on, looking at every passage is faster than merging the postings.
_DENSE_SHARE = 8


def _term_scores(postings: Postings, start: int, stop: int, weight: float, count: int) -> NDArray[np.float32]:
    """The float32 scores of one term's postings."""
    if count == 1:
        return postings.impacts[start:stop]
    # Lucene rounds idf * count to float32 first. Doubling never rounds, so stored scores can be scaled; other counts
    # have to be computed anew to end in the same bit.
    if is_power_of_two(count):
        return postings.impacts[start:stop] * np.float32(count)
    frequencies = postings.frequencies[start:stop].astype(np.float32)
    norms = postings.inverse_norms[postings.length_codes[postings.documents[start:stop]]]
    return np.float32(weight) - np.float32(weight) / (np.float32(1.0) + frequencies * norms)


def _dense_hits(
    postings: Postings, documents: list[NDArray[np.int32]], scores: list[NDArray[np.float32]], k: int
) -> Hits:
    """The best passages by a pass over all of them; sums in double, term by term, as the sparse way does."""
    size = postings.length_codes.shape[0]
    total = np.bincount(np.concatenate(documents), np.concatenate(scores), minlength=size).astype(np.float32)
    threshold = np.partition(total, size - k)[size - k] if k < size else np.float32(0.0)
    best = np.flatnonzero(total >= threshold if threshold > 0.0 else total)
    kept = total[best]
    # Stable, over ascending passages: among equal scores the lower number wins, as in Lucene's queue.
    order = np.argsort(-kept, kind="stable")[:k]
    return best[order].astype(np.int32), kept[order]


def numpy_kernel(postings: Postings, queries: Queries, k: int) -> Best:
    """The portable kernel.

    Args:
        postings: the index.
        queries: the queries; one without terms has no hits.
        k: how many hits at most, >= 1.

    Returns:
        The best passages of each query.
    """
    best = Best.unset(len(queries.ends), min(k, postings.length_codes.shape[0]))
    begin = 0
    for row, end in enumerate(queries.ends.tolist()):
        best.found[row] = 0
        if end > begin:
            terms, counts = queries.terms[begin:end], queries.counts[begin:end]
            documents, scores = _one_query(postings, terms, counts, k)
            best.documents[row, : len(documents)] = documents
            best.scores[row, : len(scores)] = scores
            best.found[row] = len(documents)
        begin = end
    return best


def _one_query(postings: Postings, terms: NDArray[np.int64], counts: NDArray[np.int64], k: int) -> Hits:
    weights = postings.idf[terms] * counts.astype(np.float32)
    starts, stops = postings.offsets[terms], postings.offsets[terms + 1]
    slices = list(zip(starts.tolist(), stops.tolist(), weights.tolist(), counts.tolist(), strict=True))
    touched = [postings.documents[start:stop] for start, stop, _, _ in slices]
    scores = [_term_scores(postings, *term) for term in slices]
    size = postings.length_codes.shape[0]
    if sum(map(len, touched)) * _DENSE_SHARE > size:
        return _dense_hits(postings, touched, scores, k)
    accumulator = _accumulator(size)
    for documents, values in zip(touched, scores, strict=True):
        accumulator[documents] += values
    candidates = touched[0] if len(touched) == 1 else np.concatenate(touched)
    scores32 = accumulator[candidates].astype(np.float32)
    accumulator[candidates] = 0.0
    # A passage stands here once for every term it holds, so k different ones are surely among so many of the best.
    spare = k * len(touched)
    if candidates.shape[0] > spare:
        threshold = np.partition(scores32, candidates.shape[0] - spare)[candidates.shape[0] - spare]
        keep = scores32 >= threshold
        candidates, scores32 = candidates[keep], scores32[keep]
    documents, first = np.unique(candidates, return_index=True)
    scores32 = scores32[first]
    order = np.argsort(-scores32, kind="stable")[:k]
    return documents[order].astype(np.int32, copy=False), scores32[order]


@lru_cache(maxsize=1)
def _compiled() -> Callable[..., None]:
    from seed_envs.lucene.compiled import search_batch

    return search_batch


def numba_kernel(postings: Postings, queries: Queries, k: int) -> Best:
    """The compiled kernel; same arguments and results as `numpy_kernel`."""
    size = postings.length_codes.shape[0]
    best = Best.unset(len(queries.ends), min(k, size))
    accumulator = _accumulator(size)
    _compiled()(*postings, *queries, accumulator, _workspace.seen, _workspace.sums, *best)
    return best


def choose_kernel(name: str, n_documents: int) -> Kernel:
    """Resolves a kernel name.

    Args:
        name: "numba", "numpy", or "auto" = numba where it is installed and the index is not small.
        n_documents: passages in the index.

    Returns:
        The kernel.

    Raises:
        DependencyMissing: numba was asked for and is not installed.
        ValueError: unknown name.
    """
    if name not in ("auto", "numba", "numpy"):
        raise ValueError(f"kernel: expected 'auto', 'numba' or 'numpy', got {name!r}")
    installed = importlib.util.find_spec("numba") is not None
    if name == "numba" and not installed:
        raise DependencyMissing("kernel='numba' needs numba. Run: pip install 'seed-envs[search]'")
    if name == "numba" or (name == "auto" and installed and n_documents >= 2000):
        return numba_kernel
    return numpy_kernel
