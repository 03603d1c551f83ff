"""Reciprocal rank fusion of several retrievers, and re-ranking of hits; both are retrievers themselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from seed_envs.search_qa.corpus import Corpus
from seed_envs.search_qa.retrievers.base import (
    MAX_K,
    Capabilities,
    Hit,
    Retriever,
    RetrieverMismatch,
    check_k,
    collection_sha256,
    fingerprint_of,
    open_now,
)


class HybridRetriever:
    """Adds 1 / (constant + rank) over the lists of several engines.

    Args:
        retrievers: At least two engines over the same passages; ids are compared.
        depth: Hits taken from each.
        constant: The constant of reciprocal rank fusion (60 in Cormack et al. 2009).
    """

    def __init__(self, retrievers: Sequence[Retriever], depth: int = 30, constant: int = 60) -> None:
        if len(retrievers) < 2:
            raise ValueError(f"a hybrid needs at least two retrievers, got {len(retrievers)}")
        self.retrievers, self.depth, self.constant = list(retrievers), check_k(depth), constant
        self.capabilities = Capabilities(vector=any(r.capabilities.vector for r in retrievers), prefix_stable=False)

    @property
    def fingerprint(self) -> str:
        """The engines and the fusion."""
        parts = [retriever.fingerprint for retriever in self.retrievers]
        return fingerprint_of({"engine": "rrf", "constant": self.constant, "depth": self.depth, "parts": parts})

    @property
    def collection_sha256(self) -> str:
        """That of the engines, as far as they tell."""
        return next((known for known in map(collection_sha256, self.retrievers) if known), "")

    def open(self) -> None:
        """Opens the engines.

        Raises:
            RetrieverMismatch: They search different collections.
        """
        for retriever in self.retrievers:
            open_now(retriever)
        known = {name for name in map(collection_sha256, self.retrievers) if name}
        if len(known) > 1:
            raise RetrieverMismatch(f"the engines of the hybrid search different collections: {sorted(known)}")

    def search(self, queries: Sequence[str], k: int, deadline: float | None = None) -> list[list[Hit]]:
        """See `Retriever.search`; equal sums rank by the first engine's order."""
        check_k(k)
        depth = max(self.depth, k)
        lists = [retriever.search(queries, depth, deadline) for retriever in self.retrievers]
        return [self._fuse([found[index] for found in lists], k) for index in range(len(queries))]

    def _fuse(self, lists: Sequence[Sequence[Hit]], k: int) -> list[Hit]:
        sums: dict[str, float] = {}
        passages: dict[str, Hit] = {}
        for hits in lists:
            for rank, hit in enumerate(hits, start=1):
                sums[hit.id] = sums.get(hit.id, 0.0) + 1.0 / (self.constant + rank)
                passages.setdefault(hit.id, hit)
        best = sorted(sums, key=lambda identifier: -sums[identifier])[:k]
        return [passages[identifier]._replace(score=sums[identifier]) for identifier in best]

    def close(self) -> None:
        """Closes all engines."""
        for retriever in self.retrievers:
            retriever.close()


Scorer = Callable[[list[tuple[str, str]]], Sequence[float]]
"""(query, passage) pairs to scores, for example a cross-encoder's `predict`."""


class RerankingRetriever:
    """Orders the first hits of an engine by a scorer.

    Args:
        inner: The engine.
        scorer: Scores pairs; higher is better.
        name: Identifies the scorer in the fingerprint.
        depth: Hits taken from the engine.
    """

    def __init__(self, inner: Retriever, scorer: Scorer, name: str, depth: int = 30) -> None:
        self.inner, self.scorer, self.name, self.depth = inner, scorer, name, check_k(depth)
        self.capabilities = Capabilities(vector=inner.capabilities.vector, prefix_stable=False)

    @property
    def fingerprint(self) -> str:
        """The engine and the scorer."""
        record = {"engine": "rerank", "scorer": self.name, "depth": self.depth, "inner": self.inner.fingerprint}
        return fingerprint_of(record)

    def open(self) -> None:
        """Opens the engine."""
        open_now(self.inner)

    def search(self, queries: Sequence[str], k: int, deadline: float | None = None) -> list[list[Hit]]:
        """See `Retriever.search`."""
        check_k(k)
        found = self.inner.search(queries, min(max(self.depth, k), MAX_K), deadline)
        pairs = [(query, hit.contents) for query, hits in zip(queries, found, strict=True) for hit in hits]
        scores = iter(self.scorer(pairs) if pairs else [])
        results = []
        for hits in found:
            scored = [hit._replace(score=float(next(scores))) for hit in hits]
            results.append(sorted(scored, key=lambda hit: -(hit.score or 0.0))[:k])
        return results

    def close(self) -> None:
        """Closes the engine."""
        self.inner.close()


def open_hybrid(name: str, corpus: Corpus | None, **options: Any) -> HybridRetriever:
    """Opens `hybrid:A+B`; `options` maps an engine's name to its options, besides `depth` and `constant`."""
    from seed_envs.search_qa.retrievers.factory import open_retriever

    fusion = {key: options.pop(key) for key in ("depth", "constant") if key in options}
    parts = name.partition(":")[2].split("+")
    return HybridRetriever([open_retriever(part, corpus, **options.get(part, {})) for part in parts], **fusion)
