"""A directory of plain arrays with a manifest: written once, opened by memory mapping, never unpickled.

A directory is complete or absent: it is written under a temporary name and renamed last.
It deliberately offers no update in place; an index that changed is a new directory.
"""

from __future__ import annotations

import glob
import hashlib
import itertools
import json
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seed_envs.errors import DataInvalid, DataMissing
from seed_envs.hashing import file_hash

MANIFEST = "manifest.json"
Arrays = dict[str, NDArray[Any]]


def pack_strings(values: list[str]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Concatenates strings as UTF-8.

    Returns:
        The bytes, and the offset of each string with the total at the end, shape (n + 1,).
    """
    encoded = [value.encode("utf-8", "surrogatepass") for value in values]
    offsets = np.zeros(len(encoded) + 1, dtype=np.int64)
    np.cumsum([len(value) for value in encoded], out=offsets[1:])
    return np.frombuffer(b"".join(encoded), dtype=np.uint8), offsets


def unpack_strings(data: NDArray[np.uint8], offsets: NDArray[Any]) -> list[str]:
    """The strings that `pack_strings` concatenated."""
    raw, bounds = data.tobytes(), offsets.tolist()
    return [raw[a:b].decode("utf-8", "surrogatepass") for a, b in itertools.pairwise(bounds)]


class ArrayWriter:
    """Writes a directory of arrays under a temporary name; `finish` puts it in its place.

    Args:
        directory: The target; an existing one is replaced at the end.
    """

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self.target = Path(directory)
        self.target.parent.mkdir(parents=True, exist_ok=True)
        self.temporary = self.target.with_name(f".{self.target.name}.{uuid.uuid4().hex[:8]}.tmp")
        self.temporary.mkdir()
        self._names: list[str] = []

    def put(self, name: str, array: NDArray[Any]) -> None:
        """Writes one array."""
        np.save(self.temporary / f"{name}.npy", array, allow_pickle=False)
        self._names.append(name)

    def create(self, name: str, dtype: Any, *shape: int) -> NDArray[Any]:
        """A new array on disk to be filled in place, zeroed."""
        self._names.append(name)
        path = self.temporary / f"{name}.npy"
        if 0 in shape:
            empty: NDArray[Any] = np.zeros(shape, dtype=dtype)
            np.save(path, empty, allow_pickle=False)
            return empty
        return np.lib.format.open_memmap(path, mode="w+", dtype=dtype, shape=shape)

    def manifest_text(self, meta: Mapping[str, Any], hashes: bool = True) -> str:
        """The manifest of the arrays written so far, with or without their sha256."""
        listing = {}
        for name in sorted(self._names):
            path = self.temporary / f"{name}.npy"
            listing[name] = {"bytes": path.stat().st_size, "sha256": file_hash(path) if hashes else ""}
        return json.dumps({**meta, "arrays": listing}, sort_keys=True, indent=1)

    def finish(self, meta: Mapping[str, Any]) -> str:
        """Writes the manifest and renames the directory.

        Args:
            meta: JSON values to keep beside the arrays; must hold `format`.

        Returns:
            The sha256 of the manifest, which covers every array.
        """
        text = self.manifest_text(meta)
        with (self.temporary / MANIFEST).open("w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        old = self.temporary.with_suffix(".old")
        if self.target.exists():
            self.target.rename(old)
        self.temporary.rename(self.target)
        shutil.rmtree(old, ignore_errors=True)
        return hashlib.sha256(text.encode()).hexdigest()


@contextmanager
def exclusive(directory: str | os.PathLike[str]) -> Iterator[None]:
    """Lets one process or thread at a time write a directory; others wait. Removes what killed writers left behind."""
    import fcntl

    target = Path(directory)
    target.parent.mkdir(parents=True, exist_ok=True)
    path = target.with_name(f".{target.name}.lock")
    while True:
        stream = path.open("w")
        fcntl.flock(stream, fcntl.LOCK_EX)
        # Whoever had it removes the file: a lock on a file that is gone locks nobody else out.
        if os.fstat(stream.fileno()).st_nlink:
            break
        stream.close()
    try:
        for left in (*target.parent.glob(f".{glob.escape(target.name)}.*.tmp"),
                     *target.parent.glob(f".{glob.escape(target.name)}.*.old")):  # fmt: skip
            shutil.rmtree(left, ignore_errors=True)
        yield
    finally:
        path.unlink(missing_ok=True)
        fcntl.flock(stream, fcntl.LOCK_UN)  # closing alone keeps it while a forked child holds the same file
        stream.close()


def write_arrays(directory: str | os.PathLike[str], arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any]) -> str:
    """Writes arrays and their manifest as one directory, atomically; see `ArrayWriter`."""
    writer = ArrayWriter(directory)
    for name, array in arrays.items():
        writer.put(name, array)
    return writer.finish(meta)


def read_manifest(directory: str | Path, kind: str, command: str) -> tuple[dict[str, Any], str]:
    """Reads the manifest of a directory of arrays.

    Args:
        directory: where the arrays lie.
        kind: the `format` that is expected.
        command: what to run when the directory is absent.

    Returns:
        The manifest and its sha256.

    Raises:
        DataMissing: no manifest there.
        DataInvalid: another format, or not JSON.
    """
    path = Path(directory) / MANIFEST
    if not path.is_file():
        raise DataMissing(f"expected an index with {MANIFEST} in {str(directory)!r}, found none. Run: {command}")
    try:
        text = path.read_text(encoding="utf-8")
        manifest = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataInvalid(f"{path}: not JSON in UTF-8 ({error}). Build it again: {command}") from error
    found = manifest.get("format") if isinstance(manifest, dict) else None
    if found != kind:
        raise DataInvalid(f"{path}: expected format {kind!r}, found {found!r}. Build it again: {command}")
    return manifest, hashlib.sha256(text.encode()).hexdigest()


def map_arrays(directory: str | Path, manifest: Mapping[str, Any], verify: bool = False) -> Arrays:
    """Opens all arrays of a directory by memory mapping, read-only.

    Args:
        directory: where the arrays lie.
        manifest: as `read_manifest` returned it.
        verify: also compare the sha256 of each file (reads everything).

    Returns:
        Name to array.

    Raises:
        DataInvalid: a file is missing, of another size, or changed.
    """
    arrays: Arrays = {}
    listing = manifest.get("arrays")
    entries = listing.values() if isinstance(listing, dict) else [None]
    if not all(isinstance(entry, dict) and {"bytes", "sha256"} <= entry.keys() for entry in entries):
        raise DataInvalid(f"{directory}: the manifest lists no arrays with bytes and sha256; build the index again")
    for name, expected in manifest["arrays"].items():
        path = Path(directory) / f"{name}.npy"
        if Path(name).name != name or not path.is_file():
            raise DataInvalid(f"{directory}: the manifest lists {name!r}, which is not there; build the index again")
        size = path.stat().st_size
        if size != expected["bytes"]:
            raise DataInvalid(f"{path}: expected {expected['bytes']} bytes, found {size}; build the index again")
        if verify and file_hash(path) != expected["sha256"]:
            raise DataInvalid(f"{path}: content does not match its sha256; build the index again")
        try:
            array = np.load(path, mmap_mode="r" if size > 128 else None, allow_pickle=False)
        except (ValueError, EOFError, OSError) as error:
            raise DataInvalid(f"{path}: not an array file ({error}); build the index again") from error
        # A plain view: indexing a memmap object costs a microsecond more each time.
        arrays[name] = np.asarray(array)
    return arrays
