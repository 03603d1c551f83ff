"""Lucene's limit on the words of a query: 1,024 different terms (`IndexSearcher.maxClauseCount`); more are an error.

A query that is longer is searched by its first words. Engines with and without Lucene cut at the same place.
"""

from __future__ import annotations

from collections.abc import Sequence

from seed_envs.lucene import analyze
from seed_envs.lucene.tokenizer import tokenize

MAX_CLAUSES = 1024


def first_clauses(terms: Sequence[str]) -> Sequence[str]:
    """The terms up to the last one before a 1,025th different one."""
    if len(terms) <= MAX_CLAUSES:
        return terms
    seen: set[str] = set()
    for position, term in enumerate(terms):
        seen.add(term)
        if len(seen) > MAX_CLAUSES:
            return terms[:position]
    return terms


def within_clauses(query: str) -> str:
    """The query, or its first words if it has more than 1,024 different terms."""
    if len(query) <= MAX_CLAUSES or len(set(analyze(query))) <= MAX_CLAUSES:
        return query
    seen: set[str] = set()
    kept = []
    for word in tokenize(query):
        seen.update(analyze(word))
        if len(seen) > MAX_CLAUSES:
            break
        kept.append(word)
    return " ".join(kept)
