"""Redis with RediSearch: BM25 over words, or vectors by HNSW. Tested against a real server.

Its BM25 has its own constants and stemmer, so ranks are near Lucene's but not equal. Stop words are removed and terms
escaped on this side; the index is made without stop words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import numpy as np

from seed_envs.errors import require
from seed_envs.lucene.analyzer import STOP_WORDS
from seed_envs.lucene.tokenizer import tokenize
from seed_envs.search_qa.corpus import Corpus
from seed_envs.search_qa.encoders import Encoder, open_encoder
from seed_envs.search_qa.retrievers.base import Capabilities, FailureDetails, Hit, RetrievalRejected
from seed_envs.search_qa.retrievers.holding import HoldingRetriever, Label
from seed_envs.search_qa.retrievers.service import ServiceConnections

_SPECIAL = re.compile(r"([^\w])")
_FIELDS = ("id", "title", "text", "quoted")


class RedisRetriever(HoldingRetriever):
    """A client of one RediSearch index.

    Args:
        host: Server address.
        port: Its port.
        database: Database number.
        index: Index name, also the prefix of its keys.
        encoder: Search by vectors of this encoder instead of words.
        password: For servers that ask for one.
        username: For servers with users.
        corpus: The collection that the index must hold; None takes what is there.
    """

    engine = "redis"
    batch = 500

    def __init__(
        self,
        host: str,
        port: int,
        database: int,
        index: str,
        encoder: Encoder | None = None,
        password: str = "",
        username: str = "",
        corpus: Corpus | None = None,
    ) -> None:
        require("redis", "redis", "Redis retrieval")
        super().__init__(f"redis://{host}:{port}/{database}?index={index}", encoder, corpus)
        self.index = index
        self.capabilities = Capabilities(vector=encoder is not None)
        self._server: dict[str, Any] = {"host": host, "port": port, "db": database}
        self._server |= {"password": password or None, "username": username or None}
        self._connections = ServiceConnections(self._connect, f"{host}:{port}/{database}", _lost, _timeouts, True)

    def _connect(self, seconds: float) -> Any:
        import redis
        from redis.backoff import NoBackoff
        from redis.retry import Retry

        # Protocol 2 answers in plain lists, whatever the client's version prefers; retries are this side's business.
        return redis.Redis(
            **self._server,
            protocol=2,
            socket_connect_timeout=min(1.0, seconds),
            socket_timeout=seconds,
            retry=Retry(NoBackoff(), 0),
        )

    def _command(self, *parts: Any, deadline: float | None = None) -> Any:
        return self._connections.run(lambda client, _: client.execute_command(*parts), deadline)

    @property
    def _label_key(self) -> str:
        # Outside the prefix of the passages, which are indexed.
        return f"seed-collection:{self.index}"

    def read_label(self, deadline: float | None = None) -> Label | None:
        """See `HoldingRetriever.read_label`; the label is a key of its own."""
        import redis

        try:
            self._command("FT.INFO", self.index, deadline=deadline)
        except redis.ResponseError as error:
            if _is_missing(error):
                return None
            raise
        kept = self._command("GET", self._label_key, deadline=deadline)
        return Label.parse(kept.decode("utf-8", "replace") if kept is not None else None)

    def stored(self) -> int:
        """How many passages the index holds."""
        info = self._command("FT.INFO", self.index)
        table = dict(zip(info[::2], info[1::2], strict=False))
        return int(table[b"num_docs"])

    def _create(self, label: Label) -> None:
        schema: list[Any] = ["contents", "TEXT"]
        if self.encoder is not None:
            size = self.encoder.record.dimension
            schema += ["vector", "VECTOR", "HNSW", 6, "TYPE", "FLOAT32", "DIM", size, "DISTANCE_METRIC", "IP"]
        self._command("SET", self._label_key, label.text())
        prefix = ["ON", "HASH", "PREFIX", 1, f"{self.index}:", "STOPWORDS", 0]
        self._command("FT.CREATE", self.index, *prefix, "SCHEMA", *schema)

    def _drop(self) -> None:
        self._command("FT.DROPINDEX", self.index, "DD")
        self._command("DEL", self._label_key)

    def _write(self, first: int, passages: list[Hit]) -> None:
        vectors = None
        if self.encoder is not None:
            vectors = self.encoder.encode_passages([hit.contents for hit in passages])

        def write(client: Any, _: float) -> None:
            pipe = client.pipeline(transaction=False)
            for number, hit in enumerate(passages):
                fields: dict[str, Any] = {
                    "id": hit.id, "title": hit.title, "text": hit.text, "quoted": int(hit.quoted),
                    # A line break separates no words there; this field is searched, never shown.
                    "contents": " ".join(hit.contents.split()),
                }  # fmt: skip
                if vectors is not None:
                    fields["vector"] = vectors[number].astype("<f4").tobytes()
                pipe.hset(f"{self.index}:{first + number}", mapping=fields)
            pipe.execute()

        self._connections.run(write, None)

    def _search(self, queries: list[str], k: int, deadline: float | None) -> list[list[Hit]]:
        """The queries of a call go through one pipeline."""
        commands = self._commands(queries, k)

        def find(client: Any, _: float) -> list[Any]:
            pipe = client.pipeline(transaction=False)
            for command in commands:
                if command is not None:
                    pipe.execute_command(*command)
            return list(pipe.execute())

        answers = iter(self._found(find, deadline) if any(commands) else [])
        read = _read_words if self.encoder is None else _read_vectors
        return [read(next(answers)) if command is not None else [] for command in commands]

    def _found(self, find: Callable[[Any, float], list[Any]], deadline: float | None) -> list[Any]:
        import redis

        try:
            return self._connections.run(find, deadline)
        except redis.ResponseError as error:
            if _is_missing(error):
                raise self._missing() from error
            raise RetrievalRejected(f"refused: {error}", FailureDetails(self.address)) from error

    def _commands(self, queries: list[str], k: int) -> list[list[Any] | None]:
        """One FT.SEARCH per query; None for a query without words."""
        tail = ["LIMIT", 0, k, "DIALECT", 2]
        if self.encoder is None:
            fields = ["RETURN", len(_FIELDS), *_FIELDS]
            return [
                ["FT.SEARCH", self.index, words, "SCORER", "BM25STD", "WITHSCORES", *fields, *tail] if words else None
                for words in map(words_of, queries)
            ]
        fields = ["RETURN", len(_FIELDS) + 1, *_FIELDS, "distance"]
        vectors = np.asarray(self.encoder.encode_queries(queries), dtype="<f4")
        text = f"*=>[KNN {k} @vector $v AS distance]"
        return [
            ["FT.SEARCH", self.index, text, "PARAMS", 2, "v", vector.tobytes(), "SORTBY", "distance", *fields, *tail]
            for vector in vectors
        ]

    def close(self) -> None:
        """Closes this thread's connection."""
        self._connections.drop()


def words_of(query: str) -> str:
    """A RediSearch query that matches any of the words; every special character is escaped.

    >>> words_of("the capital of 'X' @admin:{y}")
    '@contents:(capital|X|admin|y)'
    """
    words = [word for word in tokenize(query) if word.lower() not in STOP_WORDS]
    escaped = [_SPECIAL.sub(r"\\\1", word) for word in dict.fromkeys(words)]
    return f"@contents:({'|'.join(escaped)})" if escaped else ""


def _fields(flat: Sequence[bytes]) -> dict[str, str]:
    return {key.decode(): value.decode("utf-8", "replace") for key, value in zip(flat[::2], flat[1::2], strict=True)}


def _hit(fields: dict[str, str], score: float) -> Hit:
    return Hit(fields["id"], fields["title"], fields["text"], score, fields["quoted"] == "1")


def _read_words(answer: Sequence[Any]) -> list[Hit]:
    rows = zip(answer[2::3], answer[3::3], strict=True)
    return [_hit(_fields(flat), float(score)) for score, flat in rows]


def _read_vectors(answer: Sequence[Any]) -> list[Hit]:
    found = [_fields(flat) for flat in answer[2::2]]
    return [_hit(fields, 1.0 - float(fields["distance"])) for fields in found]


def _is_missing(error: BaseException) -> bool:
    return any(words in str(error).lower() for words in ("unknown index name", "no such index", "index not found"))


def _lost() -> tuple[type[BaseException], ...]:
    import redis

    return (redis.ConnectionError,)


def _timeouts() -> tuple[type[BaseException], ...]:
    import redis

    return (redis.TimeoutError,)


def open_redis(
    name: str, corpus: Corpus | None, encoder: str | Encoder | None = None, **options: Any
) -> RedisRetriever:
    """Opens `redis://[USER][:PASSWORD@]HOST:6379/0?index=NAME`, percent-encoded where needed; words unless an encoder
    is given.

    Raises:
        ValueError: The database is no number.
    """
    parts = urlsplit(name)
    index = parse_qs(parts.query).get("index", ["passages"])[0]
    chosen = open_encoder(encoder) if isinstance(encoder, str) else encoder
    database = unquote(parts.path).strip("/") or parse_qs(parts.query).get("db", ["0"])[0]
    if not (database.isascii() and database.isdecimal()):
        raise ValueError(f"redis: database {database!r}; write redis://HOST:6379/NUMBER?index=NAME")
    host, port = parts.hostname or "127.0.0.1", parts.port or 6379
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    return RedisRetriever(host, port, int(database), index, chosen, password, user, corpus=corpus, **options)
