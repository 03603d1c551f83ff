"""Lucene's BM25 without Java: the same tokens, the same float32 scores, the same ranking."""

from seed_envs.lucene.analyzer import analyze

__all__ = ["analyze"]
