"""SHA-256 of content: the one way files and lists are told apart."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path


def content_hash(chunks: Iterable[bytes]) -> str:
    """SHA-256 of a stream of bytes, in hexadecimal digits."""
    digest = hashlib.sha256()
    for chunk in chunks:
        digest.update(chunk)
    return digest.hexdigest()


def file_hash(path: Path) -> str:
    """SHA-256 of a file's content, as ``sha256sum`` prints it."""
    with path.open("rb") as file:
        return content_hash(iter(lambda: file.read(1 << 20), b""))
