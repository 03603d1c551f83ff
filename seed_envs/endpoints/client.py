"""A client for OpenAI-compatible chat endpoints, made for servers that misbehave.

Many requests wait at once, each for its own answer, on one event loop in a thread. Failures that may pass (time-outs,
broken connections, 408, 409, 425, 429, 5xx, answers that cannot be read) are tried again with growing pauses; what an
endpoint refuses is not. It follows no redirects (a key must not travel to another host), reads no more than
:data:`MAX_RESPONSE`, and keeps nothing on disk; the key is read from the environment and shown nowhere.
"""

from __future__ import annotations

import asyncio
import json
import os
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

from seed_envs.chat import Message
from seed_envs.endpoints.pacing import MAX_WAIT, RateLimiter, RetryLines, backoff, on_standard_error, retry_after
from seed_envs.endpoints.refusals import read_refusal
from seed_envs.endpoints.wire import Answer, read_answer, read_tokens, request_body
from seed_envs.errors import EndpointFailed, EndpointPassing, require
from seed_envs.redaction import learn, learn_secret, redact

if TYPE_CHECKING:
    import httpx

#: Largest response that is read, in bytes.
MAX_RESPONSE = 16_000_000
#: Longest wait for a page about the server.
_LOOK_SECONDS = 10.0
#: What a server says of a model that is another thing after every start.
_FLEETING = frozenset({"created", "permission", "modified_at", "status"})


@dataclass
class Usage:
    """What a client has used: requests, attempts, and tokens of every answer, useless ones included."""

    requests: int = 0
    attempts: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0


@dataclass(frozen=True)
class Delivery:
    """An answer and what it took.

    Attributes:
        answer: The answer.
        attempts: Attempts, the good one included.
        seconds: Of the last attempt.
    """

    answer: Answer
    attempts: int
    seconds: float


class ChatClient:
    """One model behind one endpoint.

    Args:
        base_url: Address up to and including ``/v1``; a query stays a query.
        model: Model name.
        key_env: Environment variable that holds the key, sent as bearer token if there is one.
        timeout: Seconds for one attempt, also if the server sends its answer in small pieces.
        attempts: Attempts per request.
        first_pause: Seconds before the second attempt; doubles from then on, with jitter.
        longest_pause: Longest pause in seconds, also for ``Retry-After``.
        requests_per_minute: Rate limit, None for none.
        clock: Seconds on a clock that never goes back, for pauses.
        sleep: Waits for so many of its seconds.
        say: Told in a line, every few seconds at most, that attempts fail and are made again.

    Raises:
        ValueError: When the address is no http(s) address.
        DependencyMissing: Without httpx.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        key_env: str = "",
        timeout: float = 120.0,
        attempts: int = 7,
        first_pause: float = 1.0,
        longest_pause: float = MAX_WAIT,
        requests_per_minute: float | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        say: Callable[[str], None] = on_standard_error,
    ) -> None:
        require("httpx", "bench", "an OpenAI-compatible endpoint")
        learn(base_url)
        learn_secret(os.environ.get(key_env))
        self.model, self.address = model, chat_address(base_url)
        self.usage = Usage()
        self._key_env, self._timeout, self._attempts = key_env, timeout, attempts
        self._first_pause, self._longest_pause = first_pause, longest_pause
        self._limiter, self._sleep = RateLimiter(requests_per_minute, clock, sleep), sleep
        self._retries = RetryLines(say, clock)
        self._http: httpx.AsyncClient | None = None
        self._lock, self._closed = threading.Lock(), False
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True, name="chat-endpoint")
        self._thread.start()

    def submit(self, messages: Sequence[Message], parameters: Mapping[str, Any]) -> Future[Delivery]:
        """Send a request; the future holds the answer, or one of the errors of :meth:`ask`.

        Args:
            messages: The conversation.
            parameters: Further fields of the request: temperature, length limit, seed, ...

        Raises:
            EndpointFailed: When the client is closed.
        """
        with self._lock:
            if self._closed:
                raise EndpointFailed(f"{self.address}: the client is closed")
            return asyncio.run_coroutine_threadsafe(self._deliver(messages, parameters), self._loop)

    def ask(self, messages: Sequence[Message], parameters: Mapping[str, Any]) -> Answer:
        """The answer to a conversation; see :meth:`submit`.

        Raises:
            EndpointFailed: If every attempt failed.
            EndpointRefused: If the server refused the request itself.
            ContextOverflow: If it says that the prompt is too long.
        """
        return self.submit(messages, parameters).result().answer

    def look(self, address: str) -> Any:
        """The JSON at an address of the same server, or None where there is none or nothing answers."""
        with self._lock:
            if self._closed:
                return None
            future = asyncio.run_coroutine_threadsafe(self._look(address), self._loop)
        return future.result()

    def describe_model(self) -> dict[str, Any]:
        """What the server says of the model that does not change from start to start; nothing where it says nothing."""
        listed = self.look(sibling(self.address, "models"))
        rows = listed.get("data") if isinstance(listed, dict) else None
        named = {row.get("id"): row for row in rows if isinstance(row, dict)} if isinstance(rows, list) else {}
        row = named.get(self.model) or (next(iter(named.values())) if len(named) == 1 else None)
        return {} if row is None else {"served": {key: row[key] for key in sorted(row) if key not in _FLEETING}}

    def close(self) -> None:
        """Give up what is waited for, and close connections and the event loop's thread."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        asyncio.run_coroutine_threadsafe(self._give_up(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def __enter__(self) -> ChatClient:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    async def _give_up(self) -> None:
        waiting = asyncio.all_tasks() - {asyncio.current_task()}
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        if self._http is not None:
            await self._http.aclose()

    async def _deliver(self, messages: Sequence[Message], parameters: Mapping[str, Any]) -> Delivery:
        body = request_body(self.model, messages, parameters)
        self.usage.requests += 1  # counted on the loop's thread alone
        number = self.usage.requests
        attempt = 0
        while True:
            attempt += 1
            await self._limiter.wait()
            begin = time.perf_counter()
            self.usage.attempts += 1
            try:
                return Delivery(await self._attempt(body), attempt, time.perf_counter() - begin)
            except EndpointPassing as failure:
                if attempt >= self._attempts:
                    raise EndpointFailed(f"{failure} (attempt {attempt}, given up)") from failure
                wait = min(failure.wait or 0.0, self._longest_pause)
                self._limiter.pause(wait)
                grown = backoff(attempt, self._first_pause, seed=number, longest=self._longest_pause)
                wait = max(wait, grown)
                self._retries.failed(redact(str(failure)), attempt, self._attempts, wait)
                await self._sleep(wait)

    async def _attempt(self, body: dict[str, Any]) -> Answer:
        import httpx

        client = self._http = self._http or self._connect()
        try:
            # httpx limits each read; the deadline holds for the answer as a whole, also when it trickles.
            response, data = await asyncio.wait_for(_post(client, self.address, body), self._timeout)
        except (TimeoutError, asyncio.TimeoutError) as error:
            raise EndpointPassing(f"{self.address}: no answer within {self._timeout} s") from error
        except httpx.RequestError as error:
            raise EndpointPassing(f"{self.address}: {type(error).__name__}: {error}") from error
        text = data.decode("utf-8", "replace")
        status = response.status_code
        if status != 200:
            hint = f" (is ${self._key_env} set?)" if self._key_env and status in (401, 403) else ""
            raise read_refusal(status, text, self.address + hint, retry_after(response.headers.get("retry-after")))
        try:
            record = json.loads(text)
            tokens = read_tokens(record)
            self.usage.prompt_tokens += tokens[0]
            self.usage.completion_tokens += tokens[1]
            return read_answer(record)
        except (ValueError, RecursionError) as error:
            raise EndpointPassing(f"{self.address}: {error}: {text[:200]!r}") from error

    async def _look(self, address: str) -> Any:
        import httpx

        client = self._http = self._http or self._connect()
        try:
            response = await client.get(address, timeout=min(self._timeout, _LOOK_SECONDS))
            return response.json() if response.status_code == 200 and len(response.content) <= MAX_RESPONSE else None
        except (httpx.RequestError, ValueError, RecursionError):
            return None

    def _connect(self) -> httpx.AsyncClient:
        import httpx

        key = os.environ.get(self._key_env) if self._key_env else None
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=256)
        return httpx.AsyncClient(headers=headers, timeout=self._timeout, limits=limits, follow_redirects=False)


def chat_address(base_url: str) -> str:
    """Where chat completions are asked for, below the address of a server.

    Raises:
        ValueError: When it is no http(s) address.
    """
    parts = urlsplit(base_url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise ValueError(f"base_url={redact(base_url)!r} must be an http(s) address such as http://127.0.0.1:8000/v1")
    return urlunsplit(parts._replace(path=parts.path.rstrip("/") + "/chat/completions"))


def sibling(address: str, name: str) -> str:
    """Another page beside chat completions: ``models`` for ``http://host/v1/chat/completions``.

    Args:
        address: From :func:`chat_address`.
        name: The page; one that begins with ``/`` is at the root of the server.
    """
    parts = urlsplit(address)
    path = name if name.startswith("/") else f"{parts.path.removesuffix('chat/completions')}{name}"
    return urlunsplit(parts._replace(path=path))


async def _post(client: httpx.AsyncClient, address: str, body: dict[str, Any]) -> tuple[httpx.Response, bytes]:
    parts, size = [], 0
    async with client.stream("POST", address, json=body) as response:
        async for part in response.aiter_bytes():
            parts.append(part)
            size += len(part)
            if size > MAX_RESPONSE:
                raise EndpointPassing(f"{address}: the answer is longer than {MAX_RESPONSE} bytes")
    return response, b"".join(parts)
