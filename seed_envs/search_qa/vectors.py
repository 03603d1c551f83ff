"""Exact inner-product search over a matrix on disk: memory-mapped, in blocks, no copy of the matrix.

One query is a matrix-vector product, bound by memory bandwidth; a batch is a blocked matrix product, bound by
arithmetic. Equal scores rank by row number. It knows no texts and no encoder.
"""

from __future__ import annotations

from bisect import bisect_right
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seed_envs.errors import DataInvalid
from seed_envs.lucene.storage import map_arrays, read_manifest

FORMAT = "seed-vectors/1"
BLOCK_ROWS = 8192
Float32Matrix = NDArray[np.float32]


class VectorMatrix:
    """Rows to search.

    Args:
        rows: float32, shape (n, d), C-contiguous; usually a memory map.
    """

    def __init__(self, rows: Float32Matrix) -> None:
        if rows.ndim != 2 or rows.dtype != np.float32:
            raise DataInvalid(f"vectors: expected a float32 matrix, got {rows.dtype} with shape {rows.shape}")
        self.rows = rows

    @classmethod
    def load(cls, directory: str | Path) -> tuple[VectorMatrix, dict[str, Any]]:
        """Opens a saved matrix by memory mapping; returns it with its manifest.

        Raises:
            DataMissing, DataInvalid: Nothing there, or not a matrix of this format.
        """
        manifest, _ = read_manifest(directory, FORMAT, "python -m seed_envs.search_qa index --engine flat")
        arrays = map_arrays(directory, manifest)
        if "vectors" not in arrays:
            raise DataInvalid(f"{directory}: the manifest lists no vectors; encode the passages again")
        return cls(arrays["vectors"]), manifest

    def search(self, queries: Float32Matrix, k: int) -> tuple[NDArray[np.int64], Float32Matrix]:
        """The best rows per query.

        Args:
            queries: shape (q, d).
            k: How many at most.

        Returns:
            Row numbers and scores, both of shape (q, min(k, n)), best first.
        """
        if queries.shape[1] != self.rows.shape[1]:
            raise DataInvalid(f"queries have {queries.shape[1]} dimensions, the vectors {self.rows.shape[1]}")
        k = min(k, self.rows.shape[0])
        if k == 0:
            return np.zeros((len(queries), 0), dtype=np.int64), np.zeros((len(queries), 0), dtype=np.float32)
        if len(queries) == 1:
            ids, scores = _best(self.rows @ queries[0], k)
            return ids[None], scores[None]
        return self._search_batch(np.ascontiguousarray(queries, dtype=np.float32), k)

    def _search_batch(self, queries: Float32Matrix, k: int) -> tuple[NDArray[np.int64], Float32Matrix]:
        count, size = len(queries), self.rows.shape[0]
        first = min(max(BLOCK_ROWS, k), size)
        start_scores = queries @ self.rows[:first].T
        best = [_best(row, k) for row in start_scores]
        ids = [found.tolist() for found, _ in best]
        falling = [(-values).tolist() for _, values in best]
        kth = np.array([values[-1] for _, values in best], dtype=np.float32)
        buffer = np.empty((count, BLOCK_ROWS), dtype=np.float32)
        for start in range(first, size, BLOCK_ROWS):
            block = self.rows[start : start + BLOCK_ROWS]
            product = buffer[:, : len(block)]
            np.matmul(queries, block.T, out=product)
            # Only rows whose best score beats the current k-th need a closer look, and few of their scores do.
            for query in np.flatnonzero(product.max(axis=1) > kth).tolist():
                row, listed, numbers = product[query], falling[query], ids[query]
                better = np.flatnonzero(row > kth[query])
                for position, score in zip(better.tolist(), row[better].tolist(), strict=True):
                    if -score < listed[-1]:
                        place = bisect_right(listed, -score)
                        listed.insert(place, -score)
                        numbers.insert(place, position + start)
                        listed.pop()
                        numbers.pop()
                kth[query] = -listed[-1]
        return np.array(ids, dtype=np.int64), -np.array(falling, dtype=np.float32)


def _best(scores: Float32Matrix, k: int) -> tuple[NDArray[np.int64], Float32Matrix]:
    """Positions and values of the k largest, equal values by position."""
    if scores.shape[0] > 4 * k:
        threshold = np.partition(scores, scores.shape[0] - k)[scores.shape[0] - k]
        candidates = np.flatnonzero(scores >= threshold)
    else:
        candidates = np.arange(scores.shape[0])
    order = candidates[np.argsort(-scores[candidates], kind="stable")[:k]]
    return order, scores[order]
