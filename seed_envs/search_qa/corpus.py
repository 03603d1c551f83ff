"""Passage collections: a list in memory, or a JSON-lines file opened by memory mapping with constant-time line access.

A passage's position is its line number, the same number that FAISS indices of the collection use. The file is never
copied; a sidecar of line offsets is built once. Nothing is ranked here.
"""

from __future__ import annotations

import gzip
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

from seed_envs.errors import DataInvalid, DataMissing, DependencyMissing
from seed_envs.hashing import content_hash
from seed_envs.search_qa.hashing import cache_file, file_sha256, file_version
from seed_envs.search_qa.retrievers.base import Hit, make_hit, titled_hit
from seed_envs.whole_files import whole_file

MAX_UNPACKED = 64 << 30
"""Largest collection that is unpacked from a .gz file, in bytes."""
_BLOCK = 64 << 20
_WANTED = 'an object with "id" and "contents" (or "title" and "text")'


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
            texts = (f"{hit.id}\n{hit.contents}\n\n" for hit in self._passages)
            self._fingerprint = content_hash(text.encode("utf-8", "surrogatepass") for text in texts)
        return self._fingerprint


class JsonlCorpus:
    """A JSON-lines file of passages: `{"id", "contents"}` as wiki-18, or `{"id", "title", "text"}`.

    Args:
        path: The file; `.gz` is unpacked once into the cache.

    Raises:
        DataMissing: No such file.
        DataInvalid: It is empty.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        if not self.path.is_file():
            raise DataMissing(f"passages: expected a .jsonl or .jsonl.gz file at {str(path)!r}, found none")
        self.given = self.path
        if self.path.suffix == ".gz":
            self.path = _unpack(self.path)
        self._version = file_version(self.path)
        self._offsets = _line_offsets(self.path)
        if not len(self):
            raise DataInvalid(f"{self.given}: holds no passage")
        self._map: mmap.mmap | None = None
        self._fingerprint = ""
        # Popular passages are asked for again and again; 4,096 of about 100 words take some 6 MB.
        self.passage: Callable[[int], Hit] = lru_cache(maxsize=4096)(self.read)

    def __len__(self) -> int:
        return int(self._offsets.shape[0]) - 1

    def __getstate__(self) -> dict[str, object]:
        return {"path": self.given}

    def __setstate__(self, state: dict[str, Path]) -> None:
        JsonlCorpus.__init__(self, state["path"])

    def line(self, position: int) -> bytes:
        """The raw bytes of a line."""
        if not 0 <= position < len(self):
            raise IndexError(f"passage {position} of {len(self)} in {self.path}")
        if self._map is None:
            self._check_version()
            with self.path.open("rb") as stream:
                self._map = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        return self._map[int(self._offsets[position]) : int(self._offsets[position + 1])]

    def read(self, position: int) -> Hit:
        """The passage at a position, without the cache of `passage`.

        Raises:
            DataInvalid: The line is not a passage; the message names it.
        """
        where = f"{self.given}, line {position + 1}"
        try:
            record = json.loads(self.line(position))
        except UnicodeDecodeError as error:
            raise DataInvalid(
                f"{where}: not UTF-8 ({error.reason} at byte {error.start}){_what_instead(self.given, position)}"
            ) from error
        except (ValueError, RecursionError) as error:
            raise DataInvalid(f"{where}: not JSON ({error}){_what_instead(self.given, position)}") from error
        known = isinstance(record, dict) and isinstance(record.get("id"), (str, int))
        if known and isinstance(record.get("contents"), str):
            return make_hit(str(record["id"]), record["contents"])
        title = record.get("title") or "" if known else None
        if isinstance(title, str) and isinstance(record.get("text"), str):
            return titled_hit(str(record["id"]), title, record["text"])
        fields = f"; fields: {sorted(record)}" if isinstance(record, dict) else ""
        raise DataInvalid(f"{where}: expected {_WANTED}{fields}{_what_instead(self.given, position)}")

    @property
    def fingerprint(self) -> str:
        """sha256 over all bytes of the (unpacked) file, as `sha256sum` prints it."""
        if not self._fingerprint:
            self._fingerprint = file_sha256(self.path)
            self._check_version()
        return self._fingerprint

    def _check_version(self) -> None:
        if file_version(self.path) != self._version:
            raise DataInvalid(f"{self.given}: the file has changed since it was opened; open it again")


def _what_instead(path: Path, position: int) -> str:
    """What a file whose first line is no passage holds instead, and what to do with it; "" if that is unknown."""
    from seed_envs.search_qa.importing.reading import read_file

    if position:
        return ""
    try:
        shape, _ = read_file(path)
    except (DataInvalid, DependencyMissing):
        return ""
    if shape is None or shape.holds == "neither":
        return ""
    if shape.holds == "questions":
        return f". The file holds {shape.name}: give it as questions="
    return f". The file holds {shape.name}: run python -m seed_envs.search_qa import {path} --output FOLDER"


def _unpack(path: Path) -> Path:
    target = cache_file(path, ".jsonl")
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
    """Start of every line and the end of the last, without blank lines at the end; from the sidecar or by a scan."""
    sidecar = cache_file(path, ".lines.npy")
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
        offsets = np.concatenate(starts)
        offsets = offsets[: len(offsets) - _blank_at_end(path, offsets)]
        with whole_file(sidecar) as temporary, temporary.open("wb") as sink:
            np.save(sink, offsets, allow_pickle=False)
    return np.asarray(np.load(sidecar, mmap_mode="r", allow_pickle=False))


def _blank_at_end(path: Path, offsets: NDArray[np.uint64]) -> int:
    """How many of the last lines are blank."""
    count = 0
    with path.open("rb") as stream:
        while count < len(offsets) - 1:
            stream.seek(int(offsets[-2 - count]))
            if stream.read(int(offsets[-1 - count] - offsets[-2 - count])).strip():
                break
            count += 1
    return count
