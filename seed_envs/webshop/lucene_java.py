"""Apache Lucene itself as search engine, through Anserini's jar: the witness for the package's own BM25.

Needs Java, pyjnius and the jar inside the pyserini package; pyserini itself is not imported. One JVM per process; it
does not survive a fork.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import tempfile
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from seed_envs.errors import DependencyMissing

_INSTALL = (
    "pip install --no-deps pyserini==0.25.0 && pip install pyjnius, and a Java runtime "
    "(Debian: apt-get install openjdk-17-jre-headless)"
)
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
        _java_class("io.anserini.index.IndexCollection").main(
            [
                *("-collection", "JsonCollection", "-input", str(passages), "-index", str(index)),
                *("-generator", "DefaultLuceneDocumentGenerator", "-threads", "1", "-quiet"),
            ]
        )
        self._pid = os.getpid()
        self._searcher = _java_class("io.anserini.search.SimpleSearcher")(str(index))
        self._searcher.set_bm25(_K1, _B)

    def search(self, query: str, k: int) -> list[tuple[str, float]]:
        """The best ``k`` (asin, score) pairs; scores are Anserini's printed ones.

        Raises:
            RuntimeError: In a forked child, where the JVM does not work.
        """
        if os.getpid() != self._pid:
            raise RuntimeError("the JVM was started before a fork; build the Lucene engine in the child")
        text = _java_class("java.lang.String")(query.encode("utf-8", "replace"), "UTF-8")
        return [(str(hit.docid), float(hit.score)) for hit in self._searcher.search(text, k)]


def _java_class(name: str) -> Any:
    """A Java class; starts the JVM on first use."""
    if importlib.util.find_spec("jnius_config") is None:
        raise DependencyMissing(f"search_engine='lucene' needs pyjnius and pyserini's jar: {_INSTALL}")
    import jnius_config

    if not jnius_config.vm_running:
        jar = _anserini_jar()
        os.environ["JAVA_HOME"] = _java_home()
        jnius_config.set_classpath(str(jar))
        silent = Path(__file__).parent / "data" / "log4j2.properties"
        jnius_config.add_options("-Xmx2g", "-XX:+UseSerialGC", "-Xrs", f"-Dlog4j2.configurationFile={silent}")
    from jnius import autoclass

    return autoclass(name)


def _anserini_jar() -> Path:
    found = importlib.util.find_spec("pyserini")
    folder = Path(found.origin).parent / "resources" / "jars" if found and found.origin else None
    jars = sorted(folder.glob("anserini-*-fatjar.jar")) if folder and folder.is_dir() else []
    if not jars:
        raise DependencyMissing(f"search_engine='lucene' needs pyserini's jar: {_INSTALL}")
    return jars[-1]


def _java_home() -> str:
    homes = [os.environ.get("JAVA_HOME", ""), *sorted(map(str, Path("/usr/lib/jvm").glob("java-*-openjdk*")))]
    for home in homes:
        if home and next(Path(home).glob("**/libjvm.so"), None):
            return home
    java = shutil.which("java")
    if java:
        return str(Path(java).resolve().parent.parent)
    raise DependencyMissing(f"no Java runtime found (JAVA_HOME, /usr/lib/jvm, PATH). {_INSTALL}")
