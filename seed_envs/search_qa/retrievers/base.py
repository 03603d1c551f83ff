"""What a retriever is: queries in, passages with scores out, and failures with names.

Every engine of this package fulfils `Retriever`; the environment and the server know nothing else. A retriever opens
what it needs on its first search, in the process that searches. It never returns an error as a passage.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, runtime_checkable

from seed_envs.errors import RetrievalError, UnknownOption


class Hit(NamedTuple):
    """One retrieved passage.

    Attributes:
        id: Passage id.
        title: First line of the passage without its outer quotation marks.
        text: The rest.
        score: The engine's score, higher is better; None when a server sends none.
        quoted: The passage is stored with quotation marks around its title, as in wiki-18.
    """

    id: str
    title: str
    text: str
    score: float | None = None
    quoted: bool = True

    @property
    def shown_title(self) -> str:
        """The title as it is stored, with quotation marks if it has them."""
        return f'"{self.title}"' if self.quoted else self.title

    @property
    def contents(self) -> str:
        """Title line and text, as stored."""
        return f"{self.shown_title}\n{self.text}" if self.text else self.shown_title


def make_hit(id: str, contents: str, score: float | None = None) -> Hit:
    """A hit from a passage stored as one string; outer quotation marks are taken off the title.

    >>> make_hit("7", '"Velk River"\\nIt flows.').title
    'Velk River'
    """
    title, _, text = contents.partition("\n")
    quoted = len(title) >= 2 and title[0] == title[-1] == '"'
    return Hit(id, title[1:-1] if quoted else title, text, score, quoted)


def titled_hit(id: str, title: str, text: str, score: float | None = None) -> Hit:
    """A hit from a passage stored as title and text; a title that has its quotation marks is not quoted twice.

    >>> titled_hit("7", '"Velk River"', "It flows.") == titled_hit("7", "Velk River", "It flows.")
    True
    """
    bare = title[1:-1] if len(title) >= 2 and title[0] == title[-1] == '"' else title
    return Hit(id, bare, text, score, bool(bare))


def whole_characters(text: str) -> str:
    """The text with U+FFFD for halves of surrogate pairs, which nothing that speaks UTF-8 takes.

    >>> whole_characters("a\\ud800b"), whole_characters("né")
    ('a�b', 'né')
    """
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


@dataclass(frozen=True)
class Capabilities:
    """What a retriever promises.

    Attributes:
        vector: Ranks by vectors.
        prefix_stable: The hits for a small k begin the hits for a larger one.
        quick: A search takes far less than a millisecond and waits for nothing, so an event loop may run it directly.
    """

    vector: bool = False
    prefix_stable: bool = True
    quick: bool = False


@runtime_checkable
class Retriever(Protocol):
    """A search engine over passages.

    An engine may have a method `open()` besides: it loads what the first search would have to load, so that no search
    pays for it; and `collection_sha256`, the content hash of the passages it searches.
    """

    @property
    def capabilities(self) -> Capabilities:
        """What it promises."""

    @property
    def fingerprint(self) -> str:
        """sha256 over everything that can change a ranking."""

    def search(self, queries: Sequence[str], k: int, deadline: float | None = None) -> list[list[Hit]]:
        """The best passages per query.

        Args:
            queries: The queries.
            k: Hits per query, 1 to 100; fewer come back when fewer match.
            deadline: `time.monotonic()` value after which the call fails; None for no limit.

        Returns:
            One list per query.

        Raises:
            RetrievalError: The engine could not answer (see the subclasses below).
        """

    def close(self) -> None:
        """Frees files and connections; a later search opens them again."""


COLLECTION_HEADER = "X-Collection"
"""Header in which a server names the content hash of its collection."""


def collection_sha256(retriever: Retriever) -> str:
    """Content hash of the collection that a retriever searches, "" where it does not know it."""
    return str(getattr(retriever, "collection_sha256", ""))


def open_now(retriever: Retriever) -> None:
    """Opens a retriever that has something to open."""
    opening = getattr(retriever, "open", None)
    if callable(opening):
        opening()


MAX_K = 100


def check_k(k: int) -> int:
    """Returns k if it is from 1 to 100.

    Raises:
        ValueError: Otherwise.
    """
    if not isinstance(k, int) or isinstance(k, bool) or not 1 <= k <= MAX_K:
        raise UnknownOption(f"topk={k!r}; expected a whole number from 1 to {MAX_K}")
    return k


def fingerprint_of(record: Mapping[str, Any]) -> str:
    """sha256 of the canonical JSON of a record."""
    text = json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass
class FailureDetails:
    """Where and how a retrieval failed; `status` is that of an HTTP answer that refused."""

    endpoint: str = ""
    tries: int = 0
    elapsed: float = 0.0
    causes: list[str] = field(default_factory=list)
    status: int = 0


class RetrievalFailure(RetrievalError):
    """A retrieval that failed; the subclasses name how.

    Args:
        message: What happened.
        details: Endpoint, number of tries, seconds, causes of the single tries.
    """

    def __init__(self, message: str, details: FailureDetails | None = None) -> None:
        self.details = details or FailureDetails()
        self.message = message
        where = f" [{self.details.endpoint}]" if self.details.endpoint else ""
        spent = f" after {self.details.tries} tries in {self.details.elapsed:.2f} s" if self.details.tries else ""
        super().__init__(f"{message}{where}{spent}")

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.message, self.details))


class RetrievalTimeout(RetrievalFailure):
    """No answer before the deadline."""


class RetrievalUnavailable(RetrievalFailure):
    """The engine cannot be reached, or its circuit breaker is open."""


class RetrievalProtocolError(RetrievalFailure):
    """The engine answered something that is not a result."""


class RetrievalRejected(RetrievalFailure):
    """The engine refused the request."""


class RetrieverMismatch(RetrievalFailure, ValueError):
    """Index, passages or encoder do not belong together."""


class RetrievalIndexMissing(RetrievalFailure):
    """The engine has no such index, table or collection; the message holds the command that makes it."""


class RetrieverForked(RetrievalFailure):
    """The engine was opened before a fork and cannot be used in the child."""
