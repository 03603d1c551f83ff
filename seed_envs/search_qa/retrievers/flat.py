"""Exact dense retrieval over a memory-mapped matrix of passage vectors.

Meant for up to some hundred thousand passages; above that use FAISS or a service. The matrix stores which encoder and
which collection it belongs to, and refuses others.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from seed_envs.data import cache_root
from seed_envs.errors import UnknownOption
from seed_envs.lucene.storage import MANIFEST, ArrayWriter, exclusive
from seed_envs.search_qa.corpus import Corpus
from seed_envs.search_qa.encoders import Encoder, open_encoder, record_as_json
from seed_envs.search_qa.retrievers.base import Capabilities, Hit, RetrieverMismatch, check_k, fingerprint_of
from seed_envs.search_qa.retrievers.deadlines import check_deadline
from seed_envs.search_qa.vectors import FORMAT, VectorMatrix

_STEP = 512


def hits_at(corpus: Corpus, positions: Sequence[int], scores: Sequence[float]) -> list[Hit]:
    """Passages with scores; positions below zero (no hit) are dropped together with their scores."""
    return [
        corpus.passage(position)._replace(score=score)
        for position, score in zip(positions, scores, strict=True)
        if position >= 0
    ]


class FlatRetriever:
    """Exact inner-product search.

    Args:
        corpus: The passages.
        encoder: Makes the vectors.
        vectors_dir: Where the matrix is or will be; None puts it into the cache.
        progress: Show a progress line while encoding.
    """

    def __init__(
        self,
        corpus: Corpus,
        encoder: Encoder,
        vectors_dir: str | os.PathLike[str] | None = None,
        progress: bool = False,
    ) -> None:
        self.corpus, self.encoder, self._progress = corpus, encoder, progress
        self.capabilities = Capabilities(vector=True)
        self._vectors_dir = Path(vectors_dir) if vectors_dir is not None else None
        self._matrix: VectorMatrix | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_matrix": None}

    @property
    def collection_sha256(self) -> str:
        """Content hash of the passages."""
        return self.corpus.fingerprint

    @cached_property
    def fingerprint(self) -> str:
        """Engine, encoder and collection."""
        return fingerprint_of({"engine": "flat", **self._identity()})

    def _identity(self) -> dict[str, Any]:
        return {
            "encoder": record_as_json(self.encoder.record),
            "corpus": self.corpus.fingerprint,
            "count": len(self.corpus),
        }

    @property
    def vectors_dir(self) -> Path:
        """Where the matrix lies."""
        if self._vectors_dir is None:
            self._vectors_dir = cache_root() / "search_qa" / "flat" / self.fingerprint[:24]
        return self._vectors_dir

    def open(self) -> VectorMatrix:
        """Opens the matrix, encoding the passages first where there is none.

        Raises:
            RetrieverMismatch: It was made by another encoder or from other passages.
        """
        if self._matrix is None:
            if not (self.vectors_dir / MANIFEST).is_file():
                with exclusive(self.vectors_dir):
                    if not (self.vectors_dir / MANIFEST).is_file():
                        build_vectors(self.corpus, self.encoder, self.vectors_dir, self._identity(), self._progress)
            matrix, manifest = VectorMatrix.load(self.vectors_dir)
            for key, value in self._identity().items():
                if manifest.get(key) != value:
                    raise RetrieverMismatch(
                        f"vectors {self.vectors_dir}: {key} is {manifest.get(key)!r}, needed is {value!r}; "
                        "give another folder, or encode again with: python -m seed_envs.search_qa index --collection "
                        f"{getattr(self.corpus, 'given', 'FILE')} --retriever flat:{self.vectors_dir} --replace"
                    )
            self.encoder.encode_queries(["ready"])  # loads the encoder
            self._matrix = matrix
        return self._matrix

    def discard(self) -> None:
        """Removes the matrix, so that the next opening encodes again; a folder that holds none stays."""
        self.close()
        if (self.vectors_dir / MANIFEST).is_file():
            shutil.rmtree(self.vectors_dir)

    def search(self, queries: Sequence[str], k: int, deadline: float | None = None) -> list[list[Hit]]:
        """See `Retriever.search`."""
        check_k(k)
        if not queries:
            return []
        matrix = self.open()
        vectors = self.encoder.encode_queries(list(queries))
        check_deadline(deadline, "flat")
        ids, scores = matrix.search(vectors, k)
        return [hits_at(self.corpus, row, values) for row, values in zip(ids.tolist(), scores.tolist(), strict=True)]

    def close(self) -> None:
        """Drops the mapping; the next search maps it again."""
        self._matrix = None


def build_vectors(
    corpus: Corpus, encoder: Encoder, directory: Path, identity: Mapping[str, Any], progress: bool = False
) -> None:
    """Encodes a collection into a folder; goes on after an interruption.

    Args:
        corpus: The passages.
        encoder: The encoder.
        directory: The target.
        identity: Encoder record, collection fingerprint and count, stored with the matrix.
        progress: Write a progress line to standard error.
    """
    count, size = len(corpus), encoder.record.dimension
    partial = directory.with_name(f".{directory.name}.{fingerprint_of(identity)[:12]}.partial")
    done_file = partial.with_suffix(".done")
    done = int(done_file.read_text()) if done_file.is_file() and partial.is_file() else 0
    rows = np.memmap(partial, dtype=np.float32, mode="r+" if done else "w+", shape=(max(count, 1), size))
    for start in range(done, count, _STEP):
        stop = min(start + _STEP, count)
        texts = [corpus.passage(position).contents for position in range(start, stop)]
        rows[start:stop] = encoder.encode_passages(texts)
        rows.flush()
        done_file.write_text(str(stop))
        if progress:
            sys.stderr.write(f"\rencoding {stop:,}/{count:,}" + ("\n" if stop == count else ""))
            sys.stderr.flush()
    writer = ArrayWriter(directory)
    target = writer.create("vectors", np.float32, count, size)
    for start in range(0, count, 65536):
        target[start : start + 65536] = rows[start : min(start + 65536, count)]
    del target, rows
    writer.finish({"format": FORMAT, **identity})
    partial.unlink()
    done_file.unlink(missing_ok=True)


def open_flat(
    name: str, corpus: Corpus | None, encoder: str | Encoder = "minilm", progress: bool = False
) -> FlatRetriever:
    """Opens `flat` or `flat:VECTOR_DIR`."""
    if corpus is None:
        raise UnknownOption("retriever='flat' needs passages: give collection=")
    chosen = open_encoder(encoder) if isinstance(encoder, str) else encoder
    return FlatRetriever(corpus, chosen, name.partition(":")[2] or None, progress)
