"""Client of Search-R1 retrieval servers (`POST /retrieve`), ours and others, over one or several equal URLs.

It accepts the variants seen in the wild: a single `query`, missing scores, contents without quotation marks, documents
as plain strings, surplus items, padding, a passage twice. The number of result lists must fit, scores must be numbers.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from seed_envs.errors import UnknownOption, require
from seed_envs.search_qa.corpus import Corpus
from seed_envs.search_qa.retrievers.base import (
    COLLECTION_HEADER,
    Capabilities,
    FailureDetails,
    Hit,
    RetrievalProtocolError,
    RetrievalRejected,
    RetrievalTimeout,
    RetrievalUnavailable,
    RetrieverMismatch,
    check_k,
    fingerprint_of,
    make_hit,
    titled_hit,
)
from seed_envs.search_qa.retrievers.endpoints import BadAnswer, Endpoints

_OPEN_SECONDS = 2.0
_MOST_QUERIES, _MOST_HITS, _MOST_CHARACTERS = 512, 8192, 1 << 17
"""Of one request; 8,192 passages of some hundred words fit the longest answer that is read."""
_NO_SCORE = -3e38
"""FAISS's score for "nothing found" is the least of its floats; Search-R1's server sends it with some passage."""


class HttpRetriever:
    """Search through a server.

    Args:
        urls: Base addresses; a trailing `/retrieve` is taken off. Calls go round them, least busy first.
        variant: "queries" (Search-R1), or "query" for servers that take one query a call.
        encoding: "json", or "msgpack" where the server speaks it.
        token: Sent as a bearer token, for servers that listen beyond loopback.
        corpus: The collection that the servers must serve, as far as they say what they serve.

    Raises:
        DependencyMissing: msgpack is asked for and not installed.
        ValueError: Another variant or encoding.
    """

    def __init__(
        self,
        urls: str | Sequence[str],
        variant: str = "queries",
        encoding: str = "json",
        token: str = "",
        corpus: Corpus | None = None,
    ) -> None:
        if variant not in ("queries", "query") or encoding not in ("json", "msgpack"):
            raise UnknownOption(f"variant={variant!r}, encoding={encoding!r}; expected queries|query and json|msgpack")
        if encoding == "msgpack":
            require("msgpack", "search", "the encoding 'msgpack'")
        listed = urls.split(",") if isinstance(urls, str) else list(urls)
        bases = [url.strip().rstrip("/").removesuffix("/retrieve") for url in listed]
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._endpoints = Endpoints(bases, headers)
        self._variant, self._encoding = variant, encoding
        self.capabilities = Capabilities()
        self.corpus = corpus
        self._served = self._server = ""

    @property
    def collection_sha256(self) -> str:
        """Content hash of what the servers serve; "" until one has said it."""
        return self._served

    @property
    def fingerprint(self) -> str:
        """That of the server, as `open` has read it; the addresses without their passwords where it tells none."""
        known = {"server": self._server} if self._server else {"urls": self._endpoints.shown}
        return fingerprint_of({"engine": "http", "variant": self._variant, "collection": self._served, **known})

    def open(self) -> None:
        """Reads what the server says about itself; servers without `/health` are taken as they are.

        Raises:
            RetrieverMismatch: It serves another collection.
        """
        try:
            self._server = self.server_fingerprint(time.monotonic() + _OPEN_SECONDS)
        except (RetrievalTimeout, RetrievalUnavailable, RetrievalRejected, RetrievalProtocolError):
            return

    def server_fingerprint(self, deadline: float | None = None) -> str:
        """The fingerprint that `GET /health` of the server reports, "" for servers without it."""

        def read(body: bytes, headers: Mapping[str, str]) -> str:
            self._check_served(headers)
            try:
                answer = json.loads(body)
            except ValueError:
                return ""
            return str(answer.get("fingerprint", "")) if isinstance(answer, dict) else ""

        return self._endpoints.call("GET", "/health", b"", "application/json", read, deadline)

    def _check_served(self, headers: Mapping[str, str]) -> None:
        """Compares the collection of an answer with the one named here, else with that of earlier answers."""
        served = headers.get(COLLECTION_HEADER.lower(), "")
        wanted = self.corpus.fingerprint if self.corpus is not None else self._served
        if served and wanted and served != wanted:
            collection = getattr(self.corpus, "given", "FILE")
            raise RetrieverMismatch(
                f"the server serves the collection {served[:16]}..., expected is {wanted[:16]}...; to serve that, run: "
                f"python -m seed_envs.search_qa serve --collection {collection}",
                FailureDetails(", ".join(self._endpoints.shown)),
            )
        self._served = served or self._served

    def search(self, queries: Sequence[str], k: int, deadline: float | None = None) -> list[list[Hit]]:
        """See `Retriever.search`; no query, no call."""
        check_k(k)
        if not queries:
            return []
        if self._variant == "query":
            return [self._ask({"query": query}, 1, k, deadline)[0] for query in queries]
        return [hits for part in _parts(queries, k) for hits in self._ask({"queries": part}, len(part), k, deadline)]

    def _ask(self, asked: Mapping[str, Any], count: int, k: int, deadline: float | None) -> list[list[Hit]]:
        body, content_type = _pack({**asked, "topk": k, "return_scores": True}, self._encoding)

        def read(answer: bytes, headers: Mapping[str, str]) -> list[list[Hit]]:
            self._check_served(headers)
            return read_result(_unpack(answer, headers.get("content-type", ""), self._encoding), count, k)

        return self._endpoints.call("POST", "/retrieve", body, content_type, read, deadline)

    def close(self) -> None:
        """Closes idle connections."""
        self._endpoints.close()


def _parts(queries: Sequence[str], k: int) -> Iterator[list[str]]:
    """Queries in parts that keep within the limits of servers and of this side's answers."""
    most = max(1, min(_MOST_QUERIES, _MOST_HITS // k))
    part: list[str] = []
    size = 0
    for query in queries:
        if part and (len(part) == most or size + len(query) > _MOST_CHARACTERS):
            yield part
            part, size = [], 0
        part.append(query)
        size += len(query)
    yield part


def _pack(payload: Mapping[str, Any], encoding: str) -> tuple[bytes, str]:
    if encoding == "msgpack":
        import msgpack

        return msgpack.packb(dict(payload), unicode_errors="surrogatepass"), "application/msgpack"
    return json.dumps(payload).encode(), "application/json"


def _unpack(body: bytes, content_type: str, encoding: str) -> Any:
    try:
        if "msgpack" not in content_type:
            return json.loads(body)
        if encoding == "msgpack":
            import msgpack

            return msgpack.unpackb(body, strict_map_key=True)
    except (ValueError, RecursionError) as error:
        start = body[:80].decode("utf-8", "replace")
        raise BadAnswer(f"the answer is not {'msgpack' if 'msgpack' in content_type else 'JSON'}: {start!r}") from error
    raise BadAnswer(f"the answer is {content_type!r}; open the retriever with encoding='msgpack'")


def read_result(answer: Any, count: int, k: int) -> list[list[Hit]]:
    """Hits from the answer of a Search-R1 server.

    Args:
        answer: The decoded body.
        count: Number of queries.
        k: Hits per query; surplus ones are cut.

    Raises:
        BadAnswer: The answer is no result for so many queries.
    """
    result = answer.get("result") if isinstance(answer, dict) else None
    if not isinstance(result, list):
        raise BadAnswer(f'expected {{"result": [...]}}, got {type(answer).__name__} {str(answer)[:80]!r}')
    if len(result) != count or not all(isinstance(found, list) for found in result):
        raise BadAnswer(f"expected {count} result lists, got {len(result)} items")
    return [_read_hits(found, k) for found in result]


def _read_hits(items: Sequence[Any], k: int) -> list[Hit]:
    """The first k hits without padding and without passages that are there already."""
    found: dict[str, Hit] = {}
    for position, item in enumerate(items):
        if len(found) == k:
            break
        hit = _read_hit(item, position)
        if hit.id != "-1" and (hit.score is None or hit.score > _NO_SCORE):
            found.setdefault(hit.id, hit)
    return list(found.values())


def _read_hit(item: Any, position: int) -> Hit:
    document, score = item, None
    if isinstance(item, dict) and "document" in item:
        document, score = item["document"], item.get("score")
    if isinstance(score, bool) or not isinstance(score, (int, float, type(None))):
        raise BadAnswer(f"score {score!r} is not a number")
    if score is not None and not math.isfinite(score):
        raise BadAnswer(f"score {score!r} is not a finite number")
    if isinstance(document, str):
        return make_hit(f"#{position}", document, score)
    if not isinstance(document, dict):
        raise BadAnswer(f"expected a document, got {str(document)[:80]!r}")
    identifier = str(document.get("id", f"#{position}"))
    contents = document.get("contents")
    if isinstance(contents, str):
        return make_hit(identifier, contents, score)
    title, text = document.get("title"), document.get("text")
    if isinstance(title, str) and isinstance(text, str):
        return titled_hit(identifier, title, text, score)
    raise BadAnswer(f'expected "contents", or "title" and "text", in a document; keys: {sorted(map(str, document))}')


def open_http(name: str, corpus: Corpus | None, **options: Any) -> HttpRetriever:
    """Opens `http://HOST:PORT[,http://HOST:PORT...]`; passages come from the server."""
    return HttpRetriever(name, corpus=corpus, **options)
