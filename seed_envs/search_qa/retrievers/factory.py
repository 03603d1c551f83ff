"""From a name or URL to a retriever. One row per engine; engines are imported when they are asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from seed_envs.errors import UnknownOption, close_matches
from seed_envs.forks import PerProcessLock
from seed_envs.plugins import OpenTable
from seed_envs.redaction import learn, redact
from seed_envs.registration import load_attribute
from seed_envs.search_qa.corpus import Corpus
from seed_envs.search_qa.retrievers.base import Retriever

_PACKAGE = "seed_envs.search_qa.retrievers"


@dataclass(frozen=True)
class Engine:
    """One kind of retriever.

    Attributes:
        opener: ``module:function``, called with the whole name, the passages (or None) and the options.
        written: How the name is written; what stands before its first colon is the engine's key.
        holds: It holds the passages itself and needs them only to compare.
    """

    opener: str
    written: str
    holds: bool = False


ENGINES: OpenTable[Engine] = OpenTable(
    "retriever",
    "retrievers",
    Engine,
    {
        "bm25": Engine(f"{_PACKAGE}.bm25:open_bm25", "bm25 or bm25:INDEX_DIR"),
        "flat": Engine(f"{_PACKAGE}.flat:open_flat", "flat or flat:VECTOR_DIR"),
        "faiss": Engine(f"{_PACKAGE}.faiss:open_faiss", "faiss:FILE.index"),
        "lucene": Engine(f"{_PACKAGE}.lucene:open_lucene", "lucene:INDEX_DIR"),
        "http": Engine(f"{_PACKAGE}.http:open_http", "http://HOST:PORT[,http://HOST:PORT...]", True),
        "https": Engine(f"{_PACKAGE}.http:open_http", "https://HOST:PORT[,...]", True),
        "opensearch": Engine(f"{_PACKAGE}.opensearch:open_opensearch", "opensearch://HOST:9200/INDEX", True),
        "elasticsearch": Engine(f"{_PACKAGE}.opensearch:open_elasticsearch", "elasticsearch://HOST:9200/INDEX", True),
        "qdrant": Engine(f"{_PACKAGE}.qdrant:open_qdrant", "qdrant://HOST:6333/COLLECTION", True),
        "postgresql": Engine(
            f"{_PACKAGE}.pgvector:open_pgvector", "postgresql://USER@HOST:5432/DATABASE?table=NAME", True
        ),
        "redis": Engine(f"{_PACKAGE}.redis:open_redis", "redis://HOST:6379/0?index=NAME", True),
        "hybrid": Engine(f"{_PACKAGE}.hybrid:open_hybrid", "hybrid:bm25+flat"),
        "python": Engine(f"{_PACKAGE}.functions:open_function", "python:MODULE:FUNCTION"),
    },
    UnknownOption,
)
"""Every engine by its scheme; an installed package adds its own as an entry point of ``seed_envs.retrievers``."""

_shared: dict[tuple[Any, ...], Retriever] = {}
_lock = PerProcessLock()


def holds_passages(name: str) -> bool:
    """Whether an engine, by its name or URL, holds the passages itself."""
    engine = ENGINES.get(name.partition(":")[0])
    return engine is not None and engine.holds


def open_retriever(name: str, corpus: Corpus | None = None, **options: Any) -> Retriever:
    """Makes a retriever; nothing is opened before its first search.

    Args:
        name: An engine's name or URL, see `ENGINES`.
        corpus: The passages; engines that hold passages themselves compare theirs with it, unless it is None.
        **options: Passed to the engine.

    Raises:
        UnknownOption: No such engine, or it does not take such options.
    """
    learn([name, options])
    scheme = name.partition(":")[0]
    if scheme not in list(ENGINES):
        ways = ", ".join(engine.written for engine in ENGINES.values())
        raise UnknownOption(
            f"retriever={redact(name)!r} is unknown; write one of: {ways}.{close_matches(scheme, ENGINES)}"
        )
    opener = load_attribute(ENGINES.find(scheme).opener)
    try:
        retriever: Retriever = opener(name, corpus, **options)
    except TypeError as error:
        raise UnknownOption(f"retriever={redact(name)!r} with the options {redact(options)!r}: {error}") from error
    return retriever


def shared_retriever(name: str, corpus: Corpus | None, options: Mapping[str, Any], cache_bytes: int) -> Retriever:
    """As `open_retriever`, but one retriever, with its cache, for all environments of the process."""
    from seed_envs.search_qa.retrievers.cache import CachedRetriever

    key = (name, corpus.fingerprint if corpus is not None else "", repr(sorted(options.items())), cache_bytes)
    with _lock:
        if key not in _shared:
            retriever: Retriever = open_retriever(name, corpus, **options)
            _shared[key] = CachedRetriever(retriever, cache_bytes) if cache_bytes else retriever
        return _shared[key]
