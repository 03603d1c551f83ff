"""A cache in front of a retriever: equal queries are answered once, up to a number of bytes. Failures are not kept."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from seed_envs.forks import PerProcessLock
from seed_envs.search_qa.retrievers.base import Capabilities, Hit, Retriever, check_k, collection_sha256, open_now


class CachedRetriever:
    """Remembers the hits of recent queries.

    A longer list serves a smaller k where the engine promises that prefixes agree. The key of a query is what the
    engine says two equal searches share (`query_key`), else its exact text.

    Args:
        inner: The engine.
        max_bytes: Approximate size limit; the least recently used lists go first.
    """

    def __init__(self, inner: Retriever, max_bytes: int = 64 << 20) -> None:
        self.inner = inner
        self.max_bytes = max_bytes
        self.hits = self.misses = 0
        self._key = getattr(inner, "query_key", str)
        self._lock = PerProcessLock()
        self._reset()

    def _reset(self) -> None:
        self._entries: OrderedDict[str, tuple[int, list[Hit], int]] = OrderedDict()
        self._bytes = 0

    def __getstate__(self) -> dict[str, object]:
        return {"inner": self.inner, "max_bytes": self.max_bytes}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    @property
    def capabilities(self) -> Capabilities:
        """Those of the engine."""
        return self.inner.capabilities

    @property
    def fingerprint(self) -> str:
        """That of the engine."""
        return self.inner.fingerprint

    @property
    def collection_sha256(self) -> str:
        """That of the engine."""
        return collection_sha256(self.inner)

    def open(self) -> None:
        """Opens the engine."""
        open_now(self.inner)

    def search(self, queries: Sequence[str], k: int, deadline: float | None = None) -> list[list[Hit]]:
        """See `Retriever.search`; queries that miss go to the engine in one call, without repeats."""
        check_k(k)
        keys = [self._key(query) for query in queries]
        found: dict[str, list[Hit]] = {}
        missing: dict[str, str] = {}
        with self._lock:
            for key, query in zip(keys, queries, strict=True):
                kept = self._look_up(key, k)
                if kept is None:
                    missing.setdefault(key, query)
                else:
                    found[key] = kept
            self.hits += len(queries) - len(missing)
            self.misses += len(missing)
        if missing:
            results = self.inner.search(list(missing.values()), k, deadline)
            with self._lock:
                for key, hits in zip(missing, results, strict=True):
                    found[key] = hits
                    self._store(key, k, hits)
        return [list(found[key]) for key in keys]

    def _look_up(self, key: str, k: int) -> list[Hit] | None:
        entry = self._entries.get(key)
        if entry is None:
            return None
        size, hits, _ = entry
        if size != k and not (self.capabilities.prefix_stable and (size > k or len(hits) < size)):
            return None
        self._entries.move_to_end(key)
        return hits[:k]

    def _store(self, key: str, k: int, hits: list[Hit]) -> None:
        old = self._entries.pop(key, None)
        if old is not None:
            self._bytes -= old[2]
        size = 200 + len(key) + sum(200 + len(hit.title) + len(hit.text) for hit in hits)
        self._entries[key] = (k, hits, size)
        self._bytes += size
        while self._bytes > self.max_bytes and self._entries:
            _, (_, _, freed) = self._entries.popitem(last=False)
            self._bytes -= freed

    def close(self) -> None:
        """Closes the engine and forgets everything."""
        self.inner.close()
        self._reset()
