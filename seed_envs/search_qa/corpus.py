"""Passage collections: a list in memory, or a JSON-lines file opened by memory mapping with constant-time line access.

A passage's position is its line number, the same number that FAISS indices of the collection use. The file is never
copied; a sidecar of line offsets is built once. Nothing is ranked here.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import mmap
import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from seed_envs.data import cache_root
from seed_envs.errors import DataInvalid, DataMissing
from seed_envs.search_qa.retrievers.base import Hit, fingerprint_of, make_hit
from seed_envs.search_qa.whole_files import whole_file

MAX_UNPACKED = 64 << 30
"""Largest collection that is unpacked from a .gz file, in bytes."""
_BLOCK = 64 << 20


class Corpus(Protocol):
    """Passages by position.

    Attributes:
        passage: Gives the passage at a position, without a score.
    """

    passage: Callable[[int], Hit]

    def __len__(self) -> int: ...

    @property
    def fingerprint(self) -> str:
        """sha256 that identifies the content."""


def iterate(corpus: Corpus, start: int = 0) -> Iterator[Hit]:
    """All passages from a position on."""
    read = corpus.read if isinstance(corpus, JsonlCorpus) else corpus.passage
    for position in range(start, len(corpus)):
        yield read(position)


class ListCorpus:
    """Passages in memory.

    Args:
        passages: The passages; ids must differ.
    """

    def __init__(self, passages: Sequence[Hit]) -> None:
        self._passages = passages
        self._fingerprint = ""
        self.passage: Callable[[int], Hit] = passages.__getitem__

    def __len__(self) -> int:
        return len(self._passages)

    @property
    def fingerprint(self) -> str:
        """sha256 over ids and contents."""
        if not self._fingerprint:
            digest = hashlib.sha256()
            for hit in self._passages:
                digest.update(f"{hit.id}\n{hit.contents}\n\n".encode("utf-8", "surrogatepass"))
            self._fingerprint = digest.hexdigest()
        return self._fingerprint


class JsonlCorpus:
    """A JSON-lines file of passages: `{"id", "contents"}` as wiki-18, or `{"id", "title", "text"}`.

    Args:
        path: The file; `.gz` is unpacked once into the cache.

    Raises:
        DataMissing: No such file.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        if not self.path.is_file():
            raise DataMissing(f"passages: expected a .jsonl or .jsonl.gz file at {str(path)!r}, found none")
        if self.path.suffix == ".gz":
            self.path = _unpack(self.path)
        self._offsets = _line_offsets(self.path)
        self._map: mmap.mmap | None = None
        self._fingerprint = ""
        # Popular passages are asked for again and again; 4,096 of about 100 words take some 6 MB.
        self.passage: Callable[[int], Hit] = lru_cache(maxsize=4096)(self.read)

    def __len__(self) -> int:
        return int(self._offsets.shape[0]) - 1

    def __getstate__(self) -> dict[str, object]:
        return {"path": self.path}

    def __setstate__(self, state: dict[str, Path]) -> None:
        JsonlCorpus.__init__(self, state["path"])

    def line(self, position: int) -> bytes:
        """The raw bytes of a line."""
        if not 0 <= position < len(self):
            raise IndexError(f"passage {position} of {len(self)} in {self.path}")
        if self._map is None:
            with self.path.open("rb") as stream:
                self._map = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        return self._map[int(self._offsets[position]) : int(self._offsets[position + 1])]

    def read(self, position: int) -> Hit:
        """The passage at a position, without the cache of `passage`.

        Raises:
            DataInvalid: The line is not a passage; the message names it.
        """
        where = f"{self.path}, line {position + 1}"
        try:
            record = json.loads(self.line(position))
        except UnicodeDecodeError as error:
            raise DataInvalid(f"{where}: not UTF-8 ({error.reason} at byte {error.start})") from error
        except (ValueError, RecursionError) as error:
            raise DataInvalid(f"{where}: not JSON ({error})") from error
        if not isinstance(record, dict) or not isinstance(record.get("id"), (str, int)):
            raise DataInvalid(f'{where}: expected an object with "id" and "contents" (or "title" and "text")')
        if isinstance(record.get("contents"), str):
            return make_hit(str(record["id"]), record["contents"])
        if isinstance(record.get("title"), str) and isinstance(record.get("text"), str):
            return Hit(str(record["id"]), record["title"], record["text"])
        raise DataInvalid(f'{where}: expected "contents", or "title" and "text", as strings; keys: {sorted(record)}')

    @property
    def fingerprint(self) -> str:
        """sha256 over the size and 64 evenly spread blocks of 64 KiB (the whole of a file up to 4 MiB).

        A sample, so that 14 GB need not be read at every start; building an index reads and checks every line.
        """
        if not self._fingerprint:
            size, digest = self.path.stat().st_size, hashlib.sha256()
            with self.path.open("rb") as stream:
                for number in range(64):
                    stream.seek(0 if size <= 1 << 22 else number * (size - (1 << 16)) // 63)
                    digest.update(stream.read(1 << 16 if size > 1 << 22 else size))
                    if size <= 1 << 22:
                        break
            self._fingerprint = fingerprint_of({"size": size, "lines": len(self), "sample": digest.hexdigest()})
        return self._fingerprint


def _cache_file(path: Path, suffix: str) -> Path:
    """A cache path that depends on where the file is, its size and its time of change."""
    stat = path.stat()
    key = fingerprint_of({"path": str(path.resolve()), "size": stat.st_size, "time": stat.st_mtime_ns})[:24]
    return cache_root() / "search_qa" / "corpora" / f"{key}{suffix}"


def _unpack(path: Path) -> Path:
    target = _cache_file(path, ".jsonl")
    if target.is_file():
        return target
    with whole_file(target) as temporary, gzip.open(path, "rb") as source, temporary.open("wb") as sink:
        try:
            while block := source.read(1 << 22):
                if sink.tell() + len(block) > MAX_UNPACKED:
                    raise DataInvalid(f"{path}: unpacks to more than {MAX_UNPACKED >> 30} GiB; unpack it yourself")
                sink.write(block)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise DataInvalid(f"{path}: a damaged .gz file ({error}); fetch it again") from error
    return target


def _line_offsets(path: Path) -> NDArray[np.uint64]:
    """Start of every line and the end of the last, from the sidecar or by a vectorised scan."""
    sidecar = _cache_file(path, ".offsets.npy")
    if not sidecar.is_file():
        starts = [np.zeros(1, dtype=np.uint64)]
        position, last = 0, b"\n"
        with path.open("rb") as stream:
            while block := stream.read(_BLOCK):
                breaks = np.flatnonzero(np.frombuffer(block, dtype=np.uint8) == 10).astype(np.uint64)
                starts.append(breaks + np.uint64(position + 1))
                position += len(block)
                last = block[-1:]
        if last != b"\n":
            starts.append(np.array([position], dtype=np.uint64))
        with whole_file(sidecar) as temporary, temporary.open("wb") as sink:
            np.save(sink, np.concatenate(starts), allow_pickle=False)
    return np.asarray(np.load(sidecar, mmap_mode="r", allow_pickle=False))
