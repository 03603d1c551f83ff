"""The default retriever: BM25 with Lucene's tokens, scores and ranking, no Java, no service.

The index is built once per collection and kept in the cache (or a folder of your choice), then memory-mapped.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from seed_envs.data import cache_root
from seed_envs.errors import UnknownOption
from seed_envs.forks import PerProcessLock
from seed_envs.lucene import BM25Index, analyze
from seed_envs.lucene.analyzer import ANALYZER_ID
from seed_envs.lucene.builder import check_parameters
from seed_envs.lucene.disk_builder import build_on_disk
from seed_envs.lucene.index import PositionHit
from seed_envs.lucene.scoring import printed_scores
from seed_envs.search_qa.corpus import Corpus, iterate
from seed_envs.search_qa.retrievers.base import (
    Capabilities,
    Hit,
    RetrieverMismatch,
    check_k,
    fingerprint_of,
)
from seed_envs.search_qa.retrievers.clauses import first_clauses
from seed_envs.search_qa.retrievers.deadlines import check_deadline

_CHUNK = 16
"""Queries that are searched in one go, between two looks at the clock."""


class BM25Retriever:
    """Exact Lucene BM25 over a passage collection.

    Args:
        corpus: The passages.
        index_dir: Where the index is or will be; None puts it into the cache.
        k1: Term frequency saturation.
        b: Length weight.
        score_style: "raw" float32 scores, or "anserini" for the rounded ones that Search-R1's server prints.
        kernel: "auto", "numba" or "numpy"; all rank equally.
        progress: Show a progress bar while building.
    """

    def __init__(
        self,
        corpus: Corpus,
        index_dir: str | os.PathLike[str] | None = None,
        k1: float = 0.9,
        b: float = 0.4,
        score_style: str = "raw",
        kernel: str = "auto",
        progress: bool = False,
    ) -> None:
        check_parameters(k1, b)
        if score_style not in ("raw", "anserini"):
            raise UnknownOption(f"score_style={score_style!r}; expected 'raw' or 'anserini'")
        self.corpus = corpus
        self.capabilities = Capabilities(quick=True)
        self._k1, self._b, self._score_style, self._kernel, self._progress = k1, b, score_style, kernel, progress
        self._index_dir = Path(index_dir) if index_dir is not None else None
        self._index: BM25Index | None = None
        self._lock = PerProcessLock()

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_index": None}

    @property
    def index_dir(self) -> Path:
        """Where the index lies."""
        if self._index_dir is None:
            key = self.fingerprint[:24]
            self._index_dir = cache_root() / "search_qa" / "bm25" / key
        return self._index_dir

    @property
    def collection_sha256(self) -> str:
        """Content hash of the passages."""
        return self.corpus.fingerprint

    @cached_property
    def fingerprint(self) -> str:
        """Engine, analyzer, parameters and collection."""
        return fingerprint_of(
            {
                "engine": "bm25",
                "analyzer": ANALYZER_ID,
                "k1": self._k1,
                "b": self._b,
                "ties": "id",
                "corpus": self.corpus.fingerprint,
                "count": len(self.corpus),
            }
        )

    def open(self) -> BM25Index:
        """Opens the index, building it first where there is none.

        Raises:
            RetrieverMismatch: The index belongs to another collection or other parameters.
        """
        with self._lock:
            if self._index is None:
                self._index = self._open()
            return self._index

    def _open(self) -> BM25Index:
        from seed_envs.lucene.storage import MANIFEST

        if not (self.index_dir / MANIFEST).is_file():
            build_on_disk(
                lambda start: ((hit.id, hit.contents) for hit in iterate(self.corpus, start)),
                len(self.corpus),
                self.index_dir,
                self._k1,
                self._b,
                ties="id",
                meta={"corpus": self.corpus.fingerprint},
                progress=self._progress,
            )
        index = BM25Index.load(self.index_dir, kernel=self._kernel)
        expected = {"n_documents": len(self.corpus), "k1": self._k1, "b": self._b, "corpus": self.corpus.fingerprint}
        for key, value in expected.items():
            if index.meta.get(key, value) != value:
                raise RetrieverMismatch(
                    f"index {self.index_dir}: {key} is {index.meta[key]!r}, the passages here need {value!r}. "
                    f"Give another index_dir, or build it again with: python -m seed_envs.search_qa index --collection "
                    f"{getattr(self.corpus, 'given', 'FILE')} --retriever bm25:{self.index_dir} --replace"
                )
        return index

    def discard(self) -> None:
        """Removes the index, so that the next opening builds it; a folder that is no index stays."""
        from seed_envs.lucene.storage import MANIFEST

        self.close()
        if (self.index_dir / MANIFEST).is_file():
            shutil.rmtree(self.index_dir)

    def search(self, queries: Sequence[str], k: int, deadline: float | None = None) -> list[list[Hit]]:
        """See `Retriever.search`."""
        check_k(k)
        index = self._index or self.open()
        results: list[list[Hit]] = []
        for start in range(0, len(queries), _CHUNK):
            check_deadline(deadline, "bm25")
            chunk = [first_clauses(analyze(query)) for query in queries[start : start + _CHUNK]]
            results += [self._hits(found) for found in index.search_batch(chunk, k)]
        return results

    def _hits(self, found: list[PositionHit]) -> list[Hit]:
        if self._score_style == "anserini":
            printed = printed_scores([score for _, score in found])
            found = [(position, score) for (position, _), score in zip(found, printed, strict=True)]
        passage = self.corpus.passage
        hits = []
        for position, score in found:
            identifier, title, text, _, quoted = passage(position)
            hits.append(Hit(identifier, title, text, score, quoted))
        return hits

    def query_key(self, query: str) -> str:
        """Queries with the same key have the same hits: the analysed terms in order."""
        return " ".join(first_clauses(analyze(query)))

    def close(self) -> None:
        """Drops the index; the next search maps it again."""
        with self._lock:
            self._index = None


def open_bm25(name: str, corpus: Corpus | None, **options: object) -> BM25Retriever:
    """Opens `bm25` or `bm25:INDEX_DIR`."""
    if corpus is None:
        raise UnknownOption("retriever='bm25' needs passages: give collection=")
    folder = name.partition(":")[2] or None
    return BM25Retriever(corpus, folder, **options)  # type: ignore[arg-type]
