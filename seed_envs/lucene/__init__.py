"""Lucene's BM25 without Java: the same tokens, the same float32 scores, the same ranking."""

from seed_envs.lucene.analyzer import analyze
from seed_envs.lucene.index import BM25Index

__all__ = ["BM25Index", "analyze"]
