"""The retrieval server: a drop-in for Search-R1's `/retrieve`, with batching, limits, health and metrics.

One event loop, HTTP/1.1 with keep-alive, loopback unless told otherwise with a token. It answers every input with the
right status (see `server_api`) and stops in order on SIGTERM. TLS and user management are left to a proxy.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import json
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from seed_envs.search_qa.batching import Batcher, QueueFull
from seed_envs.search_qa.retrievers.base import RetrievalFailure, RetrievalTimeout, Retriever
from seed_envs.search_qa.server_api import (
    DEFAULT_TOPK,
    MAX_BODY,
    ApiError,
    parse_request,
    render_error,
    render_result,
)
from seed_envs.search_qa.server_metrics import Metrics

_REASONS = {
    200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 405: "Method Not Allowed",
    411: "Length Required", 413: "Content Too Large", 422: "Unprocessable Content", 429: "Too Many Requests",
    431: "Request Header Fields Too Large", 500: "Internal Server Error", 503: "Service Unavailable",
    504: "Gateway Timeout",
}  # fmt: skip
_MAX_HEAD = 16384
_PATHS = {"/retrieve": "POST", "/health": "GET", "/metrics": "GET"}


@dataclass(frozen=True)
class ServerOptions:
    """How to serve.

    Attributes:
        host: Address to listen on; anything but loopback needs a token.
        port: Port, 0 for a free one.
        token: Required as `Authorization: Bearer TOKEN` when set.
        default_topk: For requests without topk.
        seconds: Longest time a request may take.
        max_waiting: Most queries in the queue.
        max_connections: Most open connections.
        fastapi_errors: 422 answers in FastAPI's shape.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    token: str = ""
    default_topk: int = DEFAULT_TOPK
    seconds: float = 10.0
    max_waiting: int = 8192
    max_connections: int = 1024
    fastapi_errors: bool = False

    def __post_init__(self) -> None:
        if not self.token and not is_loopback(self.host):
            raise ValueError(f"host={self.host!r} is not loopback; serving beyond this machine needs a token")


def is_loopback(host: str) -> bool:
    """Whether an address is reachable from this machine alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


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
        self.connections = 0
        self.port = 0
        self._about = {"engine": engine, "passages": passages}
        self._batcher: Batcher | None = None
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Listens, then opens the engine in the background (503 until it is open)."""
        loop = asyncio.get_running_loop()
        self._batcher = Batcher(self.retriever, self.options.max_waiting, self.metrics.batch)
        self._batcher.start()
        self._server = await loop.create_server(lambda: _Connection(self), self.options.host, self.options.port)
        self.port = self._server.sockets[0].getsockname()[1]
        self._loading = loop.create_task(self._load())

    async def _load(self) -> None:
        await asyncio.get_running_loop().run_in_executor(None, self.retriever.search, ["ready"], 1)
        self.ready = True

    async def stop(self) -> None:
        """Stops listening and ends waiting requests."""
        if self._server is not None:
            self._server.close()
        self._loading.cancel()
        if self._batcher is not None:
            await self._batcher.stop()

    async def respond(
        self, method: str, path: str, headers: dict[str, str], body: bytes
    ) -> tuple[int, bytes, str, int]:
        """Answers a request.

        Returns:
            Status, body, content type, number of queries.
        """
        path = path.partition("?")[0].rstrip("/") or "/"
        if path not in _PATHS:
            raise ApiError(404, "not_found", f"no such path; there are {sorted(_PATHS)}")
        if method != _PATHS[path]:
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
        return {"status": "ok", **self._about, "fingerprint": self.retriever.fingerprint}

    def _metrics(self) -> bytes:
        waiting = self._batcher.waiting if self._batcher is not None else 0
        hits, misses = getattr(self.retriever, "hits", 0), getattr(self.retriever, "misses", 0)
        return self.metrics.render(waiting, hits, misses)

    async def _retrieve(self, headers: dict[str, str], body: bytes) -> tuple[int, bytes, str, int]:
        query = parse_request(body, self.options.default_topk)
        if not self.ready or self._batcher is None:
            raise ApiError(503, "loading", "the index is being opened")
        seconds = self.options.seconds
        wished = headers.get("x-deadline-ms", "")
        if wished.isdigit():
            seconds = min(seconds, int(wished) / 1000)
        try:
            future = self._batcher.submit(query.queries, query.topk, time.monotonic() + seconds)
            results = await asyncio.wait_for(future, seconds)
        except QueueFull as error:
            raise ApiError(429, "queue_full", str(error)) from None
        except (TimeoutError, asyncio.TimeoutError, RetrievalTimeout):
            raise ApiError(504, "deadline", f"no result within {seconds:.3f} s") from None
        except RetrievalFailure as error:
            raise ApiError(503, "engine", str(error)) from None
        return 200, render_result(results, query.return_scores), "application/json", len(query.queries)


class _Connection(asyncio.Protocol):
    """One client connection: requests one after the other, pipelined ones wait their turn."""

    def __init__(self, server: RetrievalServer) -> None:
        self._server = server
        self._buffer = bytearray()
        self._busy = self._continued = False
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Refuses connections beyond the limit."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._server.connections += 1
        if self._server.connections > self._server.options.max_connections:
            self._fail(ApiError(503, "connections", "too many connections"))

    def connection_lost(self, exc: Exception | None) -> None:
        """Forgets the connection."""
        self._server.connections -= 1
        self._transport = None

    def data_received(self, data: bytes) -> None:
        """Collects bytes; starts the next request when it is complete."""
        self._buffer += data
        if not self._busy:
            self._next()

    def _next(self) -> None:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(self._buffer) > _MAX_HEAD:
                self._fail(ApiError(431, "headers", f"request headers may have {_MAX_HEAD} bytes"))
            return
        try:
            method, path, headers = _parse_head(bytes(self._buffer[:end]))
            length = _content_length(method, headers)
        except ApiError as error:
            self._fail(error)
            return
        if len(self._buffer) < end + 4 + length:
            waits = headers.get("expect", "").lower() == "100-continue"
            if waits and not self._continued and self._transport is not None:
                self._continued = True
                self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            return
        body = bytes(self._buffer[end + 4 : end + 4 + length])
        del self._buffer[: end + 4 + length]
        self._busy, self._continued = True, False
        self._task = asyncio.get_running_loop().create_task(self._handle(method, path, headers, body))

    async def _handle(self, method: str, path: str, headers: dict[str, str], body: bytes) -> None:
        started = time.perf_counter()
        queries, kind = 0, "application/json"
        try:
            status, answer, kind, queries = await self._server.respond(method, path, headers, body)
        except ApiError as error:
            status, answer = error.status, render_error(error, self._server.options.fastapi_errors)
        except Exception as error:
            # A fault of the engine, not of the input; the type is named, its text may hold secrets and is not.
            status = 500
            answer = render_error(ApiError(500, "internal", f"the engine raised {type(error).__name__}"))
        self._server.metrics.request(status, queries, time.perf_counter() - started)
        close = headers.get("connection", "").lower() == "close"
        self._write(status, answer, kind, close)
        self._busy = False
        if self._buffer and not close and self._transport is not None:
            self._next()

    def _write(self, status: int, body: bytes, kind: str, close: bool) -> None:
        if self._transport is None:
            return
        retry = "Retry-After: 1\r\n" if status in (429, 503) else ""
        head = (
            f"HTTP/1.1 {status} {_REASONS[status]}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
            f"{retry}Connection: {'close' if close else 'keep-alive'}\r\n\r\n"
        )
        self._transport.write(head.encode("latin-1") + body)
        if close:
            self._transport.close()

    def _fail(self, error: ApiError) -> None:
        """Answers a request that cannot be read on, and closes."""
        self._server.metrics.request(error.status, 0, 0.0)
        self._write(error.status, render_error(error), "application/json", True)


def _parse_head(head: bytes) -> tuple[str, str, dict[str, str]]:
    lines = head.decode("latin-1").split("\r\n")
    parts = lines[0].split(" ")
    if len(parts) != 3 or not parts[2].startswith("HTTP/1."):
        raise ApiError(400, "bad_request", "expected an HTTP/1.1 request line")
    headers = {}
    for line in lines[1:]:
        name, colon, value = line.partition(":")
        if not colon or not name.strip():
            raise ApiError(400, "bad_request", f"bad header line {line[:80]!r}")
        headers[name.strip().lower()] = value.strip()
    return parts[0], parts[1], headers


def _content_length(method: str, headers: dict[str, str]) -> int:
    if "transfer-encoding" in headers:
        raise ApiError(411, "length_required", "send a Content-Length; chunked bodies are not read")
    value = headers.get("content-length", "0" if method != "POST" else "")
    if not value:
        raise ApiError(411, "length_required", "send a Content-Length")
    if not value.isdigit():
        raise ApiError(400, "bad_request", f"Content-Length {value[:20]!r} is not a number")
    if int(value) > MAX_BODY:
        raise ApiError(413, "body_too_large", f"the body may have {MAX_BODY} bytes, got {value[:20]}")
    return int(value)


def serve(server: RetrievalServer, announce: Callable[[str], None]) -> None:
    """Serves until SIGINT or SIGTERM.

    Args:
        server: The server.
        announce: Called once with the address.
    """

    async def run() -> None:
        await server.start()
        announce(f"http://{server.options.host}:{server.port}")
        stopped = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stopped.set)
        await stopped.wait()
        await server.stop()

    asyncio.run(run())
