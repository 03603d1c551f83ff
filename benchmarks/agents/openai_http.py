"""``openai:MODEL@URL``: any OpenAI-compatible chat endpoint as an agent.

Many episodes wait at once, each for its own answer. Failures that may pass (time-outs, broken connections, 408, 409,
425, 429, 5xx, answers that cannot be read) are tried again with growing pauses; what an endpoint refuses is not. An
episode whose request fails for good ends as ``policy_error``; it is never scored. Keys are read from the environment
and never stored.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import threading
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from seed_envs.errors import require
from seed_envs.profiles import Profile
from seed_envs.rollout import Reply, Request, failed_reply
from seed_envs.trajectory import StopReason

from ..config import AgentSettings
from ..errors import ContextOverflow, EndpointFailed, EndpointRefused, UnknownAgent
from .base import Placement, SkillFor
from .pacing import RateLimiter, backoff, retry_after
from .skills import load_skills
from .wire import Completion, is_context_overflow, read_completion, request_body

if TYPE_CHECKING:
    import httpx

#: Largest response that is read, in bytes.
MAX_RESPONSE = 16_000_000
_PASSING = frozenset({408, 409, 425, 429, *range(500, 600)})
_SPEC = re.compile(r"(?P<model>.+?)@(?P<url>https?://\S+)")


class _Passing(Exception):
    """A failure that may pass; ``wait`` is what the endpoint asked for."""

    def __init__(self, message: str, wait: float | None = None) -> None:
        super().__init__(message)
        self.wait = wait


class OpenAIAgent:
    """Sends every request to an endpoint.

    Args:
        settings: Sampling, limits, retries, prices, name of the key's environment variable.
        argument: ``MODEL@URL``, the URL up to ``/v1``; without ``@URL`` it is ``$OPENAI_BASE_URL``.
        profile: Not used.

    Raises:
        UnknownAgent: When no URL is known.
        DependencyMissing: Without httpx.
    """

    placement = Placement.CONCURRENT
    default_batch = 16

    def __init__(self, settings: AgentSettings, argument: str, profile: Profile) -> None:
        require("httpx", "bench", "an OpenAI-compatible endpoint")
        self.model, url = split_endpoint(argument)
        self._address = f"{url}/chat/completions"
        self._settings = settings
        self.skill_for: SkillFor | None = load_skills(settings.skill_prompt)
        self._limiter = RateLimiter(settings.requests_per_minute)
        self._client: httpx.AsyncClient | None = None
        self._lock, self._closed = threading.Lock(), False
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True, name="openai-agent")
        self._thread.start()

    def act(self, requests: Sequence[Request]) -> list[Reply]:
        """Ask for all requests at once; each succeeds or fails alone."""
        with self._lock:
            if self._closed:
                raise EndpointFailed(f"{self._address}: the agent is closed")
            futures = [asyncio.run_coroutine_threadsafe(self._answer(request), self._loop) for request in requests]
        return [future.result() for future in futures]

    def describe(self) -> Mapping[str, Any]:
        """Model and address (without anything secret)."""
        return {"kind": "OpenAIAgent", "model": self.model, "address": self._address}

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

    async def _give_up(self) -> None:
        waiting = asyncio.all_tasks() - {asyncio.current_task()}
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        if self._client is not None:
            await self._client.aclose()

    async def _answer(self, request: Request) -> Reply:
        try:
            completion, attempts, seconds = await self._complete(request)
        except ContextOverflow as error:
            return failed_reply(error, StopReason.CONTEXT_OVERFLOW)
        except Exception as error:  # becomes the record of this episode
            return failed_reply(error)
        prices = self._settings.price_prompt, self._settings.price_completion
        cost = (completion.prompt_tokens * prices[0] + completion.completion_tokens * prices[1]) / 1e6
        usage = {
            "prompt_tokens": completion.prompt_tokens,
            "completion_tokens": completion.completion_tokens,
            "cost": cost,
        }
        meta = {"finish_reason": completion.finish_reason, "attempts": attempts, "seconds": round(seconds, 6)}
        return Reply(completion.text, {"usage": usage, **meta})

    async def _complete(self, request: Request) -> tuple[Completion, int, float]:
        """The completion, how many attempts it took, and how long the last one."""
        seed = ((request.task.seed or 0) + request.turn) % 2**31
        body = request_body(self.model, request.messages, self._settings, seed)
        attempts = self._settings.retries + 1
        for attempt in range(1, attempts + 1):
            await self._limiter.wait()
            begin = time.perf_counter()
            try:
                return await self._send(body), attempt, time.perf_counter() - begin
            except _Passing as failure:
                if attempt == attempts:
                    raise EndpointFailed(f"{self._address}: {failure} (attempt {attempt}, given up)") from failure
                if failure.wait is not None:
                    self._limiter.pause(failure.wait)
                await asyncio.sleep(max(failure.wait or 0.0, backoff(attempt, self._settings.retry_wait, seed)))
        raise AssertionError("unreachable")

    async def _send(self, body: dict[str, Any]) -> Completion:
        import httpx

        client = self._client = self._client or self._make_client()
        try:
            # httpx limits each read; the deadline holds for the answer as a whole, also when it trickles.
            response, data = await asyncio.wait_for(_post(client, self._address, body), self._settings.request_timeout)
        except (TimeoutError, asyncio.TimeoutError) as error:
            raise _Passing(f"no answer within {self._settings.request_timeout} s") from error
        except httpx.TransportError as error:
            raise _Passing(f"{type(error).__name__}: {error}") from error
        text = data.decode("utf-8", "replace")
        if is_context_overflow(response.status_code, text):
            raise ContextOverflow(f"the endpoint says that the prompt is too long: {text[:300]}")
        if response.status_code in _PASSING:
            wait = retry_after(response.headers.get("retry-after"))
            raise _Passing(f"HTTP {response.status_code}: {text[:300]}", wait)
        if response.status_code != 200:
            hint = f" (is ${self._settings.api_key_env} set?)" if response.status_code in (401, 403) else ""
            raise EndpointRefused(f"{self._address}: HTTP {response.status_code}{hint}: {text[:300]}")
        try:
            return read_completion(json.loads(text))
        except (ValueError, RecursionError) as error:
            raise _Passing(f"{error}: {text[:200]!r}") from error

    def _make_client(self) -> httpx.AsyncClient:
        import httpx

        key = os.environ.get(self._settings.api_key_env)
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=256)
        return httpx.AsyncClient(headers=headers, timeout=self._settings.request_timeout, limits=limits)


def split_endpoint(argument: str) -> tuple[str, str]:
    """Model and base URL of ``MODEL@URL``.

    Raises:
        UnknownAgent: When there is no URL.
    """
    found = _SPEC.fullmatch(argument)
    if found:
        return found["model"], found["url"].rstrip("/")
    base = os.environ.get("OPENAI_BASE_URL", "")
    if "@" in argument or not base:
        raise UnknownAgent(
            f"agent 'openai:{argument}': expected openai:MODEL@URL, e.g. openai:qwen3@http://127.0.0.1:8000/v1 "
            "(or set OPENAI_BASE_URL)"
        )
    return argument, base.rstrip("/")


async def _post(client: httpx.AsyncClient, address: str, body: dict[str, Any]) -> tuple[httpx.Response, bytes]:
    parts, size = [], 0
    async with client.stream("POST", address, json=body) as response:
        async for part in response.aiter_bytes():
            parts.append(part)
            size += len(part)
            if size > MAX_RESPONSE:
                raise _Passing(f"the answer is longer than {MAX_RESPONSE} bytes")
    return response, b"".join(parts)
