"""The numbers of Lucene's BM25Similarity, in its float32 operation order.

Term score = w - w / (1 + tf * inv) with w = count in the query * idf; there is no (k1 + 1) factor.
This module scores nothing by itself: it makes the tables that the kernels read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Float32Array = NDArray[np.float32]
_FREE_CODES = 24


def encode_lengths(lengths: NDArray[np.integer[Any]]) -> NDArray[np.uint8]:
    """Lucene's one-byte code of passage lengths: exact below 40, then four significant bits of (length - 24).

    Args:
        lengths: tokens per passage, shape (n,).

    Returns:
        Codes, shape (n,).

    >>> decode_lengths(encode_lengths(np.array([39, 41, 59, 150, 5000]))).tolist()
    [39, 40, 56, 144, 4632]
    """
    # Lucene's intToByte4: a floating-point number with three bits of mantissa, its leading one implied, on top of 24
    # codes that mean themselves.
    values = np.asarray(lengths, dtype=np.int64)
    rest = np.maximum(values - _FREE_CODES, 0)
    bits = np.zeros(values.shape, dtype=np.int64)
    for bit in range(63):
        bits += (rest >> bit) > 0
    shift = np.maximum(bits - 4, 0)
    packed = np.where(bits < 4, rest, ((rest >> shift) & 7) | ((shift + 1) << 3))
    return np.where(values < _FREE_CODES, values, _FREE_CODES + packed).astype(np.uint8)


def decode_lengths(codes: NDArray[np.uint8]) -> NDArray[np.int64]:
    """The lengths that the codes stand for, shape (n,)."""
    values = np.asarray(codes, dtype=np.int64)
    packed = values - _FREE_CODES
    shift = (packed >> 3) - 1
    long = ((packed & 7) | 8) << np.maximum(shift, 0)
    return np.where(values < _FREE_CODES, values, _FREE_CODES + np.where(shift < 0, packed & 7, long))


def inverse_norms(average_length: float, k1: float, b: float) -> Float32Array:
    """1 / (k1 * ((1 - b) + b * length / average)) for each of the 256 length codes, float32.

    Args:
        average_length: mean tokens per passage that has any.
        k1: saturation of the term frequency, >= 0.
        b: weight of the length, 0 to 1.

    Returns:
        Shape (256,).
    """
    one = np.float32(1.0)
    k, weight, average = np.float32(k1), np.float32(b), np.float32(average_length)
    lengths = decode_lengths(np.arange(256, dtype=np.uint8)).astype(np.float32)
    with np.errstate(divide="ignore"):
        return (one / (k * ((one - weight) + weight * lengths / average))).astype(np.float32)


def inverse_document_frequencies(frequencies: NDArray[np.integer[Any]], count: int) -> Float32Array:
    """ln(1 + (N - df + 0.5) / (df + 0.5)), the logarithm in double, the result float32.

    Args:
        frequencies: passages per term (df), shape (n,).
        count: passages with at least one token (N).

    Returns:
        Shape (n,).
    """
    df = np.asarray(frequencies, dtype=np.float64)
    return np.log(1.0 + (count - df + 0.5) / (df + 0.5)).astype(np.float32)


def printed_scores(scores: list[float]) -> list[float]:
    """Scores as Anserini prints them: four decimals, repeats lowered by 1e-6 each, in float32.

    >>> [round(s, 6) for s in printed_scores([1.6390525, 1.6390525, 0.78946155])]
    [1.6391, 1.639099, 0.7895]
    """
    printed: list[float] = []
    previous, repeats = float("inf"), 0
    for score in scores:
        rounded = float(np.float32(np.floor(score * 1e4 + 0.5) / 1e4))
        # Neighbours in float32 can be closer than 1e-4 although their fourth decimals differ; they count as repeats.
        repeats = repeats + 1 if previous - rounded < 1e-4 else 0
        previous = rounded
        printed.append(float(np.float32(rounded - repeats * 1e-6)))
    return printed


def impacts_of(
    documents: NDArray[np.int32],
    frequencies: NDArray[Any],
    posting_offsets: NDArray[np.int64],
    length_codes: NDArray[np.uint8],
    meta: Mapping[str, Any],
) -> NDArray[np.float32]:
    """The float32 score of every posting for a term that occurs once in the query, shape (postings,)."""
    norms = inverse_norms(meta["average_length"], meta["k1"], meta["b"])
    lengths = np.diff(posting_offsets)
    weights = np.repeat(inverse_document_frequencies(lengths, meta["n_with_tokens"]), lengths)
    saturation = frequencies.astype(np.float32) * norms[length_codes[documents]]
    scores = weights - weights / (np.float32(1.0) + saturation)
    return scores.astype(np.float32, copy=False)
