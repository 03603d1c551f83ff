"""Content hashes of files, all bytes of them, read once per version of a file and remembered in the cache.

A version is a place, a size and the times of the last change of content and of the file itself, so a changed file is
read again even when its size and its stated time of change are those of the old one.
"""

from __future__ import annotations

from pathlib import Path

from seed_envs.data import cache_root
from seed_envs.hashing import file_hash
from seed_envs.search_qa.retrievers.base import fingerprint_of
from seed_envs.whole_files import whole_file

_WORTH_KEEPING = 1 << 22
"""Smaller files are hashed again each time: that takes milliseconds."""


def file_version(path: Path) -> str:
    """What changes whenever the file does."""
    stat = path.stat()
    times = [stat.st_mtime_ns, stat.st_ctime_ns]
    return fingerprint_of({"path": str(path.resolve()), "size": stat.st_size, "times": times})[:24]


def cache_file(path: Path, suffix: str) -> Path:
    """Where something that was made from this version of a file is kept."""
    return cache_root() / "search_qa" / "corpora" / f"{file_version(path)}{suffix}"


def file_sha256(path: Path) -> str:
    """sha256 over all bytes of a file, as `sha256sum` prints it."""
    kept = cache_file(path, ".sha256") if path.stat().st_size >= _WORTH_KEEPING else None
    if kept is not None and kept.is_file():
        return kept.read_text(encoding="ascii")
    digest = file_hash(path)
    if kept is not None:
        with whole_file(kept) as temporary:
            temporary.write_text(digest, encoding="ascii")
    return digest
