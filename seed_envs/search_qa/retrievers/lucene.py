"""Existing Lucene indices (Anserini, pyserini) through the JVM: a reference engine and a loader, not the default.

Only the Anserini jar inside the pyserini package is used, never pyserini itself. One JVM runs per process and does not
survive a fork: a child that inherits one gets `RetrieverForked` at once, never a hang.

Python 3.11 with Java 11 to 17 needs `pyserini==0.25.0`; Python 3.12 or newer with Java 21 can use newer ones.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from seed_envs.errors import DataMissing, DependencyMissing
from seed_envs.search_qa.corpus import Corpus
from seed_envs.search_qa.retrievers.base import (
    Capabilities,
    Hit,
    RetrieverForked,
    RetrieverMismatch,
    check_k,
    fingerprint_of,
    make_hit,
)
from seed_envs.search_qa.retrievers.deadlines import check_deadline
from seed_envs.search_qa.retrievers.forks import PerProcessLock

_INSTALL = (
    "pip install --no-deps pyserini==0.25.0 && pip install pyjnius, and a Java runtime "
    "(Debian: apt-get install openjdk-17-jre-headless)"
)
_jvm: list[int] = []
_lock = PerProcessLock()


def anserini_jar() -> Path:
    """The jar inside the installed pyserini package.

    Raises:
        DependencyMissing: There is none.
    """
    found = importlib.util.find_spec("pyserini")
    folder = Path(found.origin).parent / "resources" / "jars" if found and found.origin else None
    jars = sorted(folder.glob("anserini-*-fatjar.jar")) if folder and folder.is_dir() else []
    if not jars or importlib.util.find_spec("jnius_config") is None:
        raise DependencyMissing(f"Lucene indices need pyserini's jar and pyjnius: {_INSTALL}")
    return jars[-1]


def find_java() -> str:
    """JAVA_HOME of a Java runtime, also where Debian puts it.

    Raises:
        DependencyMissing: There is none.
    """
    homes = [os.environ.get("JAVA_HOME", ""), *sorted(map(str, Path("/usr/lib/jvm").glob("java-*-openjdk*")))]
    for home in homes:
        if home and next(Path(home).glob("**/libjvm.so"), None):
            return home
    java = shutil.which("java")
    if java:
        return str(Path(java).resolve().parent.parent)
    raise DependencyMissing(f"no Java runtime found (JAVA_HOME, /usr/lib/jvm, PATH). {_INSTALL}")


def java_class(name: str) -> Any:
    """A Java class; starts the JVM of this process on first use.

    Raises:
        RetrieverForked: The JVM was started before a fork.
    """
    with _lock:
        if _jvm and _jvm[0] != os.getpid():
            raise RetrieverForked(
                "the JVM was started before a fork and cannot be used in the child; "
                "search first in the children, or start them with 'spawn'"
            )
        if not _jvm:
            jar = anserini_jar()
            os.environ["JAVA_HOME"] = find_java()
            import jnius_config

            if not jnius_config.vm_running:
                jnius_config.set_classpath(str(jar))
                jnius_config.add_options("-Xmx2g", "-XX:+UseSerialGC", "-Xrs")
            _jvm.append(os.getpid())
        from jnius import autoclass

        return autoclass(name)


def java_string(text: str) -> Any:
    """A Java string from UTF-8 bytes; direct conversion loses characters outside the basic plane."""
    return java_class("java.lang.String")(text.encode("utf-8", "replace"), "UTF-8")


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
        self.capabilities = Capabilities(exact_lucene=True)
        self._searcher: Any = None
        self._pid = 0

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_searcher": None}

    @cached_property
    def fingerprint(self) -> str:
        """Engine, index files and parameters."""
        files = sorted((path.name, path.stat().st_size) for path in self.index_dir.iterdir() if path.is_file())
        return fingerprint_of({"engine": "lucene", "files": files, "k1": self._k1, "b": self._b})

    def open(self) -> Any:
        """The Java searcher.

        Raises:
            RetrieverMismatch: The number of passages differs from the collection's.
            RetrieverForked: See `java_class`.
        """
        if self._searcher is not None and self._pid != os.getpid():
            raise RetrieverForked("this Lucene index was opened before a fork; open it in the child")
        if self._searcher is None:
            searcher = java_class("io.anserini.search.SimpleSearcher")(str(self.index_dir))
            searcher.set_bm25(self._k1, self._b)
            count = searcher.get_total_num_docs()
            if self.corpus is not None and count != len(self.corpus):
                raise RetrieverMismatch(
                    f"{self.index_dir}: holds {count} passages, the collection has {len(self.corpus)}"
                )
            self._searcher, self._pid = searcher, os.getpid()
        return self._searcher

    def search(self, queries: Sequence[str], k: int, deadline: float | None = None) -> list[list[Hit]]:
        """See `Retriever.search`; scores are Anserini's printed ones."""
        check_k(k)
        searcher = self.open()
        results = []
        for query in queries:
            check_deadline(deadline, "lucene")
            found = [(hit.docid, float(hit.score)) for hit in searcher.search(java_string(query), k)]
            results.append([self._passage(searcher, identifier, score) for identifier, score in found])
        return results

    def _passage(self, searcher: Any, identifier: str, score: float) -> Hit:
        stored = searcher.doc_contents(identifier)
        if stored is None:
            raw = searcher.doc_raw(identifier)
            stored = _contents_of(raw) if raw is not None else None
        if stored is not None:
            return make_hit(identifier, str(stored), score)
        if self.corpus is None:
            raise RetrieverMismatch(f"{self.index_dir}: stores no text; give the passages with collection=")
        hit = self.corpus.passage(int(identifier)) if identifier.isdigit() else None
        if hit is None or hit.id != identifier:
            raise RetrieverMismatch(f"{self.index_dir}: id {identifier!r} is not the line number of its passage")
        return hit._replace(score=score)

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
