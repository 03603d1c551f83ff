"""Indices made elsewhere do not say which collection they are of: the first one they are used with is remembered.

What is kept is one line in the cache per version of an index. An index that is rebuilt is a new version, and a
collection that was changed after its index was built is noticed.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from seed_envs.data import cache_root
from seed_envs.search_qa.corpus import Corpus
from seed_envs.search_qa.hashing import file_version
from seed_envs.search_qa.retrievers.base import RetrieverMismatch, fingerprint_of
from seed_envs.whole_files import whole_file


def _record(files: Iterable[Path]) -> Path:
    key = fingerprint_of({"files": sorted(file_version(path) for path in files)})[:24]
    return cache_root() / "search_qa" / "pairs" / f"{key}.txt"


def check_pair(files: Iterable[Path], corpus: Corpus, retriever: str) -> None:
    """Remembers the collection that an index is used with.

    Args:
        files: The files of the index.
        corpus: The collection.
        retriever: The engine's name, for the message.

    Raises:
        RetrieverMismatch: It was used with another one before.
    """
    record = _record(files)
    if not record.is_file():
        with whole_file(record) as temporary:
            temporary.write_text(corpus.fingerprint, encoding="ascii")
    elif (known := record.read_text(encoding="ascii")) != corpus.fingerprint:
        raise RetrieverMismatch(
            f"{retriever} was used with the collection {known[:16]}..., this is {corpus.fingerprint[:16]}...; build "
            "the index again, or, if it is of this collection, run: python -m seed_envs.search_qa index --collection "
            f"{getattr(corpus, 'given', 'FILE')} --retriever {retriever} --replace"
        )


def forget_pair(files: Iterable[Path]) -> None:
    """Lets the next collection be remembered instead."""
    _record(files).unlink(missing_ok=True)
