"""Collects analysed passages and assembles the arrays of a `BM25Index`.

Terms are counted passage by passage into flat arrays; one sort at the end orders the postings. Everything is held in
memory (about 9 bytes per posting); it does not read files and keeps no text. `disk_builder` adds pieces and resuming.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seed_envs.errors import DataInvalid
from seed_envs.lucene.analyzer import ANALYZER_ID, analyze
from seed_envs.lucene.layout import FORMAT
from seed_envs.lucene.scoring import encode_lengths, impacts_of
from seed_envs.lucene.storage import Arrays, pack_strings

TIES = ("insertion", "id")


def check_parameters(k1: float, b: float) -> None:
    """Does nothing for usable parameters.

    Raises:
        ValueError: k1 is no number >= 0, or b none from 0 to 1.
    """
    if not all(isinstance(value, (int, float)) for value in (k1, b)) or not (0 <= k1 < math.inf and 0 <= b <= 1):
        raise ValueError(f"expected numbers k1 >= 0 and 0 <= b <= 1, got k1={k1!r}, b={b!r}")


class IndexBuilder:
    """Adds passages one by one.

    Args:
        k1: term frequency saturation, >= 0.
        b: length weight, 0 to 1.
        ties: "insertion" or "id", see `BM25Index.build`.
    """

    def __init__(self, k1: float = 0.9, b: float = 0.4, ties: str = "insertion") -> None:
        if ties not in TIES:
            raise ValueError(f"ties: expected one of {TIES}, got {ties!r}")
        check_parameters(k1, b)
        self.k1, self.b, self.ties = k1, b, ties
        self.ids: list[str] = []
        self.numbers: dict[str, int] = {}
        self.terms = array("i")
        self.frequencies = array("i")
        self.distinct = array("i")
        self.lengths = array("i")
        self._seen: set[str] = set()

    def add(self, doc_id: str, text: str) -> None:
        """Analyses and adds one passage.

        Raises:
            DataInvalid: the id is there already.
        """
        if doc_id in self._seen:
            raise DataInvalid(f"passage {len(self.ids)}: id {doc_id!r} occurs twice; ids must differ")
        self._seen.add(doc_id)
        self.ids.append(doc_id)
        terms = analyze(text)
        counts = Counter(terms)
        numbers = self.numbers
        for term in counts:
            if term not in numbers:
                numbers[term] = len(numbers)
        self.terms.extend([numbers[term] for term in counts])
        self.frequencies.extend(counts.values())
        self.distinct.append(len(counts))
        self.lengths.append(len(terms))

    def assemble(self) -> tuple[Arrays, dict[str, Any]]:
        """Sorts the postings and computes statistics and impacts.

        Returns:
            Arrays and meta data for `BM25Index`.
        """
        positions = tie_order(self.ids, self.ties)
        ranks = np.empty_like(positions)
        ranks[positions] = np.arange(positions.shape[0], dtype=positions.dtype)
        terms, term_ranks = self._sorted_terms()
        documents = np.repeat(ranks, np.frombuffer(self.distinct, dtype=np.int32)).astype(np.int32)
        numbers = term_ranks[np.frombuffer(self.terms, dtype=np.int32)]
        order = np.argsort(numbers.astype(np.int64) * max(len(self.ids), 1) + documents, kind="stable")
        documents, numbers = documents[order], numbers[order]
        frequencies = shrink(np.frombuffer(self.frequencies, dtype=np.int32)[order])
        offsets = np.zeros(len(terms) + 1, dtype=np.int64)
        np.cumsum(np.bincount(numbers, minlength=len(terms)), out=offsets[1:])
        lengths = np.frombuffer(self.lengths, dtype=np.int32)
        meta = describe(lengths, self.k1, self.b, self.ties)
        codes = encode_lengths(lengths)[positions]
        term_bytes, term_offsets = pack_strings(terms)
        id_bytes, id_offsets = pack_strings(self.ids)
        arrays: Arrays = {
            "term_bytes": term_bytes,
            "term_offsets": term_offsets,
            "posting_offsets": offsets,
            "documents": documents,
            "frequencies": frequencies,
            "impacts": impacts_of(documents, frequencies, offsets, codes, meta),
            "length_codes": codes,
            "positions": positions,
            "id_bytes": id_bytes,
            "id_offsets": id_offsets,
        }
        return arrays, meta

    def _sorted_terms(self) -> tuple[list[str], NDArray[np.int32]]:
        """Terms by UTF-8 bytes, and the rank of each term number."""
        terms = sorted(self.numbers, key=lambda term: term.encode("utf-8", "surrogatepass"))
        ranks = np.empty(len(terms), dtype=np.int32)
        ranks[[self.numbers[term] for term in terms]] = np.arange(len(terms), dtype=np.int32)
        return terms, ranks


def tie_order(ids: list[str], ties: str) -> NDArray[np.int64]:
    """Insertion positions in the order in which equal scores rank."""
    if ties == "insertion":
        return np.arange(len(ids), dtype=np.int64)
    keys = [doc_id.encode("utf-8", "surrogatepass") for doc_id in ids]
    return np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.int64)


def shrink(frequencies: NDArray[np.int32]) -> NDArray[Any]:
    """The same numbers in the smallest unsigned type that holds them all."""
    largest = int(frequencies.max(initial=0))
    return frequencies.astype(np.uint8 if largest < 256 else np.uint16 if largest < 65536 else np.uint32)


def describe(lengths: NDArray[np.int32], k1: float, b: float, ties: str) -> dict[str, Any]:
    """Meta data of an index: format, analyzer, parameters and collection statistics."""
    with_tokens = int(np.count_nonzero(lengths))
    total = int(lengths.sum(dtype=np.int64))
    return {
        "format": FORMAT,
        "analyzer": ANALYZER_ID,
        "k1": k1,
        "b": b,
        "ties": ties,
        "n_documents": int(lengths.shape[0]),
        "n_with_tokens": with_tokens,
        "total_tokens": total,
        "average_length": float(np.float32(total / with_tokens)) if with_tokens else 1.0,
    }
