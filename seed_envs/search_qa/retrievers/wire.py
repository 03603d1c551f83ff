"""One HTTP/1.1 exchange under a deadline: every connect, write and read counts against the same point in time.

A server that sends one byte a second cannot hold a caller longer than the deadline. No redirect is followed, and bodies
are limited. Connections are kept alive and reused by the caller.
"""

from __future__ import annotations

import http.client
import io
import socket
import ssl
import time
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import SplitResult, urlsplit

MAX_RESPONSE = 16 << 20
CONNECT_SECONDS = 1.0


class Response(NamedTuple):
    """Status, headers (names in lower case) and body."""

    status: int
    headers: dict[str, str]
    body: bytes


class ResponseTooLarge(Exception):
    """The body is longer than `MAX_RESPONSE`."""


class _DeadlineReader(io.RawIOBase):
    """Reads from a socket; each read gets only the time that is left."""

    def __init__(self, sock: socket.socket, deadline: float) -> None:
        self._sock, self._deadline = sock, deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("the deadline passed while reading")
        self._sock.settimeout(left)
        return self._sock.recv_into(buffer)


class _SocketView:
    """What `http.client.HTTPResponse` needs of a socket."""

    def __init__(self, sock: socket.socket, deadline: float) -> None:
        self._sock, self._deadline = sock, deadline

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(_DeadlineReader(self._sock, self._deadline), 65536)


class Connection:
    """One connection to one base address.

    Args:
        base: `http://HOST:PORT[/prefix]` or https.
    """

    def __init__(self, base: str) -> None:
        self._sock: socket.socket | None = None
        self.parts: SplitResult = urlsplit(base)
        self.fresh = True

    def _connect(self, deadline: float) -> socket.socket:
        default = 443 if self.parts.scheme == "https" else 80
        limit = min(CONNECT_SECONDS, max(deadline - time.monotonic(), 0.001))
        sock = socket.create_connection((self.parts.hostname or "", self.parts.port or default), timeout=limit)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.parts.scheme == "https":
            sock = ssl.create_default_context().wrap_socket(sock, server_hostname=self.parts.hostname)
        return sock

    def exchange(self, method: str, path: str, body: bytes, headers: Mapping[str, str], deadline: float) -> Response:
        """Sends a request and reads the whole answer; closes the connection on any error.

        Raises:
            OSError: Cannot connect, connection lost, or `TimeoutError` at the deadline.
            http.client.HTTPException: The answer is not HTTP.
            ResponseTooLarge: The body exceeds the limit.
        """
        self.fresh = self._sock is None
        try:
            if self._sock is None:
                self._sock = self._connect(deadline)
            lines = [
                f"{method} {self.parts.path.rstrip('/')}{path} HTTP/1.1",
                f"Host: {self.parts.netloc.split('@')[-1]}",
            ]
            lines += [f"{name}: {value}" for name, value in headers.items()]
            lines.append(f"Content-Length: {len(body)}")
            self._sock.settimeout(max(deadline - time.monotonic(), 0.001))
            self._sock.sendall("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body)
            answer = http.client.HTTPResponse(_SocketView(self._sock, deadline), method=method)  # type: ignore[arg-type]
            answer.begin()
            content = answer.read(MAX_RESPONSE + 1)
            if len(content) > MAX_RESPONSE:
                raise ResponseTooLarge(f"more than {MAX_RESPONSE} bytes")
            if answer.length:
                raise http.client.IncompleteRead(content, answer.length)
            if answer.will_close:
                self.close()
            return Response(answer.status, {k.lower(): v for k, v in answer.getheaders()}, content)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Closes the connection; the next exchange opens a new one."""
        if self._sock is not None:
            self._sock.close()
            self._sock = None

    def __del__(self) -> None:
        self.close()
