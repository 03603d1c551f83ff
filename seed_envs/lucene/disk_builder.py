"""Builds an index in pieces on disk: a progress bar, resuming after a kill, memory bounded by the piece size.

Passages are analysed in pieces; each finished piece is a complete folder, so a run that was stopped goes on after the
last one. Then the pieces are merged, term range by term range. The result is byte for byte what `BM25Index.build` and
`save` write. One builder at a time per folder (a lock file sees to it). To add passages, build again.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seed_envs.errors import DataInvalid
from seed_envs.lucene.builder import IndexBuilder, describe, shrink, tie_order
from seed_envs.lucene.index import BM25Index
from seed_envs.lucene.scoring import encode_lengths, impacts_of
from seed_envs.lucene.storage import (
    MANIFEST,
    Arrays,
    ArrayWriter,
    exclusive,
    map_arrays,
    pack_strings,
    read_manifest,
    unpack_strings,
    write_arrays,
)

_PIECE_FORMAT = "seed-bm25-piece/1"
_MERGE_POSTINGS = 20_000_000
Passages = Callable[[int], Iterable[tuple[str, str]]]


def build_on_disk(
    passages: Passages,
    total: int,
    directory: str | os.PathLike[str],
    k1: float = 0.9,
    b: float = 0.4,
    ties: str = "insertion",
    meta: Mapping[str, Any] | None = None,
    progress: bool = False,
    piece: int = 100_000,
) -> str:
    """Builds an index folder, going on where an earlier run stopped; an index that is there is left alone.

    Args:
        passages: Gives (id, text) pairs from a position on.
        total: How many there are.
        directory: The index folder; the pieces lie beside it until the end.
        k1: Term frequency saturation.
        b: Length weight.
        ties: "insertion" or "id", see `BM25Index.build`.
        meta: Notes for the manifest, for example the collection's fingerprint; pieces of other notes are not reused.
        progress: Write a progress line to standard error.
        piece: Passages per piece.

    Returns:
        The fingerprint of the index.

    Raises:
        DataInvalid: An id occurs twice, or another number of passages came than `total`.
    """
    target = Path(directory)
    with exclusive(target):
        if (target / MANIFEST).is_file():
            return BM25Index.load(target).fingerprint
        if total <= piece:
            return _build_at_once(passages, total, target, k1, b, ties, meta or {}, progress)
        work = target.with_name(f".{target.name}.pieces")
        work.mkdir(exist_ok=True)
        label = {"meta": dict(meta or {}), "piece": piece, "total": total}
        pieces = [work / f"piece-{number:05d}" for number in range(-(-total // piece))]
        for number, folder in enumerate(pieces):
            if not _is_done(folder, label):
                _write_piece(passages, number * piece, min(piece, total - number * piece), folder, label)
            _show(progress, "analysing", number + 1, len(pieces))
        fingerprint = _merge(pieces, target, k1, b, ties, meta or {}, progress)
        shutil.rmtree(work)
    return fingerprint


def _build_at_once(
    passages: Passages,
    total: int,
    target: Path,
    k1: float,
    b: float,
    ties: str,
    meta: Mapping[str, Any],
    progress: bool,
) -> str:
    builder = IndexBuilder(k1, b, ties)
    for number, (doc_id, text) in enumerate(passages(0), start=1):
        builder.add(doc_id, text)
        if number % 1000 == 0 or number == total:
            _show(progress, "analysing", number, total)
    arrays, described = builder.assemble()
    return write_arrays(target, arrays, {**described, **meta})


def _is_done(folder: Path, label: Mapping[str, Any]) -> bool:
    if not (folder / MANIFEST).is_file():
        return False
    manifest, _ = read_manifest(folder, _PIECE_FORMAT, "")
    return bool(manifest["label"] == label)


def _write_piece(passages: Passages, start: int, count: int, folder: Path, label: Mapping[str, Any]) -> None:
    builder = IndexBuilder()
    for doc_id, text in islice(passages(start), count):
        builder.add(doc_id, text)
    if len(builder.ids) != count:
        raise DataInvalid(f"expected {count} passages from position {start}, got {len(builder.ids)}")
    arrays, _ = builder.assemble()
    for unused in ("impacts", "length_codes", "positions"):
        del arrays[unused]
    arrays["documents"] = arrays["documents"] + np.int32(start)
    arrays["lengths"] = np.frombuffer(builder.lengths, dtype=np.int32)
    write_arrays(folder, arrays, {"format": _PIECE_FORMAT, "label": dict(label)})


def _merge(
    folders: list[Path], target: Path, k1: float, b: float, ties: str, meta: Mapping[str, Any], progress: bool
) -> str:
    pieces = [map_arrays(folder, read_manifest(folder, _PIECE_FORMAT, "")[0]) for folder in folders]
    ids = [doc_id for arrays in pieces for doc_id in unpack_strings(arrays["id_bytes"], arrays["id_offsets"])]
    _refuse_repeats(ids)
    positions = tie_order(ids, ties)
    ranks = np.empty(len(ids), dtype=np.int32)
    ranks[positions] = np.arange(len(ids), dtype=np.int32)
    lengths = np.concatenate([arrays["lengths"] for arrays in pieces])
    described = describe(lengths, k1, b, ties)
    codes = encode_lengths(lengths)[positions]
    terms, offsets, maps = _merge_terms(pieces)
    writer = ArrayWriter(target)
    term_bytes, term_offsets = pack_strings(terms)
    id_bytes, id_offsets = pack_strings(ids)
    small: Arrays = {
        "term_bytes": term_bytes,
        "term_offsets": term_offsets,
        "posting_offsets": offsets,
        "length_codes": codes,
    }
    small.update({"positions": positions, "id_bytes": id_bytes, "id_offsets": id_offsets})
    for name, array in small.items():
        writer.put(name, array)
    largest = max(int(arrays["frequencies"].max(initial=0)) for arrays in pieces)
    count = int(offsets[-1])
    documents = writer.create("documents", np.int32, count)
    frequencies = writer.create("frequencies", shrink(np.array([largest], dtype=np.int32)).dtype, count)
    impacts = writer.create("impacts", np.float32, count)
    for first, last in _term_ranges(offsets):
        found, numbers, tf = _gather(pieces, maps, ranks, first, last)
        order = np.argsort(numbers.astype(np.int64) * len(ids) + found, kind="stable")
        begin, end = int(offsets[first]), int(offsets[last])
        documents[begin:end], frequencies[begin:end] = found[order], tf[order]
        block = np.asarray(offsets[first : last + 1]) - begin
        impacts[begin:end] = impacts_of(documents[begin:end], frequencies[begin:end], block, codes, described)
        _show(progress, "merging", end, count)
    del documents, frequencies, impacts
    return writer.finish({**described, **meta})


def _merge_terms(pieces: list[Arrays]) -> tuple[list[str], NDArray[np.int64], list[NDArray[np.int64]]]:
    """All terms in order, their posting offsets, and per piece the number of each of its terms."""
    lists = [unpack_strings(arrays["term_bytes"], arrays["term_offsets"]) for arrays in pieces]
    terms = sorted({term for found in lists for term in found}, key=lambda t: t.encode("utf-8", "surrogatepass"))
    numbers = {term: number for number, term in enumerate(terms)}
    maps = [np.array([numbers[term] for term in found], dtype=np.int64) for found in lists]
    counts = np.zeros(len(terms) + 1, dtype=np.int64)
    for arrays, mapping in zip(pieces, maps, strict=True):
        counts[mapping + 1] += np.diff(arrays["posting_offsets"])
    return terms, np.cumsum(counts), maps


def _gather(
    pieces: list[Arrays], maps: list[NDArray[np.int64]], ranks: NDArray[np.int32], first: int, last: int
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[Any]]:
    """Passage ranks, term numbers and frequencies of the terms from `first` to before `last`, piece after piece."""
    documents, numbers, frequencies = [], [], []
    for arrays, mapping in zip(pieces, maps, strict=True):
        low, high = np.searchsorted(mapping, [first, last])
        offsets = arrays["posting_offsets"]
        begin, end = int(offsets[low]), int(offsets[high])
        documents.append(ranks[arrays["documents"][begin:end]])
        numbers.append(np.repeat(mapping[low:high] - first, np.diff(offsets[low : high + 1])))
        frequencies.append(arrays["frequencies"][begin:end].astype(np.uint32))
    return np.concatenate(documents), np.concatenate(numbers), np.concatenate(frequencies)


def _term_ranges(offsets: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Ranges of terms with at most about `_MERGE_POSTINGS` postings each."""
    first, terms = 0, offsets.shape[0] - 1
    while first < terms:
        last = int(np.searchsorted(offsets, offsets[first] + _MERGE_POSTINGS, side="right")) - 1
        last = min(max(last, first + 1), terms)
        yield first, last
        first = last


def _refuse_repeats(ids: list[str]) -> None:
    if len(set(ids)) == len(ids):
        return
    seen: dict[str, int] = {}
    for position, doc_id in enumerate(ids):
        if doc_id in seen:
            raise DataInvalid(f"passage {position}: id {doc_id!r} was used by passage {seen[doc_id]}; ids must differ")
        seen[doc_id] = position


def _show(progress: bool, what: str, done: int, total: int) -> None:
    if progress:
        width = 30 * done // max(total, 1)
        end = "\n" if done >= total else ""
        sys.stderr.write(f"\r{what} [{'#' * width}{'.' * (30 - width)}] {done:,}/{total:,}{end}")
        sys.stderr.flush()
