"""HTTP/1.1 on one connection of the retrieval server: bytes to requests, answers to bytes, in order.

Kept connections, pipelining, `Expect: 100-continue`, limits on head and body, back pressure both ways. What a request
means is the business of its host; chunked bodies are refused.
"""

from __future__ import annotations

import asyncio
from typing import NamedTuple, Protocol

from seed_envs.search_qa.server_api import ApiError, Limits, whole_number

_REASONS = {
    200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 405: "Method Not Allowed",
    411: "Length Required", 413: "Content Too Large", 422: "Unprocessable Content", 429: "Too Many Requests",
    431: "Request Header Fields Too Large", 500: "Internal Server Error", 503: "Service Unavailable",
    504: "Gateway Timeout",
}  # fmt: skip
_MAX_HEAD = 16384
_AHEAD = 1 << 20
"""Bytes of further requests that are read while one is answered; also the longest body that needs no reservation."""
_MAX_DISCARDED = 64 << 20
"""Bytes that are read and thrown away behind a request that was refused, so that its sender gets to the answer."""
_LINGER_SECONDS = 5.0
"""Longest time that this takes."""


class Reply(NamedTuple):
    """An answer.

    Attributes:
        status: HTTP status.
        body: Its bytes.
        kind: Content type.
        headers: Further header lines, each with its line break.
    """

    status: int
    body: bytes
    kind: str
    headers: str = ""


class Patience(NamedTuple):
    """How long a connection may keep the server waiting, in seconds.

    Attributes:
        idle: For the first byte of a request.
        started: For the rest of a request, and for the client to read its answers.
    """

    idle: float = 60.0
    started: float = 30.0


PATIENCE = Patience()
"""That of a server whose user says nothing about it."""


class Host(Protocol):
    """Who answers the requests of connections."""

    limits: Limits

    def opened(self, connection: Connection) -> bool:
        """A connection is there; False when it is one too many."""

    def reserve(self, count: int) -> bool:
        """Sets memory aside for a large body; a negative number gives it back. False when there is not enough."""

    def closed(self, connection: Connection) -> None:
        """A connection is gone."""

    async def answer(self, method: str, path: str, headers: dict[str, str], body: bytes) -> Reply:
        """Answers a request."""

    def refuse(self, error: ApiError) -> Reply:
        """The answer to something that cannot be read as a request."""


class Connection(asyncio.Protocol):
    """One client connection: requests one after the other, pipelined ones wait their turn."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._buffer = bytearray()
        self._busy = self._continued = self._full = self._refused = self._last = False
        self._discarded = self._reserved = 0
        self._since = asyncio.get_running_loop().time()
        self._transport: asyncio.Transport | None = None

    @property
    def waits(self) -> bool:
        """Whether the client is the one who has to do something."""
        return not self._busy or self._full

    @property
    def since(self) -> float:
        """Loop time since which it has."""
        return self._since

    def has_exhausted(self, patience: Patience, now: float) -> bool:
        """Whether the client has kept the server waiting for too long."""
        started = bool(self._buffer) or self._full
        return self.waits and now - self._since > (patience.started if started else patience.idle)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Refuses connections beyond the limit."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        if not self._host.opened(self):
            self._refuse(ApiError(503, "connections", "too many connections"))

    def connection_lost(self, exc: Exception | None) -> None:
        """Forgets the connection."""
        self._host.closed(self)
        self._release()
        self._transport = None

    def _release(self) -> None:
        if self._reserved:
            self._host.reserve(-self._reserved)
            self._reserved = 0

    def _wait(self) -> None:
        """The client's time begins."""
        self._since = asyncio.get_running_loop().time()

    def finish(self) -> None:
        """Closes the connection after the request that is being answered."""
        self._last = True
        if not self._busy and self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Closes the connection at once; answers that were not read are lost."""
        if self._transport is not None:
            self._transport.abort()

    def pause_writing(self) -> None:
        """The client does not read its answers: no further request is started."""
        self._full = True
        self._wait()

    def resume_writing(self) -> None:
        """The client reads again."""
        self._full = False
        self._next()

    def data_received(self, data: bytes) -> None:
        """Collects bytes; starts the next request when it is complete."""
        if self._refused:
            self._discarded += len(data)
            if self._discarded > _MAX_DISCARDED:
                self.abort()
            return
        if not self._buffer and not self._busy:
            self._wait()
        self._buffer += data
        self._next()
        # Further requests wait outside.
        if (self._busy or self._full) and len(self._buffer) > _AHEAD and self._transport is not None:
            self._transport.pause_reading()

    def _next(self) -> None:
        if self._busy or self._full or self._refused or self._last or self._transport is None:
            return
        self._transport.resume_reading()
        end = self._buffer.find(b"\r\n\r\n")
        if max(end, len(self._buffer) if end < 0 else 0) > _MAX_HEAD:
            self._refuse(ApiError(431, "headers", f"request headers may have {_MAX_HEAD} bytes"))
        if end < 0 or self._refused:
            return
        try:
            method, path, headers = _parse_head(bytes(self._buffer[:end]))
            length = _content_length(method, headers, self._host.limits.body)
            self._set_aside(length)
        except ApiError as error:
            self._refuse(error)
            return
        if len(self._buffer) < end + 4 + length:
            waits = headers.get("expect", "").lower() == "100-continue"
            if waits and not self._continued:
                self._continued = True
                self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            return
        body = bytes(self._buffer[end + 4 : end + 4 + length])
        del self._buffer[: end + 4 + length]
        self._busy, self._continued = True, False
        self._task = asyncio.get_running_loop().create_task(self._handle(method, path, headers, body))

    def _set_aside(self, length: int) -> None:
        if length > _AHEAD and not self._reserved:
            if not self._host.reserve(length):
                raise ApiError(503, "busy", "too many large requests at once")
            self._reserved = length

    async def _handle(self, method: str, path: str, headers: dict[str, str], body: bytes) -> None:
        reply = await self._host.answer(method, path, headers, body)
        self._last = self._last or headers.get("connection", "").lower() == "close"
        self._release()
        self._busy = False
        self._wait()
        self._write(reply._replace(body=b"") if method == "HEAD" else reply, len(reply.body))
        if self._last:
            self.finish()
        else:
            self._next()

    def _write(self, reply: Reply, length: int) -> None:
        if self._transport is None:
            return
        status, body, kind, further = reply
        retry = "Retry-After: 1\r\n" if status in (429, 503) else ""
        head = (
            f"HTTP/1.1 {status} {_REASONS[status]}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n"
            f"{retry}{further}Connection: {'close' if self._last else 'keep-alive'}\r\n\r\n"
        )
        self._transport.write(head.encode("latin-1") + body)

    def _refuse(self, error: ApiError) -> None:
        """Answers a request that cannot be read on, and closes as soon as its sender has stopped sending.

        Closing at once would reset the connection under a client that is still writing, which then never sees the
        answer.
        """
        self._refused = self._last = True
        self._buffer.clear()
        reply = self._host.refuse(error)
        self._write(reply, len(reply.body))
        if self._transport is not None:
            self._transport.write_eof()
            self._transport.resume_reading()
            asyncio.get_running_loop().call_later(_LINGER_SECONDS, self._transport.abort)


def _parse_head(head: bytes) -> tuple[str, str, dict[str, str]]:
    lines = head.decode("latin-1").split("\r\n")
    parts = lines[0].split(" ")
    if len(parts) != 3 or not parts[2].startswith("HTTP/1."):
        raise ApiError(400, "bad_request", "expected an HTTP/1.1 request line")
    # A client of HTTP/1.0 takes the end of the connection for the end of the answer.
    headers = {"connection": "close"} if parts[2] == "HTTP/1.0" else {}
    for line in lines[1:]:
        name, colon, value = line.partition(":")
        if not colon or not name.strip():
            raise ApiError(400, "bad_request", f"bad header line {line[:80]!r}")
        name, value = name.strip().lower(), value.strip()
        if name == "content-length" and headers.get(name, value) != value:
            raise ApiError(400, "bad_request", "two different Content-Length headers")
        headers[name] = value
    return parts[0], parts[1], headers


def _content_length(method: str, headers: dict[str, str], most: int) -> int:
    if "transfer-encoding" in headers:
        raise ApiError(411, "length_required", "send a Content-Length; chunked bodies are not read")
    value = headers.get("content-length", "0" if method != "POST" else "")
    if not value:
        raise ApiError(411, "length_required", "send a Content-Length")
    length = whole_number(value)
    if length is None or not value[0].isdigit():
        raise ApiError(400, "bad_request", f"Content-Length {value[:20]!r} is not a number")
    if length > most:
        raise ApiError(413, "body_too_large", f"the body may have {most} bytes, got {value[:20]}")
    return length
