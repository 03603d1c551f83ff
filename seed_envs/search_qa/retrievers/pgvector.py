"""PostgreSQL with pgvector: passages and vectors in one table, inner product, exact or by an HNSW index.

PostgreSQL's text ranking is not BM25, so this adapter ranks by vectors only. Tested against a real server.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qs, urlsplit, urlunsplit

import numpy as np
from numpy.typing import NDArray

from seed_envs.errors import require
from seed_envs.search_qa.corpus import Corpus
from seed_envs.search_qa.encoders import Encoder, open_encoder, record_as_json
from seed_envs.search_qa.retrievers.base import Capabilities, Hit, RetrieverMismatch, check_k, fingerprint_of
from seed_envs.search_qa.retrievers.ingest import ingest_in_order
from seed_envs.search_qa.retrievers.service import ServiceConnections

_NAME = re.compile(r"[a-z_][a-z0-9_]{0,50}\Z")


class PgVectorRetriever:
    """A client of one table.

    Args:
        address: `postgresql://...`, as psycopg takes it.
        table: Table name; lower-case letters, digits, underscores.
        encoder: Makes the vectors.
        ef_search: HNSW search width; None keeps the server's.
    """

    def __init__(self, address: str, table: str, encoder: Encoder, ef_search: int | None = None) -> None:
        if not _NAME.match(table):
            raise ValueError(f"table={table!r}: expected lower-case letters, digits and underscores")
        require("psycopg", "pgvector", "PostgreSQL retrieval")
        self.table, self.encoder, self._address, self._ef_search = table, encoder, address, ef_search
        self.capabilities = Capabilities(vector=True)
        parts = urlsplit(address)
        shown = f"{parts.hostname or 'socket'}:{parts.port or 5432}{parts.path}"
        self._connections = ServiceConnections(self._connect, shown, _lost, _timeouts)

    @property
    def fingerprint(self) -> str:
        """Engine, table name, encoder and search width; the content of the table is not hashed."""
        record = {"engine": "pgvector", "table": self.table, "ef": self._ef_search}
        return fingerprint_of({**record, "encoder": record_as_json(self.encoder.record)})

    def _connect(self, seconds: float) -> Any:
        import psycopg

        connection = psycopg.connect(self._address, autocommit=True, connect_timeout=max(2, int(seconds)))
        if self._ef_search is not None:
            connection.execute("SELECT set_config('hnsw.ef_search', %s, false)", (str(int(self._ef_search)),))
        return connection

    def stored(self) -> int:
        """How many passages the table holds."""
        return int(
            self._connections.run(lambda c, _: c.execute(f"SELECT count(*) FROM {self.table}").fetchone()[0], None)
        )

    def ingest(self, corpus: Corpus, progress: bool = False, batch: int = 512, hnsw: bool = True) -> int:
        """Creates the table where it is missing and loads the passages; can be interrupted and run again.

        Args:
            corpus: The passages.
            progress: Show a progress line.
            batch: Passages per transaction.
            hnsw: Build an HNSW index at the end; without it searches are exact and read the whole table.
        """
        size = self.encoder.record.dimension

        def create(connection: Any, _: float) -> None:
            connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
            connection.execute(
                f"CREATE TABLE IF NOT EXISTS {self.table} (position bigint PRIMARY KEY, id text UNIQUE NOT NULL, "
                f"title text NOT NULL, passage text NOT NULL, quoted boolean NOT NULL, vector vector({size}) NOT NULL)"
            )

        self._connections.run(create, None)
        count = ingest_in_order(corpus, self.stored, self._write, batch, progress)
        if hnsw:
            command = f"CREATE INDEX IF NOT EXISTS {self.table}_hnsw ON {self.table} USING hnsw (vector vector_ip_ops)"
            self._connections.run(lambda c, _: c.execute(command), None)
        return count

    def _write(self, first: int, passages: list[Hit]) -> None:
        vectors = self.encoder.encode_passages([hit.contents for hit in passages])
        rows = [
            (first + number, hit.id, hit.title, hit.text, hit.quoted, _literal(vectors[number]))
            for number, hit in enumerate(passages)
        ]

        def write(connection: Any, _: float) -> None:
            with connection.transaction(), connection.cursor() as cursor:
                cursor.executemany(
                    f"INSERT INTO {self.table} VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT (position) DO NOTHING", rows
                )

        self._connections.run(write, None)

    def search(self, queries: Sequence[str], k: int, deadline: float | None = None) -> list[list[Hit]]:
        """See `Retriever.search`; the queries of a call go through one pipeline."""
        check_k(k)
        if not queries:
            return []
        vectors = [_literal(vector) for vector in self.encoder.encode_queries(list(queries))]
        # <#> is the negative inner product.
        command = (
            f"SELECT id, title, passage, quoted, -(vector <#> %s::vector) FROM {self.table} "
            "ORDER BY vector <#> %s::vector, position LIMIT %s"
        )

        def find(connection: Any, seconds: float) -> list[list[Hit]]:
            milliseconds = str(max(1, int(seconds * 1000)))
            with connection.pipeline(), connection.cursor() as cursor:
                cursor.execute("SELECT set_config('statement_timeout', %s, false)", (milliseconds,))
                cursors = [connection.execute(command, (vector, vector, k)) for vector in vectors]
                return [[_hit(row) for row in found.fetchall()] for found in cursors]

        return self._connections.run(find, deadline)

    def check(self, corpus: Corpus) -> None:
        """Compares the number of passages.

        Raises:
            RetrieverMismatch: They differ.
        """
        if (found := self.stored()) != len(corpus):
            raise RetrieverMismatch(f"table {self.table}: holds {found} passages, the collection has {len(corpus)}")

    def close(self) -> None:
        """Closes this thread's connection."""
        self._connections.drop()


def _literal(vector: NDArray[np.float32]) -> str:
    return "[" + ",".join(map(repr, vector.tolist())) + "]"


def _hit(row: tuple[Any, ...]) -> Hit:
    identifier, title, text, quoted, score = row
    return Hit(identifier, title, text, float(score), quoted)


def _lost() -> tuple[type[BaseException], ...]:
    import psycopg

    return (psycopg.OperationalError, psycopg.InterfaceError)


def _timeouts() -> tuple[type[BaseException], ...]:
    import psycopg

    return (psycopg.errors.QueryCanceled, psycopg.errors.ConnectionTimeout)


def open_pgvector(
    name: str, corpus: Corpus | None, encoder: str | Encoder = "minilm", **options: Any
) -> PgVectorRetriever:
    """Opens `postgresql://USER@HOST:5432/DATABASE?table=NAME`; other parameters go to PostgreSQL."""
    parts = urlsplit(name)
    parameters = parse_qs(parts.query)
    table = parameters.pop("table", ["passages"])[0]
    rest = "&".join(f"{key}={value}" for key, values in parameters.items() for value in values)
    chosen = open_encoder(encoder) if isinstance(encoder, str) else encoder
    return PgVectorRetriever(urlunsplit(parts._replace(query=rest)), table, chosen, **options)
