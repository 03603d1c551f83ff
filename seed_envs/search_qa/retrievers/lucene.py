"""Existing Lucene indices (Anserini, pyserini) through the JVM: a reference engine and a loader, not the default.

Only the Anserini jar inside the pyserini package is used, never pyserini itself. One JVM runs per process and does not
survive a fork: a child that inherits one gets `RetrieverForked` at once, never a hang.

Python 3.11 with Java 11 to 17 needs `pyserini==0.25.0`; Python 3.12 or newer with Java 21 can use newer ones.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from seed_envs.errors import DataMissing
from seed_envs.lucene.java import JvmForked, java_class, java_string
from seed_envs.search_qa.corpus import Corpus
from seed_envs.search_qa.hashing import file_sha256
from seed_envs.search_qa.retrievers.base import (
    Capabilities,
    FailureDetails,
    Hit,
    RetrievalRejected,
    RetrieverForked,
    RetrieverMismatch,
    check_k,
    fingerprint_of,
    make_hit,
)
from seed_envs.search_qa.retrievers.clauses import within_clauses
from seed_envs.search_qa.retrievers.deadlines import check_deadline
from seed_envs.search_qa.retrievers.pairing import check_pair, forget_pair


class LuceneRetriever:
    """Anserini's searcher over an index directory.

    Args:
        index_dir: The Lucene index.
        corpus: Passages, for an index that stores no text (ids must then be line numbers, which is checked).
        k1: Term frequency saturation.
        b: Length weight.
    """

    def __init__(
        self, index_dir: str | os.PathLike[str], corpus: Corpus | None = None, k1: float = 0.9, b: float = 0.4
    ) -> None:
        self.index_dir, self.corpus = Path(index_dir), corpus
        if not any(self.index_dir.glob("segments_*")):
            raise DataMissing(f"lucene: expected a Lucene index (segments_* files) in {str(index_dir)!r}, found none")
        self._k1, self._b = k1, b
        self.capabilities = Capabilities()
        self._searcher: Any = None
        self._pid = 0

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_searcher": None}

    @cached_property
    def fingerprint(self) -> str:
        """Engine, index files and parameters."""
        # The newest list of segments names every file with a checksum of its own.
        lists = {path.name: file_sha256(path) for path in sorted(self.index_dir.glob("segments_*"))}
        return fingerprint_of({"engine": "lucene", "lists": lists, "k1": self._k1, "b": self._b})

    @property
    def collection_sha256(self) -> str:
        """Content hash of the passages, "" where none are named: the index does not tell."""
        return self.corpus.fingerprint if self.corpus is not None else ""

    def _files(self) -> list[Path]:
        return sorted(path for path in self.index_dir.iterdir() if path.is_file() and path.suffix != ".lock")

    def discard(self) -> None:
        """Forgets which collection the index was used with; the index stays."""
        forget_pair(self._files())

    def open(self) -> Any:
        """The Java searcher.

        Raises:
            RetrieverMismatch: The number of passages differs from the collection's.
            RetrieverForked: The JVM or this index was opened before a fork.
        """
        if self._searcher is not None and self._pid != os.getpid():
            raise RetrieverForked("this Lucene index was opened before a fork; open it in the child")
        if self._searcher is None:
            try:
                searcher = java_class("io.anserini.search.SimpleSearcher")(str(self.index_dir))
            except JvmForked as error:
                raise RetrieverForked(str(error)) from error
            searcher.set_bm25(self._k1, self._b)
            count = searcher.get_total_num_docs()
            if self.corpus is not None and count != len(self.corpus):
                raise RetrieverMismatch(
                    f"{self.index_dir}: holds {count} passages, the collection has {len(self.corpus)}"
                )
            if self.corpus is not None:
                check_pair(self._files(), self.corpus, f"lucene:{self.index_dir}")
            self._searcher, self._pid = searcher, os.getpid()
        return self._searcher

    def search(self, queries: Sequence[str], k: int, deadline: float | None = None) -> list[list[Hit]]:
        """See `Retriever.search`; scores are Anserini's printed ones."""
        check_k(k)
        searcher = self.open()
        results = []
        for query in queries:
            check_deadline(deadline, "lucene")
            found = self._found(searcher, within_clauses(query), k)
            results.append([self._passage(searcher, identifier, score) for identifier, score in found])
        return results

    def _found(self, searcher: Any, query: str, k: int) -> list[tuple[str, float]]:
        from jnius import JavaException

        try:
            return [(hit.docid, float(hit.score)) for hit in searcher.search(java_string(query), k)]
        except JavaException as error:
            raise RetrievalRejected(
                f"Lucene refuses a query of {len(query)} characters ({error}); send a shorter one",
                FailureDetails(f"lucene:{self.index_dir}"),
            ) from error

    def _passage(self, searcher: Any, identifier: str, score: float) -> Hit:
        stored = searcher.doc_contents(identifier)
        if stored is None:
            raw = searcher.doc_raw(identifier)
            stored = _contents_of(raw) if raw is not None else None
        if stored is not None:
            found = make_hit(identifier, str(stored), score)
            self._check_stored(found)
            return found
        if self.corpus is None:
            raise RetrieverMismatch(f"{self.index_dir}: stores no text; give the passages with collection=")
        hit = self.corpus.passage(int(identifier)) if identifier.isdigit() else None
        if hit is None or hit.id != identifier:
            raise RetrieverMismatch(f"{self.index_dir}: id {identifier!r} is not the line number of its passage")
        return hit._replace(score=score)

    def _check_stored(self, hit: Hit) -> None:
        """Compares a stored passage with the collection's, where ids are line numbers."""
        if self.corpus is None or not hit.id.isdecimal() or int(hit.id) >= len(self.corpus):
            return
        own = self.corpus.passage(int(hit.id))
        if own.id == hit.id and own.contents != hit.contents:
            raise RetrieverMismatch(
                f"{self.index_dir}: passage {hit.id} is another one in the collection; index the collection again"
            )

    def close(self) -> None:
        """Closes the searcher; the JVM stays."""
        if self._searcher is not None and self._pid == os.getpid():
            self._searcher.close()
        self._searcher = None


def _contents_of(raw: str) -> str:
    import json

    record = json.loads(str(raw))
    return str(record["contents"])


def build_lucene_index(jsonl_dir: str | os.PathLike[str], index_dir: str | os.PathLike[str]) -> None:
    """Indexes a folder of `{"id", "contents"}` JSON lines with Anserini, texts stored."""
    java_class("io.anserini.index.IndexCollection").main(
        ["-collection", "JsonCollection", "-input", str(jsonl_dir), "-index", str(index_dir),
         "-generator", "DefaultLuceneDocumentGenerator", "-threads", "1", "-storeRaw"]
    )  # fmt: skip


def open_lucene(name: str, corpus: Corpus | None, k1: float = 0.9, b: float = 0.4) -> LuceneRetriever:
    """Opens `lucene:INDEX_DIR`."""
    return LuceneRetriever(name.partition(":")[2], corpus, k1, b)
