"""From a name or URL to a retriever. One row per engine; engines are imported when they are asked for."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from seed_envs.errors import UnknownOption, close_matches
from seed_envs.forks import PerProcessLock
from seed_envs.redaction import learn, redact
from seed_envs.search_qa.corpus import Corpus
from seed_envs.search_qa.retrievers.base import Retriever

_PACKAGE = "seed_envs.search_qa.retrievers"

ENGINES: dict[str, tuple[str, str]] = {
    "bm25": (f"{_PACKAGE}.bm25:open_bm25", "bm25 or bm25:INDEX_DIR"),
    "flat": (f"{_PACKAGE}.flat:open_flat", "flat or flat:VECTOR_DIR"),
    "faiss": (f"{_PACKAGE}.faiss:open_faiss", "faiss:FILE.index"),
    "lucene": (f"{_PACKAGE}.lucene:open_lucene", "lucene:INDEX_DIR"),
    "http": (f"{_PACKAGE}.http:open_http", "http://HOST:PORT[,http://HOST:PORT...]"),
    "https": (f"{_PACKAGE}.http:open_http", "https://HOST:PORT[,...]"),
    "opensearch": (f"{_PACKAGE}.opensearch:open_opensearch", "opensearch://HOST:9200/INDEX"),
    "elasticsearch": (f"{_PACKAGE}.opensearch:open_elasticsearch", "elasticsearch://HOST:9200/INDEX"),
    "qdrant": (f"{_PACKAGE}.qdrant:open_qdrant", "qdrant://HOST:6333/COLLECTION"),
    "postgresql": (f"{_PACKAGE}.pgvector:open_pgvector", "postgresql://USER@HOST:5432/DATABASE?table=NAME"),
    "redis": (f"{_PACKAGE}.redis:open_redis", "redis://HOST:6379/0?index=NAME"),
    "hybrid": (f"{_PACKAGE}.hybrid:open_hybrid", "hybrid:bm25+flat"),
}
"""Scheme to the function that opens it, and how the name is written."""

_HOLDING = frozenset({"http", "https", "opensearch", "elasticsearch", "qdrant", "postgresql", "redis"})
"""Engines that hold the passages themselves and need them only to compare."""

_shared: dict[tuple[Any, ...], Retriever] = {}
_lock = PerProcessLock()


def holds_passages(name: str) -> bool:
    """Whether an engine, by its name or URL, holds the passages itself."""
    return name.partition(":")[0] in _HOLDING


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
    if scheme not in ENGINES:
        ways = ", ".join(how for _, how in ENGINES.values())
        raise UnknownOption(
            f"retriever={redact(name)!r} is unknown; write one of: {ways}.{close_matches(scheme, ENGINES)}"
        )
    module, _, function = ENGINES[scheme][0].partition(":")
    opener = getattr(importlib.import_module(module), function)
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
