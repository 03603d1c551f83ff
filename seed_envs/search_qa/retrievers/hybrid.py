"""Reciprocal rank fusion of several retrievers, itself a retriever."""

from __future__ import annotations

from collections.abc import Sequence

from seed_envs.errors import UnknownOption
from seed_envs.search_qa.retrievers.base import (
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
            raise UnknownOption(f"a hybrid needs at least two retrievers, got {len(retrievers)}")
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
