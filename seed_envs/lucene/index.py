"""A BM25 index whose tokens, scores and ranking equal Lucene's, in memory or memory-mapped from a directory.

It stores no text: hits are ids (and insertion positions), the caller keeps the passages. One index is immutable;
see `builder` for collections that are built in pieces.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from seed_envs.errors import DataInvalid
from seed_envs.lucene.analyzer import ANALYZER_ID, analyze
from seed_envs.lucene.builder import IndexBuilder
from seed_envs.lucene.kernels import Postings, Queries, choose_kernel
from seed_envs.lucene.layout import FORMAT, check_layout, check_postings
from seed_envs.lucene.scoring import inverse_document_frequencies, inverse_norms
from seed_envs.lucene.storage import Arrays, map_arrays, read_manifest, write_arrays
from seed_envs.lucene.vocabulary import Vocabulary

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
        self._kernel = choose_kernel(kernel, len(self))
        self._vocabulary = Vocabulary(arrays["term_bytes"], arrays["term_offsets"])
        offsets = np.asarray(arrays["posting_offsets"], dtype=np.int64)
        self._postings = Postings(
            np.asarray(arrays["documents"]),
            np.asarray(arrays["frequencies"]),
            np.asarray(arrays["impacts"]),
            np.asarray(arrays["length_codes"]),
            inverse_norms(self.meta["average_length"], self.meta["k1"], self.meta["b"]),
            offsets,
            inverse_document_frequencies(np.diff(offsets), self.meta["n_with_tokens"]),
            np.zeros(len(self._vocabulary), dtype=np.float64),
        )
        self._positions = arrays["positions"]
        self._id_bytes, self._id_offsets = arrays["id_bytes"], arrays["id_offsets"]
        self._numbers: dict[str, int] = {}

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
        if manifest.get("analyzer") != ANALYZER_ID:
            raise DataInvalid(
                f"{directory}: built with analyzer {manifest.get('analyzer')!r}, this version has {ANALYZER_ID!r}; "
                "build the index again"
            )
        arrays = map_arrays(directory, manifest, verify)
        check_layout(str(directory), arrays, manifest)
        return cls(arrays, manifest, kernel, digest)

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
        try:
            return self._id_bytes[start:stop].tobytes().decode("utf-8", "surrogatepass")
        except UnicodeDecodeError as error:
            raise DataInvalid(f"the id of passage {position} is no text ({error}); build the index again") from error

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
        return self.search_batch([terms], k)[0]

    def search_batch(self, queries: Sequence[Sequence[str]], k: int) -> list[list[PositionHit]]:
        """As `search_terms` for several queries, which is faster than one after the other.

        Args:
            queries: analysed terms of each query.
            k: how many hits at most, >= 1.

        Raises:
            ValueError: k < 1.
        """
        if k < 1:
            raise ValueError(f"k: expected at least 1, got {k}")
        terms: list[int] = []
        counts: list[int] = []
        ends: list[int] = []
        known = self._numbers
        for query in queries:
            occurrences: dict[int, int] = {}
            for term in query:
                number = known[term] if term in known else self._number(term)
                occurrences[number] = occurrences.get(number, 0) + 1
            occurrences.pop(-1, None)
            terms += occurrences
            counts += occurrences.values()
            ends.append(len(terms))
        if not terms:
            return [[] for _ in queries]
        batch = Queries(np.array(terms, np.int64), np.array(counts, np.int64), np.array(ends, np.int64))
        best = self._kernel(self._postings, batch, k)
        position = self._positions.item
        rows = zip(best.documents.tolist(), best.scores.tolist(), best.found.tolist(), strict=True)
        return [[(position(documents[i]), scores[i]) for i in range(found)] for documents, scores, found in rows]

    def _number(self, term: str) -> int:
        """The number of a term, -1 for one that no passage has; sets its bound, the most it can add to a score."""
        number = self._vocabulary.find(term)
        if number >= 0:
            postings = self._postings
            start, stop = int(postings.offsets[number]), int(postings.offsets[number + 1])
            check_postings(postings.documents, start, stop, len(self))
            postings.bounds[number] = postings.impacts[start:stop].max()
        if len(self._numbers) < 1 << 18:
            self._numbers[term] = number
        return number
