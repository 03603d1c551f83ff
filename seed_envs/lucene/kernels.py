"""Score and pick: the inner loop of a BM25 search, compiled (numba) or in NumPy, with equal results to the bit.

A kernel gets, per distinct query term, the slice of its postings, its weight, and whether the stored impacts can be
used (`impact * count` is exact only when the count is a power of two). Term scores are summed in double and cast once
to float32; equal scores rank by passage number. Kernels know neither text nor ids.
"""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Callable
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
    """

    documents: NDArray[np.int32]
    frequencies: NDArray[Any]
    impacts: NDArray[np.float32]
    length_codes: NDArray[np.uint8]
    inverse_norms: NDArray[np.float32]


class QueryTerms(NamedTuple):
    """The distinct terms of one query: posting slices, float32 weights (count * idf), counts, most a term can add."""

    starts: NDArray[np.int64]
    stops: NDArray[np.int64]
    weights: NDArray[np.float32]
    counts: NDArray[np.int64]
    bounds: NDArray[np.float64]


Hits = tuple[NDArray[np.int32], NDArray[np.float32]]
Kernel = Callable[[Postings, QueryTerms, int], Hits]

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
    order = np.argsort(-kept, kind="stable")[:k]
    return best[order].astype(np.int32), kept[order]


def numpy_kernel(postings: Postings, terms: QueryTerms, k: int) -> Hits:
    """The portable kernel.

    Args:
        postings: the index.
        terms: the query, at least one term.
        k: how many hits at most, >= 1.

    Returns:
        Passage numbers and scores, best first.
    """
    slices = list(zip(*(column.tolist() for column in terms[:4]), strict=True))
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
    spare = k * len(touched)
    if candidates.shape[0] > spare:
        threshold = np.partition(scores32, candidates.shape[0] - spare)[candidates.shape[0] - spare]
        keep = scores32 >= threshold
        candidates, scores32 = candidates[keep], scores32[keep]
    documents, first = np.unique(candidates, return_index=True)
    scores32 = scores32[first]
    order = np.argsort(-scores32, kind="stable")[:k]
    return documents[order].astype(np.int32, copy=False), scores32[order]


def numba_kernel(postings: Postings, terms: QueryTerms, k: int) -> Hits:
    """The compiled kernel; same arguments and results as `numpy_kernel`."""
    from seed_envs.lucene import compiled

    size = postings.length_codes.shape[0]
    k = min(k, size)
    best_documents = np.empty(k, dtype=np.int32)
    best_scores = np.empty(k, dtype=np.float32)
    accumulator = _accumulator(size)
    found = compiled.search(
        *postings, *terms, accumulator, _workspace.seen, _workspace.sums, best_documents, best_scores
    )
    return best_documents[:found], best_scores[:found]


def choose_kernel(name: str, n_documents: int) -> tuple[str, Kernel]:
    """Resolves a kernel name.

    Args:
        name: "numba", "numpy", or "auto" = numba where it is installed and the index is not small.
        n_documents: passages in the index.

    Returns:
        The resolved name and the kernel.

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
        return "numba", numba_kernel
    return "numpy", numpy_kernel
