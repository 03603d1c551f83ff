"""Product search: a ranked list of at most 50 products for a text.

The default engine is this package's own Lucene-exact BM25. ``lucene`` asks Apache Lucene itself (Java, through
pyserini's jar) and serves as the witness. Special keywords and paging belong to the shop.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

from seed_envs.arguments import check_choice
from seed_envs.webshop.catalogue import Product

HITS = 50
MAX_CLAUSES = 1024


class SearchEngine(Protocol):
    """Anything that ranks products."""

    def search(self, query: str, k: int) -> Sequence[tuple[str, float]]:
        """The best ``k`` (asin, score) pairs, best first."""
        ...


class OwnBM25:
    """This package's BM25 over a catalogue.

    Args:
        products: The catalogue.
    """

    def __init__(self, products: Sequence[Product]) -> None:
        from seed_envs.lucene import BM25Index, analyze

        self.index = BM25Index.build(documents(products), ties="id")
        self._analyze = analyze
        self._asins = [product.asin for product in products]

    def search(self, query: str, k: int) -> list[tuple[str, float]]:
        """The best ``k`` (asin, score) pairs, best first."""
        asins = self._asins
        return [(asins[hit[0]], hit[1]) for hit in self.index.search_terms(self._analyze(query), k)]


class TooManyWords(ValueError):
    """The query has more distinct terms than the engine accepts."""


def documents(products: Iterable[Product]) -> list[tuple[str, str]]:
    """(asin, text) pairs as they are indexed."""
    return [(product.asin, product.document) for product in products]


def build_engine(name: str, products: Sequence[Product], folder: Path | None = None) -> SearchEngine:
    """Builds a search engine over a catalogue.

    Args:
        name: ``bm25`` (own, default) or ``lucene`` (Java).
        products: The catalogue.
        folder: Where ``lucene`` keeps its index; a temporary folder by default.

    Raises:
        UnknownOption: If there is no engine of that name.
        DependencyMissing: If the Java engine is not installed.
    """
    check_choice("search_engine", name, ("bm25", "lucene"))
    if name == "bm25":
        return OwnBM25(products)
    from seed_envs.webshop.lucene_java import JavaLucene

    return JavaLucene(documents(products), folder)


def check_length(query: str) -> None:
    """Refuses a query that Lucene refuses.

    Raises:
        TooManyWords: If the query has more than 1,024 distinct terms.
    """
    # Most queries are too short to hold that many terms (a Han character is a term of its own).
    if len(query) <= MAX_CLAUSES:
        return
    from seed_envs.lucene import analyze

    count = len(set(analyze(query)))
    if count > MAX_CLAUSES:
        raise TooManyWords(f"the search has {count} distinct words; at most {MAX_CLAUSES} are accepted")
