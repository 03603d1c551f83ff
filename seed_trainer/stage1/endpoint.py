"""A client for OpenAI-compatible chat endpoints, made for servers that misbehave.

Retries with growing pauses, bounded concurrency, a cap on what is read, token and cost counts. It follows no
redirects (a key must not travel to another host) and keeps nothing on disk; that is the annotator's business.
"""

from __future__ import annotations

import base64
import http.client
import io
import json
import math
import random
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlparse

MAX_RESPONSE_BYTES = 8_000_000
RETRIED_STATUS = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})


HOPELESS_STATUS = frozenset({401, 402, 403, 404})
"""Refusals that no other request of the same run would escape: key, account, address or model name are wrong."""


class EndpointError(RuntimeError):
    """A request that failed for good; says what the server answered.

    Attributes:
        hopeless: Whether every further request would fail alike.
    """

    def __init__(self, message: str, hopeless: bool = False) -> None:
        super().__init__(message)
        self.hopeless = hopeless


class _Retry(Exception):
    """A failure worth another attempt, with the pause the server asked for and the tokens it charged nevertheless."""

    def __init__(self, reason: str, pause: float | None = None, tokens: tuple[int, int] = (0, 0)) -> None:
        super().__init__(reason)
        self.pause = pause
        self.tokens = tokens


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


@dataclass
class Usage:
    """Tokens and attempts, summed over requests of several threads."""

    requests: int = 0
    attempts: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def __post_init__(self) -> None:
        self._lock = threading.Lock()

    def count(self, requests: int = 0, attempts: int = 0, tokens: tuple[int, int] = (0, 0)) -> None:
        """Add to the sums."""
        with self._lock:
            self.requests += requests
            self.attempts += attempts
            self.prompt_tokens += tokens[0]
            self.completion_tokens += tokens[1]

    def cost(self, price_in: float, price_out: float) -> float:
        """Return the cost for prices per million tokens."""
        return (self.prompt_tokens * price_in + self.completion_tokens * price_out) / 1e6


@dataclass(frozen=True)
class Answer:
    """One answer: its text and why it ended (``stop``, ``length``, ...)."""

    text: str
    finish_reason: str
    prompt_tokens: int
    completion_tokens: int


@dataclass
class ChatEndpoint:
    """One model behind one endpoint.

    Attributes:
        base_url: Address up to and including ``/v1``.
        model: Model name.
        api_key: Sent as bearer token if not empty.
        temperature: Sampling temperature.
        max_tokens: Length limit of an answer.
        timeout: Seconds for one attempt, also if the server sends its answer in small pieces.
        attempts: Attempts per request.
        first_pause: Seconds before the second attempt; doubles from then on, with jitter, up to ``longest_pause``.
        longest_pause: Longest pause, also for ``Retry-After``.
        sleep: Replaceable for tests.
        usage: What was used so far.
    """

    base_url: str
    model: str
    api_key: str = field(default="", repr=False)
    temperature: float = 0.0
    max_tokens: int = 4096
    timeout: float = 120.0
    attempts: int = 6
    first_pause: float = 1.0
    longest_pause: float = 60.0
    sleep: Callable[[float], None] = time.sleep
    usage: Usage = field(default_factory=Usage)

    def __post_init__(self) -> None:
        parts = urlparse(self.base_url)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise ValueError(f"base_url={self.base_url!r} must be an http(s) address such as http://127.0.0.1:8000/v1")
        self._opener = urllib.request.build_opener(_NoRedirect)
        self._jitter = random.Random(0)

    def ask(self, messages: Sequence[dict[str, Any]]) -> Answer:
        """Return the answer to a conversation.

        Raises:
            EndpointError: If every attempt failed, or the server refused the request itself.
        """
        self.usage.count(requests=1)
        reason, asked = "", None
        for attempt in range(self.attempts):
            if attempt:
                self.sleep(self._pause(attempt, asked))
            try:
                answer = self._attempt(messages)
            except _Retry as error:
                self.usage.count(attempts=1, tokens=error.tokens)
                reason, asked = str(error), error.pause
                continue
            except EndpointError:
                self.usage.count(attempts=1)
                raise
            self.usage.count(attempts=1, tokens=(answer.prompt_tokens, answer.completion_tokens))
            return answer
        raise EndpointError(f"{self.base_url}: gave up after {self.attempts} attempts; the last one: {reason}")

    def _pause(self, attempt: int, asked: float | None) -> float:
        grown = self.first_pause * 2 ** (attempt - 1) * (0.5 + self._jitter.random())
        return min(self.longest_pause, max(grown, asked or 0.0))

    def _attempt(self, messages: Sequence[dict[str, Any]]) -> Answer:
        body = {
            "model": self.model,
            "messages": [_wire(message) for message in messages],
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
        }
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self.api_key:
            headers["Authorization"] = f"Bearer {self.api_key}"
        url = self.base_url.rstrip("/") + "/chat/completions"
        request = urllib.request.Request(url, json.dumps(body).encode(), headers)
        try:
            with self._opener.open(request, timeout=self.timeout) as response:
                raw = _read_all(response, time.monotonic() + self.timeout)
        except urllib.error.HTTPError as error:
            detail = _detail(error)
            if error.code in RETRIED_STATUS:
                raise _Retry(f"HTTP {error.code}: {detail}", _seconds(error.headers.get("Retry-After"))) from None
            raise EndpointError(f"{url}: HTTP {error.code}: {detail}", error.code in HOPELESS_STATUS) from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            # OSError covers refused, reset and timed-out connections; the others broken HTTP framing.
            raise _Retry(f"{type(error).__name__}: {error}") from None
        return _read(raw)


def _read_all(response: Any, deadline: float) -> bytes:
    """Read a body piece by piece; the socket's own timeout starts anew with every piece."""
    parts: list[bytes] = []
    size = 0
    while size <= MAX_RESPONSE_BYTES:
        part = response.read1(65_536)
        if not part:
            break
        parts.append(part)
        size += len(part)
        if time.monotonic() > deadline:
            raise TimeoutError("the answer was still arriving at the end of the time allowed")
    if response.length:  # what the announced length still lacks
        raise http.client.IncompleteRead(b"", response.length)
    return b"".join(parts)


def _detail(error: urllib.error.HTTPError) -> str:
    try:
        body: Any = error.fp
        return str(body.read1(2000).decode(errors="replace"))  # one piece: a refusal may be slow, too
    except (OSError, http.client.HTTPException, AttributeError):
        return "(no readable body)"


def _seconds(value: str | None) -> float | None:
    """Return the pause of a ``Retry-After`` header in seconds; its other form, a date, is not read."""
    try:
        seconds = float(value) if value is not None else None
    except ValueError:
        return None
    return seconds if seconds is not None and math.isfinite(seconds) and seconds >= 0 else None


def _read(raw: bytes) -> Answer:
    if len(raw) > MAX_RESPONSE_BYTES:
        raise _Retry(f"answer larger than {MAX_RESPONSE_BYTES} bytes")
    try:
        record = json.loads(raw)
        choice = record["choices"][0]
        text = choice["message"]["content"]
        finish = str(choice.get("finish_reason") or "stop")
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise _Retry(f"no chat completion in the answer ({type(error).__name__}): {raw[:200]!r}") from None
    tokens = _tokens(record.get("usage"))
    if not isinstance(text, str):
        raise _Retry(f"message content is {type(text).__name__}, expected text", tokens=tokens)
    # A lone surrogate is legal in JSON, but cannot be written to a file.
    return Answer(text.encode("utf-8", "replace").decode(), finish, *tokens)


def _tokens(usage: Any) -> tuple[int, int]:
    """Return prompt and answer tokens as the server counted them, 0 where it did not."""
    counts = [usage.get(name) if isinstance(usage, dict) else 0 for name in ("prompt_tokens", "completion_tokens")]
    known = [count if isinstance(count, int) and count >= 0 else 0 for count in counts]
    return known[0], known[1]


def _wire(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message as the protocol wants it; images become PNG data addresses."""
    if isinstance(message["content"], str):
        return message
    parts = []
    for part in message["content"]:
        if part["type"] == "text":
            parts.append(part)
        else:
            parts.append({"type": "image_url", "image_url": {"url": _data_address(part["image"])}})
    return {**message, "content": parts}


def _data_address(image: Any) -> str:
    from PIL import Image

    picture = image if isinstance(image, Image.Image) else Image.fromarray(image)
    buffer = io.BytesIO()
    picture.save(buffer, format="PNG")
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()
