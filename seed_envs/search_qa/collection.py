"""The `collection` argument: a generated encyclopedia by size, or a file of passages. Opened when first needed."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

from seed_envs.errors import DataMissing, UnknownOption, close_matches
from seed_envs.search_qa.corpus import Corpus, JsonlCorpus
from seed_envs.search_qa.hashing import file_version
from seed_envs.search_qa.knowledge.library import open_library
from seed_envs.search_qa.knowledge.world import SIZES


class Collection:
    """A collection that is not open yet.

    Args:
        name: Size of a generated world, or a path.
        seed: Seed of a generated world.
    """

    def __init__(self, name: str, seed: int) -> None:
        self.name, self.seed = name, seed
        self.generated = name in SIZES

    def open(self) -> Corpus:
        """The passages, shared within the process."""
        return (
            open_library(self.name, self.seed).corpus
            if self.generated
            else _open_file(self.name, file_version(Path(self.name)))
        )


@lru_cache(maxsize=8)
def _open_file(path: str, version: str) -> JsonlCorpus:
    """One corpus per version of a file, so that a changed file is opened again."""
    return JsonlCorpus(path)


def open_collection(name: str | os.PathLike[str], seed: int) -> Collection:
    """Checks the name of a collection.

    Raises:
        DataMissing: Neither a generated size nor a file.
        UnknownOption: Not even a text.
    """
    if not isinstance(name, (str, os.PathLike)):
        raise UnknownOption(f"collection={name!r}: expected one of {list(SIZES)} or a file of passages")
    text = os.fspath(name)
    if text not in SIZES and not Path(text).is_file():
        raise DataMissing(
            f"collection={text!r}: expected one of {list(SIZES)} or a .jsonl or .jsonl.gz file of passages."
            f"{close_matches(text, SIZES)}"
        )
    return Collection(text, seed)
