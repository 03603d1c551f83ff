"""A BM25 index whose tokens, scores and ranking equal Lucene's, in memory or memory-mapped from a directory.

It stores no text: hits are ids (and insertion positions), the caller keeps the passages. One index is immutable;
see `builder` for collections that are built in pieces.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seed_envs.errors import DataInvalid
from seed_envs.lucene.analyzer import ANALYZER_ID, analyze
from seed_envs.lucene.kernels import Postings, QueryTerms, choose_kernel
from seed_envs.lucene.scoring import inverse_document_frequencies, inverse_norms
from seed_envs.lucene.storage import Arrays, map_arrays, read_manifest, write_arrays
from seed_envs.lucene.vocabulary import Vocabulary

FORMAT = "seed-bm25/1"


PositionHit = tuple[int, float]
"""One hit: insertion position of the passage and its raw float32 score."""


class BM25Index:
    """BM25 over analysed passages.

    Args:
        arrays: the index arrays (see `builder.assemble`).
        meta: k1, b, ties, counts.
        kernel: "auto", "numba" or "numpy".
        fingerprint: sha256 that covers the content, "" for an index that was never saved.
    """

    def __init__(self, arrays: Arrays, meta: Mapping[str, Any], kernel: str = "auto", fingerprint: str = "") -> None:
        self.arrays = arrays
        self.meta = dict(meta)
        self.fingerprint = fingerprint
        self.kernel_name, self._kernel = choose_kernel(kernel, len(self))
        self._vocabulary = Vocabulary(arrays["term_bytes"], arrays["term_offsets"])
        self._offsets = arrays["posting_offsets"]
        norms = inverse_norms(self.meta["average_length"], self.meta["k1"], self.meta["b"])
        self._idf = inverse_document_frequencies(np.diff(self._offsets), self.meta["n_with_tokens"])
        self._postings = Postings(
            np.asarray(arrays["documents"]),
            np.asarray(arrays["frequencies"]),
            np.asarray(arrays["impacts"]),
            np.asarray(arrays["length_codes"]),
            norms,
        )
        self._positions = arrays["positions"]
        self._id_bytes, self._id_offsets = arrays["id_bytes"], arrays["id_offsets"]
        self._slots: dict[str, tuple[int, int, float, float]] = {}

    @classmethod
    def build(
        cls,
        docs: Iterable[tuple[str, str]],
        k1: float = 0.9,
        b: float = 0.4,
        ties: str = "insertion",
        kernel: str = "auto",
    ) -> BM25Index:
        """Builds an index in memory.

        Args:
            docs: (id, text) pairs; ids must differ.
            k1: term frequency saturation.
            b: length weight.
            ties: order of equal scores: "insertion" (plain Lucene) or "id" (ids as UTF-8 strings, as Anserini).
            kernel: "auto", "numba" or "numpy".

        Returns:
            The index.

        >>> index = BM25Index.build([("a", "red mug"), ("b", "red cup")])
        >>> [doc for doc, _ in index.search("mug", 5)]
        ['a']
        """
        from seed_envs.lucene.builder import IndexBuilder

        builder = IndexBuilder(k1=k1, b=b, ties=ties)
        for doc_id, text in docs:
            builder.add(doc_id, text)
        return cls(*builder.assemble(), kernel=kernel)

    @classmethod
    def load(cls, directory: str | Path, kernel: str = "auto", verify: bool = False) -> BM25Index:
        """Opens a saved index by memory mapping.

        Args:
            directory: where `save` put it.
            kernel: "auto", "numba" or "numpy".
            verify: also check the sha256 of every file.

        Raises:
            DataMissing: no index there.
            DataInvalid: another format or analyzer, or damaged files.
        """
        manifest, digest = read_manifest(directory, FORMAT, "BM25Index.build(...).save(directory)")
        if manifest["analyzer"] != ANALYZER_ID:
            raise DataInvalid(
                f"{directory}: built with analyzer {manifest['analyzer']!r}, this version has {ANALYZER_ID!r}; "
                "build the index again"
            )
        return cls(map_arrays(directory, manifest, verify), manifest, kernel, digest)

    def save(self, directory: str | Path) -> str:
        """Writes the index as a directory of plain arrays, replacing an older one.

        Returns:
            Its fingerprint (sha256 of the manifest, which covers every array).
        """
        meta = {key: value for key, value in self.meta.items() if key != "arrays"}
        self.fingerprint = write_arrays(directory, self.arrays, meta)
        return self.fingerprint

    def __len__(self) -> int:
        return int(self.arrays["length_codes"].shape[0])

    def id_at(self, position: int) -> str:
        """The id of the passage that was inserted at `position`."""
        offsets = self._id_offsets
        start, stop = int(offsets[position]), int(offsets[position + 1])
        return self._id_bytes[start:stop].tobytes().decode("utf-8", "surrogatepass")

    def search(self, query: str, k: int) -> list[tuple[str, float]]:
        """The best passages for a query in plain words (there is no query syntax).

        Args:
            query: the text.
            k: how many hits at most, >= 1.

        Returns:
            (id, raw score), best first; only passages with a matching term.

        Raises:
            ValueError: k < 1.
        """
        return [(self.id_at(position), score) for position, score in self.search_terms(analyze(query), k)]

    def search_terms(self, terms: Sequence[str], k: int) -> list[PositionHit]:
        """As `search`, for analysed terms, giving insertion positions instead of ids."""
        if k < 1:
            raise ValueError(f"k: expected at least 1, got {k}")
        slots = []
        for term, count in Counter(terms).items():
            start, stop, idf, most = self._slots.get(term) or self._slot(term)
            if stop > start:
                slots.append((start, stop, idf * count, count, most * count))
        if not slots:
            return []
        starts, stops, weights, counts, bounds = zip(*slots, strict=True)
        query = QueryTerms(
            np.array(starts, dtype=np.int64),
            np.array(stops, dtype=np.int64),
            np.array(weights, dtype=np.float32),
            np.array(counts, dtype=np.int64),
            np.array(bounds, dtype=np.float64),
        )
        documents, scores = self._kernel(self._postings, query, k)
        return list(zip(self._positions[documents].tolist(), scores.tolist(), strict=True))

    def _slot(self, term: str) -> tuple[int, int, float, float]:
        """Where a term's postings are, its idf, and the most it can add to a passage's score."""
        number = self._vocabulary.find(term)
        slot = (0, 0, 0.0, 0.0)
        if number >= 0:
            start, stop = int(self._offsets[number]), int(self._offsets[number + 1])
            slot = start, stop, float(self._idf[number]), float(self._postings.impacts[start:stop].max())
        if len(self._slots) < 1 << 18:
            self._slots[term] = slot
        return slot


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
