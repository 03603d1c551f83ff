"""Apache Lucene itself as search engine, through Anserini's jar: the witness for the package's own BM25.

Needs Java, pyjnius and the jar inside the pyserini package; pyserini itself is not imported. One JVM per process; it
does not survive a fork.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import weakref
from collections.abc import Sequence
from pathlib import Path

from seed_envs.lucene.java import java_class, java_string

_K1, _B = 0.9, 0.4


class JavaLucene:
    """Anserini's searcher over a catalogue.

    Args:
        documents: (asin, text) pairs.
        folder: Where the index is written; a temporary folder by default.

    Raises:
        DependencyMissing: If Java, pyjnius or the jar is missing.
    """

    def __init__(self, documents: Sequence[tuple[str, str]], folder: Path | None = None) -> None:
        root = Path(tempfile.mkdtemp(prefix="webshop-lucene-")) if folder is None else folder
        if folder is None:
            weakref.finalize(self, shutil.rmtree, root, ignore_errors=True)
        passages = root / "passages"
        passages.mkdir(parents=True, exist_ok=True)
        with (passages / "products.jsonl").open("w", encoding="utf-8") as stream:
            for asin, text in documents:
                stream.write(json.dumps({"id": asin, "contents": text}) + "\n")
        index = root / "index"
        java_class("io.anserini.index.IndexCollection").main(
            [
                *("-collection", "JsonCollection", "-input", str(passages), "-index", str(index)),
                *("-generator", "DefaultLuceneDocumentGenerator", "-threads", "1", "-quiet"),
            ]
        )
        self._pid = os.getpid()
        self._searcher = java_class("io.anserini.search.SimpleSearcher")(str(index))
        self._searcher.set_bm25(_K1, _B)

    def search(self, query: str, k: int) -> list[tuple[str, float]]:
        """The best ``k`` (asin, score) pairs; scores are Anserini's printed ones.

        Raises:
            RuntimeError: In a forked child, where the JVM does not work.
        """
        if os.getpid() != self._pid:
            raise RuntimeError("the JVM was started before a fork; build the Lucene engine in the child")
        return [(str(hit.docid), float(hit.score)) for hit in self._searcher.search(java_string(query), k)]
