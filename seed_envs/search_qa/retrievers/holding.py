"""Engines that hold the passages themselves: what they were loaded from is written down with them, and checked.

The record is one line of text, the label: which collection by the hash of its content, how many passages, and which
encoder made their vectors. A service that holds another collection than the one a user names is refused, also when
the two differ by one letter.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import ClassVar, NamedTuple

from seed_envs.errors import DataInvalid
from seed_envs.search_qa.corpus import Corpus
from seed_envs.search_qa.encoders import Encoder, record_as_json
from seed_envs.search_qa.retrievers.base import (
    FailureDetails,
    Hit,
    RetrievalIndexMissing,
    RetrievalRejected,
    RetrievalTimeout,
    RetrievalUnavailable,
    RetrieverMismatch,
    check_k,
    fingerprint_of,
)
from seed_envs.search_qa.retrievers.ingest import ingest_in_order

_FORMAT = "seed-collection/1"
_WORDS = "words"


class Label(NamedTuple):
    """What an index was loaded from.

    Attributes:
        collection: sha256 of the collection's content, "" for an index that was not made by this package.
        passages: How many passages it has.
        encoder: Which encoder made the vectors, "words" where there are none.
    """

    collection: str
    passages: int
    encoder: str

    def text(self) -> str:
        """One line to keep with the passages."""
        return f"{_FORMAT} {self.collection} {self.passages} {self.encoder}"

    @classmethod
    def parse(cls, text: object) -> Label:
        """Reads `text`; whatever else stands there is the label of a foreign index."""
        parts = text.split(" ") if isinstance(text, str) else []
        if len(parts) != 4 or parts[0] != _FORMAT or not parts[2].isdecimal():
            return NO_LABEL
        return cls(parts[1], int(parts[2]), parts[3])


NO_LABEL = Label("", 0, "")


class HoldingRetriever(ABC):
    """A client of an index that holds the passages.

    Args:
        address: The engine's URL without password, for messages.
        encoder: Makes the vectors; None for search by words.
        corpus: The collection that the index must hold; None takes what is there.
    """

    engine: ClassVar[str]
    batch: ClassVar[int]
    """Passages per write."""

    def __init__(self, address: str, encoder: Encoder | None, corpus: Corpus | None) -> None:
        self.address, self.encoder, self.corpus = address, encoder, corpus
        self._label: Label | None = None

    @abstractmethod
    def read_label(self, deadline: float | None = None) -> Label | None:
        """The label of the index, `NO_LABEL` where it has none; None when there is no index."""

    @abstractmethod
    def stored(self) -> int:
        """How many passages the index holds."""

    @abstractmethod
    def _create(self, label: Label) -> None:
        """Makes an empty index with a label."""

    @abstractmethod
    def _drop(self) -> None:
        """Removes the index with all passages; does nothing where there is none."""

    @abstractmethod
    def _write(self, first: int, passages: list[Hit]) -> None:
        """Writes passages from a position on; writing one twice is harmless."""

    @abstractmethod
    def _search(self, queries: list[str], k: int, deadline: float | None) -> list[list[Hit]]:
        """The hits of at least one query; k and the index are checked."""

    def search(self, queries: Sequence[str], k: int, deadline: float | None = None) -> list[list[Hit]]:
        """See `Retriever.search`; no query, no call."""
        check_k(k)
        if not queries:
            return []
        self._checked(deadline)
        return self._search(list(queries), k, deadline)

    @property
    def collection_sha256(self) -> str:
        """Content hash of the collection behind the index, as far as it is known yet; "" for foreign indices."""
        return self._label.collection if self._label else self.corpus.fingerprint if self.corpus is not None else ""

    @property
    def fingerprint(self) -> str:
        """Engine, collection, encoder and search parameters; the address where the collection is not known."""
        return fingerprint_of(
            {
                "engine": self.engine,
                "collection": self.collection_sha256 or self.address,
                "encoder": record_as_json(self.encoder.record) if self.encoder is not None else None,
                **self._parameters(),
            }
        )

    def _parameters(self) -> dict[str, object]:
        """What else can change a ranking."""
        return {}

    def _label_of(self, corpus: Corpus) -> Label:
        encoder = fingerprint_of({"encoder": record_as_json(self.encoder.record)})[:16] if self.encoder else _WORDS
        return Label(corpus.fingerprint, len(corpus), encoder)

    def open(self) -> None:
        """Reads the label and checks it; a service that cannot be reached now fails at its first search instead.

        Raises:
            RetrievalIndexMissing: There is no such index.
            RetrieverMismatch: It holds another collection, an incomplete one, or vectors of another encoder.
        """
        try:
            self.check(self.corpus)
        except (RetrievalTimeout, RetrievalUnavailable):
            return

    def check(self, corpus: Corpus | None, deadline: float | None = None) -> None:
        """Compares the index with a collection; see `open`. Raises what a search raises when it cannot be reached."""
        held = self.read_label(deadline)
        if held is None:
            raise self._missing()
        if corpus is not None:
            self._refuse_other(held, self._label_of(corpus))
            if (found := self.stored()) != held.passages:
                raise self._mismatch(f"holds {found:,} of {held.passages:,} passages", "go on loading with", "")
        self._label = held

    def _checked(self, deadline: float | None) -> None:
        """Before a search: checks the index once, where there is something to compare it with."""
        if self._label is None and self.corpus is not None:
            self.check(self.corpus, deadline)

    def _refuse_other(self, held: Label, wanted: Label) -> None:
        if held.collection != wanted.collection:
            known = f"the collection {held.collection[:16]}..." if held.collection else "passages of unknown origin"
            what = f"holds {known}, the one named here is {wanted.collection[:16]}... ({wanted.passages:,} passages)"
        elif held != wanted:
            what = f"was loaded with another encoder ({held.encoder}; needed is {wanted.encoder})"
        else:
            return
        raise self._mismatch(what, "to empty it and load this one, run", " --replace")

    def _mismatch(self, what: str, how: str, option: str) -> RetrieverMismatch:
        return RetrieverMismatch(f"{self.address} {what}; {how}: {self.command}{option}", FailureDetails(self.address))

    def _missing(self) -> RetrievalIndexMissing:
        message = f"there is no index {self.address}; load the passages with: {self.command}"
        return RetrievalIndexMissing(message, FailureDetails(self.address))

    @contextmanager
    def _missing_if_404(self) -> Iterator[None]:
        """For services behind HTTP, which answer 404 where the index is missing."""
        try:
            yield
        except RetrievalRejected as error:
            if error.details.status == 404:
                raise self._missing() from error
            raise

    @property
    def command(self) -> str:
        """The command that loads the collection."""
        collection = getattr(self.corpus, "given", "FILE")
        return f"python -m seed_envs.search_qa index --collection {collection} --retriever {self.address}"

    def ingest(self, corpus: Corpus, progress: bool = False, batch: int | None = None, replace: bool = False) -> int:
        """Creates the index where it is missing and loads the passages; can be interrupted and run again.

        Args:
            corpus: The passages.
            progress: Show a progress line.
            batch: Passages per write.
            replace: Empty the index first, whatever it holds.

        Returns:
            The number of passages in the index.

        Raises:
            RetrieverMismatch: It holds another collection already.
            DataInvalid: A passage that the service cannot store.
        """
        wanted = self._label_of(corpus)
        held = self.read_label()
        if replace and held is not None:
            self._drop()
            held = None
        if held is None:
            self._create(wanted)
        else:
            self._refuse_other(held, wanted)
        count = ingest_in_order(corpus, self.stored, self._write_storable, batch or self.batch, progress)
        self._label = wanted
        return count

    def _write_storable(self, first: int, passages: list[Hit]) -> None:
        for number, hit in enumerate(passages, start=first):
            _check_storable(number, hit)
        self._write(first, passages)


def _check_storable(number: int, hit: Hit) -> None:
    """Refuses characters that services and UTF-8 do not store.

    Raises:
        DataInvalid: The passage has NUL or half a surrogate pair.
    """
    text = f"{hit.id}{hit.title}{hit.text}"
    if "\0" in text or (not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text)):
        raise DataInvalid(
            f"passage {number} (id {hit.id!r}) holds NUL or half a surrogate pair, which no service stores; to replace "
            "them, run: python -m seed_envs.search_qa import FILE --output FOLDER"
        )
