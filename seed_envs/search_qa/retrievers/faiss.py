"""FAISS indices of a collection, opened by memory mapping and checked before the first search.

Accepted are Flat, HNSW, IVF and PQ families, also inside an IDMap, with inner product; wiki-18's prebuilt files open
unchanged. Flat indices are searched by this package's own matrix path, which reads the same mapped bytes.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seed_envs.errors import DataMissing, UnknownOption, require
from seed_envs.forks import PerProcessLock
from seed_envs.search_qa.corpus import Corpus
from seed_envs.search_qa.encoders import Encoder, open_encoder, record_as_json
from seed_envs.search_qa.retrievers.base import (
    Capabilities,
    Hit,
    RetrieverForked,
    RetrieverMismatch,
    check_k,
    fingerprint_of,
)
from seed_envs.search_qa.retrievers.deadlines import check_deadline
from seed_envs.search_qa.retrievers.flat import hits_at
from seed_envs.search_qa.retrievers.pairing import check_pair, forget_pair
from seed_envs.search_qa.vectors import VectorMatrix

ACCEPTED = frozenset(
    {
        "IndexFlat", "IndexFlatIP", "IndexIDMap", "IndexIDMap2", "IndexScalarQuantizer", "IndexHNSWFlat", "IndexHNSWSQ",
        "IndexHNSWPQ", "IndexIVFFlat", "IndexIVFPQ", "IndexIVFScalarQuantizer", "IndexPQ", "IndexPreTransform",
    }
)  # fmt: skip
_PROBES = 3


class FaissRetriever:
    """Search in a FAISS index file.

    Args:
        corpus: The passages; position = FAISS id.
        path: The index file.
        encoder: Makes the query vectors.
        ef_search: HNSW search width; None keeps the file's.
        nprobe: IVF lists per search; None keeps the file's.
        probe: Encode a few passages when opening and require that the index returns them.
    """

    def __init__(
        self,
        corpus: Corpus,
        path: str | os.PathLike[str],
        encoder: Encoder,
        ef_search: int | None = None,
        nprobe: int | None = None,
        probe: bool = True,
    ) -> None:
        self.corpus, self.path, self.encoder = corpus, Path(path), encoder
        if not self.path.is_file():
            raise DataMissing(f"faiss: expected an index file at {str(path)!r}, found none")
        self.capabilities = Capabilities(vector=True)
        self._ef_search, self._nprobe, self._probe = ef_search, nprobe, probe
        self._lock = PerProcessLock()
        self._opened: tuple[int, Any, VectorMatrix | None] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_opened": None}

    @property
    def collection_sha256(self) -> str:
        """Content hash of the passages."""
        return self.corpus.fingerprint

    @cached_property
    def fingerprint(self) -> str:
        """Engine, file, encoder, collection and search parameters."""
        return fingerprint_of(
            {
                "engine": "faiss",
                "file": {"name": self.path.name, "size": self.path.stat().st_size},
                "encoder": record_as_json(self.encoder.record),
                "corpus": self.corpus.fingerprint,
                "count": len(self.corpus),
                "ef": self._ef_search,
                "nprobe": self._nprobe,
            }
        )

    def open(self) -> tuple[Any, VectorMatrix | None]:
        """The index and, for Flat, the view of its vectors.

        Raises:
            RetrieverMismatch: Index, passages and encoder do not belong together.
            RetrieverForked: Opened before a fork with more than one OpenMP thread.
        """
        with self._lock:
            if self._opened is None:
                self._opened = (os.getpid(), *self._open())
            pid, index, matrix = self._opened
            # Mapped vectors survive a fork; other handles are opened again.
            if pid != os.getpid() and matrix is None:
                import faiss

                if faiss.omp_get_max_threads() > 1:
                    raise RetrieverForked("a FAISS index was opened with several threads before a fork")
                self._opened = (os.getpid(), *self._open())
                _, index, matrix = self._opened
            return index, matrix

    def _open(self) -> tuple[Any, VectorMatrix | None]:
        require("faiss", "search", "FAISS retrieval")
        import faiss

        # Threads of several environment processes spin at OpenMP barriers and can hang after a fork.
        faiss.omp_set_num_threads(1)
        try:
            index: Any = faiss.read_index(str(self.path), getattr(faiss, "IO_FLAG_MMAP_IFC", faiss.IO_FLAG_MMAP))
        except RuntimeError as error:
            raise RetrieverMismatch(f"{self.path}: not a readable FAISS index ({error})") from error
        inner: Any = faiss.downcast_index(index.index) if hasattr(index, "id_map") else index
        for name in (type(index).__name__, type(inner).__name__):
            if name not in ACCEPTED:
                raise RetrieverMismatch(
                    f"{self.path}: index type {name} is not supported; use one of {sorted(ACCEPTED)}"
                )
        self._check(index, faiss)
        self._tune(index, faiss)
        matrix = None
        if type(index).__name__ in ("IndexFlat", "IndexFlatIP"):
            rows = faiss.rev_swig_ptr(index.get_xb(), index.ntotal * index.d).reshape(index.ntotal, index.d)
            matrix = VectorMatrix(rows)
        if self._probe:
            self._check_probes(index)
        check_pair([self.path], self.corpus, f"faiss:{self.path}")
        return index, matrix

    def discard(self) -> None:
        """Forgets which collection the index was used with; the file stays."""
        forget_pair([self.path])

    def _check(self, index: Any, faiss: Any) -> None:
        wanted = {
            "passages": (index.ntotal, len(self.corpus)),
            "dimensions": (index.d, self.encoder.record.dimension),
            "metric (0 is inner product)": (index.metric_type, faiss.METRIC_INNER_PRODUCT),
            "trained": (bool(index.is_trained), True),
        }
        for what, (found, expected) in wanted.items():
            if found != expected:
                raise RetrieverMismatch(f"{self.path}: {what}: the index has {found}, needed is {expected}")
        if type(index).__name__.startswith("IndexFlat"):
            least = index.ntotal * index.d * 4
            if not least <= self.path.stat().st_size <= least + 4096:
                raise RetrieverMismatch(
                    f"{self.path}: {self.path.stat().st_size} bytes, but {index.ntotal} x {index.d} floats take {least}"
                )

    def _tune(self, index: Any, faiss: Any) -> None:
        space = faiss.ParameterSpace()
        if self._ef_search is not None:
            space.set_index_parameter(index, "efSearch", self._ef_search)
        if self._nprobe is not None:
            space.set_index_parameter(index, "nprobe", self._nprobe)

    def _check_probes(self, index: Any) -> None:
        """Evenly spread passages, encoded again, must find themselves: catches another encoder or a shuffled file."""
        count = len(self.corpus)
        positions = sorted({count * number // _PROBES for number in range(_PROBES)}) if count else []
        if not positions:
            return
        vectors = self.encoder.encode_passages([self.corpus.passage(position).contents for position in positions])
        _, ids = index.search(vectors, min(10, count))
        for position, row in zip(positions, ids.tolist(), strict=True):
            if position not in row:
                raise RetrieverMismatch(
                    f"{self.path}: passage {position} does not find itself (found {row}); "
                    "encoder, passages and index do not belong together"
                )

    def search(self, queries: Sequence[str], k: int, deadline: float | None = None) -> list[list[Hit]]:
        """See `Retriever.search`."""
        check_k(k)
        if not queries:
            return []
        index, matrix = self.open()
        vectors = np.ascontiguousarray(self.encoder.encode_queries(list(queries)), dtype=np.float32)
        check_deadline(deadline, "faiss")
        ids, scores = matrix.search(vectors, k) if matrix is not None else _swap(index.search(vectors, k))
        return [hits_at(self.corpus, row, values) for row, values in zip(ids.tolist(), scores.tolist(), strict=True)]

    def close(self) -> None:
        """Drops the index; the next search opens it again."""
        with self._lock:
            self._opened = None


def _swap(found: tuple[NDArray[np.float32], NDArray[np.int64]]) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """FAISS returns scores first."""
    return found[1], found[0]


def open_faiss(
    name: str,
    corpus: Corpus | None,
    encoder: str | Encoder = "minilm",
    ef_search: int | None = None,
    nprobe: int | None = None,
    probe: bool = True,
) -> FaissRetriever:
    """Opens `faiss:FILE.index`."""
    path = name.partition(":")[2]
    if corpus is None or not path:
        raise UnknownOption(f"retriever={name!r}: write faiss:FILE.index and give collection=")
    chosen = open_encoder(encoder) if isinstance(encoder, str) else encoder
    return FaissRetriever(corpus, path, chosen, ef_search, nprobe, probe)
