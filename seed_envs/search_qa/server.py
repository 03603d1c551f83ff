"""The retrieval server: a drop-in for Search-R1's `/retrieve`, with batching, limits, health and metrics.

One event loop, loopback unless told otherwise with a token. It answers every input with the right status (see
`server_api`; `server_http` reads and writes HTTP) and stops in order on SIGTERM. TLS and user management are left to a
proxy.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from seed_envs.loopback import is_loopback
from seed_envs.redaction import redact
from seed_envs.search_qa.batching import MAX_BATCH, Batcher, QueueFull
from seed_envs.search_qa.retrievers.base import (
    COLLECTION_HEADER,
    RetrievalFailure,
    RetrievalTimeout,
    Retriever,
    collection_sha256,
    open_now,
)
from seed_envs.search_qa.server_api import (
    DEFAULT_TOPK,
    NO_MORE,
    ApiError,
    Limits,
    parse_request,
    render_error,
    render_result,
    whole_number,
)
from seed_envs.search_qa.server_http import PATIENCE, Connection, Patience, Reply
from seed_envs.search_qa.server_metrics import Metrics

_STOP_SECONDS = 1.0
"""How long clients may take to read their last answers when the server stops."""
_PATHS = {"/retrieve": "POST", "/health": "GET", "/metrics": "GET"}


@dataclass(frozen=True)
class ServerOptions:
    """How to serve.

    Attributes:
        host: Address to listen on; anything but loopback needs a token.
        port: Port, 0 for a free one.
        token: Required as `Authorization: Bearer TOKEN` when set.
        default_topk: For requests without topk.
        seconds: Longest time a request may take for each batch of 64 queries.
        max_waiting: Most queries in the queue; a request of any size is taken when none waits.
        max_connections: Most open connections; beyond it the one that has been idle the longest makes room.
        max_buffered: Most bytes of large bodies held at once, over all connections.
        limits: What a request may hold.
        patience: How long idle and half-sent connections are kept.
        fastapi_errors: 422 answers in FastAPI's shape.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    token: str = ""
    default_topk: int = DEFAULT_TOPK
    seconds: float = 10.0
    max_waiting: int = 8192
    max_connections: int = 1024
    max_buffered: int = 512 << 20
    limits: Limits = NO_MORE
    patience: Patience = PATIENCE
    fastapi_errors: bool = False

    def __post_init__(self) -> None:
        if not self.token and not is_loopback(self.host):
            raise ValueError(f"host={self.host!r} is not loopback; serving beyond this machine needs a token")


class RetrievalServer:
    """Serves one retriever.

    Args:
        retriever: The engine.
        options: How to serve.
        passages: Number of passages, for `/health`.
        engine: Name of the engine, for `/health`.
    """

    def __init__(
        self, retriever: Retriever, options: ServerOptions | None = None, passages: int = 0, engine: str = ""
    ) -> None:
        self.retriever, self.options = retriever, options or ServerOptions()
        self.metrics = Metrics()
        self.ready = False
        self.connections: set[Connection] = set()
        self.port = 0
        self.limits = self.options.limits
        self._buffered = 0
        self._collection = ""
        self._about = {"engine": redact(engine), "passages": passages}
        self._batcher: Batcher | None = None
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Listens, then opens the engine in the background (503 until it is open)."""
        loop = asyncio.get_running_loop()
        self._batcher = Batcher(self.retriever, self.options.max_waiting, self.metrics.batch)
        self._batcher.start()
        self._server = await loop.create_server(lambda: Connection(self), self.options.host, self.options.port)
        self.port = self._server.sockets[0].getsockname()[1]
        self.loading = loop.create_task(self._load())
        self._sweeping = loop.create_task(self._sweep())

    async def _load(self) -> None:
        await asyncio.get_running_loop().run_in_executor(None, self._open)
        self.ready = True

    def _open(self) -> None:
        open_now(self.retriever)
        self.retriever.search(["ready"], 1)
        self._collection = collection_sha256(self.retriever)

    async def _sweep(self) -> None:
        """Cuts off connections that keep the server waiting."""
        loop, patience = asyncio.get_running_loop(), self.options.patience
        while True:
            await asyncio.sleep(min(1.0, patience.idle / 4, patience.started / 4))
            for connection in [one for one in self.connections if one.has_exhausted(patience, loop.time())]:
                connection.abort()

    async def stop(self) -> None:
        """Stops listening, answers waiting requests with 503 and closes every connection."""
        if self._server is not None:
            self._server.close()
        self.loading.cancel()
        self._sweeping.cancel()
        if self._batcher is not None:
            await self._batcher.stop()
        for connection in list(self.connections):
            connection.finish()
        limit = time.monotonic() + _STOP_SECONDS
        while self.connections and time.monotonic() < limit:
            await asyncio.sleep(0.01)
        for connection in list(self.connections):
            connection.abort()
        await asyncio.sleep(0)

    def opened(self, connection: Connection) -> bool:
        """Notes a new connection; False when there are too many and all are at work."""
        if len(self.connections) >= self.options.max_connections:
            idle = min((one for one in self.connections if one.waits), key=lambda one: one.since, default=None)
            if idle is None:
                return False
            self.connections.discard(idle)
            idle.abort()
        self.connections.add(connection)
        return True

    def reserve(self, count: int) -> bool:
        """Sets memory aside for a large body; a negative number gives it back."""
        if count > 0 and self._buffered and self._buffered + count > self.options.max_buffered:
            return False
        self._buffered += count
        return True

    def closed(self, connection: Connection) -> None:
        """Forgets a connection."""
        self.connections.discard(connection)

    async def answer(self, method: str, path: str, headers: dict[str, str], body: bytes) -> Reply:
        """Answers a request, whatever it is."""
        started = time.perf_counter()
        queries, kind = 0, "application/json"
        try:
            status, text, kind, queries = await self._respond(method, path, headers, body)
        except ApiError as error:
            status, text = error.status, render_error(error, self.options.fastapi_errors)
        except Exception as error:
            # A fault of the engine, not of the input; the type is named, its text may hold secrets and is not.
            status = 500
            text = render_error(ApiError(500, "internal", f"the engine raised {type(error).__name__}"))
        self.metrics.request(status, queries, time.perf_counter() - started)
        return Reply(status, text, kind, f"{COLLECTION_HEADER}: {self._collection}\r\n" if self._collection else "")

    def refuse(self, error: ApiError) -> Reply:
        """The answer to something that cannot be read as a request."""
        self.metrics.request(error.status, 0, 0.0)
        return Reply(error.status, render_error(error), "application/json")

    async def _respond(
        self, method: str, path: str, headers: dict[str, str], body: bytes
    ) -> tuple[int, bytes, str, int]:
        """Status, body, content type and number of queries of a request."""
        path = path.partition("?")[0].rstrip("/") or "/"
        if path not in _PATHS:
            raise ApiError(404, "not_found", f"no such path; there are {sorted(_PATHS)}")
        if method != _PATHS[path] and (method, _PATHS[path]) != ("HEAD", "GET"):
            raise ApiError(405, "method", f"{path} takes {_PATHS[path]}, got {method}")
        if self.options.token and path != "/health":
            given = headers.get("authorization", "").encode()
            if not hmac.compare_digest(given, f"Bearer {self.options.token}".encode()):
                raise ApiError(401, "unauthorized", "expected Authorization: Bearer TOKEN")
        if path == "/health":
            return 200 if self.ready else 503, json.dumps(self._health()).encode(), "application/json", 0
        if path == "/metrics":
            return 200, self._metrics(), "text/plain; version=0.0.4", 0
        return await self._retrieve(headers, body)

    def _health(self) -> dict[str, Any]:
        if not self.ready:
            return {"status": "loading", **self._about}
        return {
            "status": "ok",
            **self._about,
            "fingerprint": self.retriever.fingerprint,
            "collection": self._collection,
        }

    def _metrics(self) -> bytes:
        waiting = self._batcher.waiting if self._batcher is not None else 0
        hits, misses = getattr(self.retriever, "hits", 0), getattr(self.retriever, "misses", 0)
        return self.metrics.render(waiting, hits, misses)

    async def _retrieve(self, headers: dict[str, str], body: bytes) -> tuple[int, bytes, str, int]:
        query = parse_request(body, self.options.default_topk, self.limits)
        if not self.ready or self._batcher is None:
            raise ApiError(503, "loading", "the index is being opened")
        seconds = self.options.seconds * max(1, -(-len(query.queries) // MAX_BATCH))
        wished = whole_number(headers.get("x-deadline-ms", ""))
        if wished is not None:
            seconds = min(seconds, max(wished, 0) / 1000)
        try:
            searching = self._batcher.search(query.queries, query.topk, time.monotonic() + seconds)
            results = await asyncio.wait_for(searching, seconds)
        except QueueFull as error:
            raise ApiError(429, "queue_full", str(error)) from None
        except (TimeoutError, asyncio.TimeoutError, RetrievalTimeout):
            raise ApiError(504, "deadline", f"no result within {seconds:.3f} s") from None
        except RetrievalFailure as error:
            raise ApiError(503, "engine", redact(str(error))) from None
        return 200, render_result(results, query.return_scores), "application/json", len(query.queries)


def serve(server: RetrievalServer, announce: Callable[[str], None]) -> None:
    """Serves until SIGINT or SIGTERM.

    Args:
        server: The server.
        announce: Called once with the address.

    Raises:
        Exception: What opening the engine raised.
    """

    async def run() -> None:
        await server.start()
        announce(f"http://{server.options.host}:{server.port}")
        stopped = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stopped.set)
        stopping = loop.create_task(stopped.wait())
        # An engine that cannot be opened ends the server with its error.
        await asyncio.wait({server.loading, stopping}, return_when=asyncio.FIRST_COMPLETED)
        failed = server.loading.done() and server.loading.exception() is not None
        if not failed:
            await stopping
        stopping.cancel()
        await server.stop()
        if failed:
            await server.loading

    asyncio.run(run())
