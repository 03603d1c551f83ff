"""Reliable calls to one or several equal HTTP endpoints: one deadline, retries, failover, circuit breakers, keep-alive.

It moves bytes and knows no search protocol; adapters turn bodies into hits and report bad ones.
"""

from __future__ import annotations

import http.client
import os
import random
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar
from urllib.parse import urlsplit

from seed_envs.errors import UnknownOption
from seed_envs.forks import PerProcessLock
from seed_envs.redaction import redact
from seed_envs.search_qa.retrievers.base import (
    FailureDetails,
    RetrievalProtocolError,
    RetrievalRejected,
    RetrievalTimeout,
    RetrievalUnavailable,
)
from seed_envs.search_qa.retrievers.reliability import MAX_TRIES, RETRIED_STATUSES, CircuitBreaker, backoff
from seed_envs.search_qa.retrievers.wire import Connection, Response, ResponseTooLarge

T = TypeVar("T")
DEFAULT_SECONDS = 10.0


class BadAnswer(Exception):
    """Raised by a reader for a body that is no result; counts as a failure of the endpoint and is not retried there."""


class _Endpoint:
    def __init__(self, base: str) -> None:
        self.base = base
        self.shown = _without_password(base)
        self.pending = 0
        self.breaker = CircuitBreaker()
        self.idle: list[Connection] = []


def _without_password(base: str) -> str:
    parts = urlsplit(base)
    return parts._replace(netloc=parts.netloc.split("@")[-1]).geturl()


def _is_address(base: str) -> bool:
    try:
        parts = urlsplit(base)
        port = parts.port
    except ValueError:  # what urlsplit makes of a port or IPv6 address that is none
        return False
    visible = all("!" <= character <= "~" for character in base)
    return visible and parts.scheme in ("http", "https") and bool(parts.hostname) and port != 0


class Endpoints:
    """A group of equal endpoints.

    Args:
        bases: Base addresses.
        headers: Sent with every request.

    Raises:
        ValueError: No address, or an address or header that no request can hold.
    """

    def __init__(self, bases: Sequence[str], headers: Mapping[str, str] | None = None) -> None:
        if not bases:
            raise UnknownOption("expected at least one address such as http://127.0.0.1:8000")
        for base in bases:
            if not _is_address(base):
                raise UnknownOption(
                    f"address {redact(base)!r}: expected http://HOST:PORT or https://HOST:PORT, in ASCII"
                )
        self.bases = tuple(base.rstrip("/") for base in bases)
        self._headers = dict(headers or {})
        for name, value in self._headers.items():
            if not (value.isascii() and value.isprintable()):
                raise UnknownOption(f"header {name}: a token or other value must be printable ASCII")
        self._lock = PerProcessLock()
        self._reset()

    def _reset(self) -> None:
        self._pid = os.getpid()
        self._rng = random.Random()
        self._endpoints = [_Endpoint(base) for base in self.bases]
        self._turn = 0

    def __getstate__(self) -> dict[str, object]:
        return {"bases": self.bases, "headers": self._headers}

    def __setstate__(self, state: dict[str, Sequence[str] | Mapping[str, str]]) -> None:
        Endpoints.__init__(self, state["bases"], state["headers"])  # type: ignore[arg-type]

    @property
    def shown(self) -> tuple[str, ...]:
        """The addresses without user and password."""
        return tuple(map(_without_password, self.bases))

    def _take(self, avoid: set[str]) -> _Endpoint | None:
        """The endpoint with the fewest calls under way, in turn; one that was not tried yet goes first."""
        with self._lock:
            if self._pid != os.getpid():
                self._reset()
            count = len(self._endpoints)
            order = [self._endpoints[(self._turn + step) % count] for step in range(count)]
            self._turn += 1
            for endpoint in sorted(order, key=lambda e: (e.base in avoid, e.pending)):
                if endpoint.breaker.allows():
                    endpoint.pending += 1
                    return endpoint
            return None

    def call(
        self,
        method: str,
        path: str,
        body: bytes,
        content_type: str,
        read: Callable[[bytes, Mapping[str, str]], T],
        deadline: float | None = None,
    ) -> T:
        """Calls an endpoint until one answers.

        Args:
            method: HTTP method.
            path: Path below the base address.
            body: Request body.
            content_type: Of the request body.
            read: Turns body and headers (names in lower case) of a 200 into a result; raises `BadAnswer`.
            deadline: `time.monotonic()` value; None means ten seconds from now.

        Raises:
            RetrievalTimeout, RetrievalUnavailable, RetrievalProtocolError, RetrievalRejected: See their classes.
        """
        started = time.monotonic()
        limit = started + DEFAULT_SECONDS if deadline is None else deadline
        details = FailureDetails()
        tried: set[str] = set()
        server_errors = 0
        while details.tries < MAX_TRIES:
            details.elapsed = time.monotonic() - started
            if time.monotonic() >= limit:
                raise RetrievalTimeout("no answer before the deadline", details)
            endpoint = self._take(tried)
            if endpoint is None:
                details.endpoint = ", ".join(e.shown for e in self._endpoints)
                raise RetrievalUnavailable("the circuit breaker is open", details)
            details.tries += 1
            details.endpoint = endpoint.shown
            tried.add(endpoint.base)
            wait = backoff(details.tries, self._rng)
            try:
                response = self._exchange(endpoint, method, path, body, content_type, limit)
            except TimeoutError as error:
                details.causes.append(f"timeout: {error}")
            except (OSError, http.client.HTTPException) as error:
                details.causes.append(f"{type(error).__name__}: {error}")
            except ResponseTooLarge as error:
                details.elapsed = time.monotonic() - started
                raise RetrievalProtocolError(f"the answer is too large: {error}", details) from error
            else:
                details.elapsed = time.monotonic() - started
                if response.status == 200:
                    return self._read(endpoint, response, read, details)
                details.causes.append(f"status {response.status}")
                server_errors += response.status == 500
                if response.status not in RETRIED_STATUSES and not (response.status == 500 and server_errors < 2):
                    self._refused(response, details)
                wait = max(wait, _retry_after(response))
            details.elapsed = time.monotonic() - started
            if time.monotonic() + wait >= limit:
                kind = RetrievalTimeout if details.causes[-1].startswith("timeout") else RetrievalUnavailable
                raise kind(f"no answer before the deadline ({details.causes[-1]})", details)
            if len(tried) >= len(self._endpoints):
                time.sleep(wait)
        raise RetrievalUnavailable(f"gave up ({details.causes[-1]})", details)

    def _exchange(
        self, endpoint: _Endpoint, method: str, path: str, body: bytes, content_type: str, limit: float
    ) -> Response:
        """One exchange; reports it to the breaker. A kept connection that the server has closed is replaced once."""
        headers = {**self._headers, "Content-Type": content_type, "Connection": "keep-alive"}
        headers["X-Deadline-Ms"] = str(max(1, int(1000 * (limit - time.monotonic()))))
        with self._lock:
            connection = endpoint.idle.pop() if endpoint.idle else Connection(endpoint.base)
        try:
            try:
                response = connection.exchange(method, path, body, headers, limit)
            except (ConnectionError, http.client.RemoteDisconnected):
                if connection.fresh:
                    raise
                response = connection.exchange(method, path, body, headers, limit)
        except Exception:
            endpoint.breaker.failed()
            raise
        finally:
            with self._lock:
                endpoint.pending -= 1
        # A client's mistake says nothing about the endpoint's health; 429 and 5xx do.
        if response.status == 429 or response.status >= 500:
            endpoint.breaker.failed()
        else:
            endpoint.breaker.succeeded()
        with self._lock:
            if len(endpoint.idle) < 16:
                endpoint.idle.append(connection)
            else:
                connection.close()
        return response

    @staticmethod
    def _read(
        endpoint: _Endpoint, response: Response, read: Callable[[bytes, Mapping[str, str]], T], details: FailureDetails
    ) -> T:
        try:
            return read(response.body, response.headers)
        except BadAnswer as error:
            endpoint.breaker.failed()
            raise RetrievalProtocolError(str(error), details) from error

    @staticmethod
    def _refused(response: Response, details: FailureDetails) -> None:
        shown = response.body[:200].decode("utf-8", "replace")
        details.status = response.status
        if 400 <= response.status < 500:
            raise RetrievalRejected(f"refused with status {response.status}: {shown}", details)
        if 300 <= response.status < 400:
            raise RetrievalProtocolError(f"redirects are not followed (status {response.status})", details)
        raise RetrievalUnavailable(f"status {response.status}: {shown}", details)

    def close(self) -> None:
        """Closes idle connections."""
        with self._lock:
            for endpoint in self._endpoints:
                while endpoint.idle:
                    endpoint.idle.pop().close()


def _retry_after(response: Response) -> float:
    value = response.headers.get("retry-after", "")
    try:
        return max(0.0, float(value))
    except ValueError:
        return 0.0
