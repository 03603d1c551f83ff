"""PostgreSQL with pgvector: passages and vectors in one table, inner product, exact or by an HNSW index.

PostgreSQL's text ranking is not BM25, so this adapter ranks by vectors only. Tested against a real server.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qs, urlsplit, urlunsplit

import numpy as np
from numpy.typing import NDArray

from seed_envs.errors import UnknownOption, require
from seed_envs.search_qa.corpus import Corpus
from seed_envs.search_qa.encoders import Encoder, open_encoder
from seed_envs.search_qa.retrievers.base import Capabilities, FailureDetails, Hit, RetrievalRejected
from seed_envs.search_qa.retrievers.holding import HoldingRetriever, Label
from seed_envs.search_qa.retrievers.service import ServiceConnections

EF_SEARCH = 40
"""The width of pgvector's HNSW searches where nobody says otherwise, as the extension's manual states it."""
_NAME = re.compile(r"[a-z_][a-z0-9_]{0,50}\Z")


class PgVectorRetriever(HoldingRetriever):
    """A client of one table.

    Args:
        address: `postgresql://...`, as psycopg takes it.
        table: Table name; lower-case letters, digits, underscores.
        encoder: Makes the vectors.
        ef_search: HNSW search width; raised to `k` where that is more, since HNSW finds no more passages than its
            width. None is the server's usual 40.
        corpus: The collection that the table must hold; None takes what is there.
    """

    engine = "pgvector"
    batch = 512

    def __init__(
        self,
        address: str,
        table: str,
        encoder: Encoder,
        ef_search: int | None = None,
        corpus: Corpus | None = None,
    ) -> None:
        if not _NAME.match(table):
            raise UnknownOption(f"table={table!r}: expected lower-case letters, digits and underscores")
        require("psycopg", "pgvector", "PostgreSQL retrieval")
        parts = urlsplit(address)
        shown = f"{parts.hostname or 'socket'}:{parts.port or 5432}{parts.path}"
        super().__init__(f"postgresql://{shown}?table={table}", encoder, corpus)
        self.table, self._server, self._encoder = table, address, encoder
        self._ef_search = EF_SEARCH if ef_search is None else int(ef_search)
        self.capabilities = Capabilities(vector=True)
        self._connections = ServiceConnections(self._connect, shown, _lost, _timeouts)

    def _parameters(self) -> dict[str, object]:
        return {"ef": self._ef_search}

    def _connect(self, seconds: float) -> Any:
        import psycopg

        return psycopg.connect(self._server, autocommit=True, connect_timeout=max(2, int(seconds)))

    def read_label(self, deadline: float | None = None) -> Label | None:
        """See `HoldingRetriever.read_label`; the label is the table's comment."""
        query = "SELECT to_regclass(%s)::text, obj_description(to_regclass(%s), 'pg_class')"
        row = self._connections.run(lambda c, _: c.execute(query, (self.table, self.table)).fetchone(), deadline)
        return None if row[0] is None else Label.parse(row[1])

    def stored(self) -> int:
        """How many passages the table holds."""
        return int(
            self._connections.run(lambda c, _: c.execute(f"SELECT count(*) FROM {self.table}").fetchone()[0], None)
        )

    def _create(self, label: Label) -> None:
        size = self._encoder.record.dimension

        def create(connection: Any, _: float) -> None:
            connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
            with connection.transaction():
                connection.execute(
                    f"CREATE TABLE {self.table} (position bigint PRIMARY KEY, id text UNIQUE NOT NULL, title text NOT "
                    f"NULL, passage text NOT NULL, quoted boolean NOT NULL, vector vector({size}) NOT NULL)"
                )
                # A label holds hexadecimal digits, letters, digits and blanks only.
                connection.execute(f"COMMENT ON TABLE {self.table} IS '{label.text()}'")

        self._connections.run(create, None)

    def _drop(self) -> None:
        self._connections.run(lambda c, _: c.execute(f"DROP TABLE IF EXISTS {self.table}"), None)

    def ingest(
        self,
        corpus: Corpus,
        progress: bool = False,
        batch: int | None = None,
        replace: bool = False,
        hnsw: bool = True,
    ) -> int:
        """As `HoldingRetriever.ingest`.

        Args:
            corpus: The passages.
            progress: Show a progress line.
            batch: Passages per transaction.
            replace: Empty the table first, whatever it holds.
            hnsw: Build an HNSW index at the end; without it searches are exact and read the whole table.
        """
        count = super().ingest(corpus, progress, batch, replace)
        if hnsw:
            command = f"CREATE INDEX IF NOT EXISTS {self.table}_hnsw ON {self.table} USING hnsw (vector vector_ip_ops)"
            self._connections.run(lambda c, _: c.execute(command), None)
        return count

    def _write(self, first: int, passages: list[Hit]) -> None:
        vectors = self._encoder.encode_passages([hit.contents for hit in passages])
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

    def _search(self, queries: list[str], k: int, deadline: float | None) -> list[list[Hit]]:
        """The queries of a call go through one pipeline."""
        vectors = [_literal(vector) for vector in self._encoder.encode_queries(queries)]
        # <#> is the negative inner product.
        command = (
            f"SELECT id, title, passage, quoted, -(vector <#> %s::vector) FROM {self.table} "
            "ORDER BY vector <#> %s::vector, position LIMIT %s"
        )

        def find(connection: Any, seconds: float) -> list[list[Hit]]:
            milliseconds = str(max(1, int(seconds * 1000)))
            with connection.pipeline(), connection.cursor() as cursor:
                cursor.execute("SELECT set_config('statement_timeout', %s, false)", (milliseconds,))
                cursor.execute("SELECT set_config('hnsw.ef_search', %s, false)", (str(max(k, self._ef_search)),))
                cursors = [connection.execute(command, (vector, vector, k)) for vector in vectors]
                return [[_hit(row) for row in found.fetchall()] for found in cursors]

        import psycopg

        try:
            return self._connections.run(find, deadline)
        except psycopg.errors.UndefinedTable as error:
            raise self._missing() from error
        except psycopg.DatabaseError as error:
            raise RetrievalRejected(f"refused: {error}", FailureDetails(self.address)) from error

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
    return PgVectorRetriever(urlunsplit(parts._replace(query=rest)), table, chosen, corpus=corpus, **options)
