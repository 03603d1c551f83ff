"""What every request passes before OpenEnv's server sees it: token, origin, size, number of sessions, patience."""

from __future__ import annotations

import asyncio
import hmac
import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

from openenv.core.env_server.types import WSErrorCode, WSErrorResponse

from seed_envs.loopback import is_loopback
from seed_envs.serving.environment import HTTP_EPISODE
from seed_envs.serving.house import House, SessionRefused
from seed_envs.serving.spoken import as_object, explained

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]
_OPEN = ("/", "/health")


class Gate:
    """ASGI middleware.

    Args:
        app: What is behind it.
        house: Options and counters.
    """

    def __init__(self, app: App, house: House) -> None:
        self._app, self._house, self._options = app, house, house.options

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answers, or lets the request through."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        refusal = self._refusal(scope)
        if refusal is not None:
            self._house.metrics.add("seed_refused_total", reason=refusal[1])
            await _refuse(scope, send, refusal[0], refusal[2])
        elif scope["type"] == "http":
            await self._http(scope, receive, send)
        else:
            await self._websocket(scope, receive, send)

    def _refusal(self, scope: Message) -> tuple[int, str, str] | None:
        """Status, reason in a word and message; None lets it pass."""
        headers = {str(key, "latin-1"): str(value, "latin-1") for key, value in scope["headers"]}
        host, origin = headers.get("host", ""), headers.get("origin")
        if origin is not None and urlsplit(origin).netloc != host:
            return 403, "origin", "pages of other sites may not play here"
        if not self._options.token and not self._options.anybody and not is_loopback(_name(host)):
            return 403, "host", "this server answers to loopback names only"
        if self._options.token and scope["path"] not in _OPEN:
            given, expected = headers.get("authorization", ""), f"Bearer {self._options.token}"
            if not hmac.compare_digest(given.encode(), expected.encode()):
                return 401, "token", "expected the header Authorization: Bearer TOKEN"
        return None

    async def _http(self, scope: Message, receive: Receive, send: Send) -> None:
        body, last = bytearray(), False
        try:
            while not last:
                message = await asyncio.wait_for(receive(), self._options.idle_seconds)
                body += message.get("body", b"")
                last = not message.get("more_body", False)
                if len(body) > self._options.max_message:
                    self._house.metrics.add("seed_refused_total", reason="size")
                    await _refuse(scope, send, 413, f"a request has at most {self._options.max_message} bytes")
                    return
        except (TimeoutError, asyncio.TimeoutError):
            self._house.metrics.add("seed_refused_total", reason="idle")
            await _refuse(scope, send, 408, "the rest of the request did not come")
            return
        if scope["path"].endswith("/mcp") and _creates_session(bytes(body)):
            self._house.metrics.add("seed_refused_total", reason="mcp")
            await _refuse(scope, send, 404, "these environments have no MCP tools and so no MCP sessions")
            return
        replayed = False

        async def replay() -> Message:
            nonlocal replayed
            if replayed:
                return await receive()
            replayed = True
            return {"type": "http.request", "body": bytes(body), "more_body": False}

        HTTP_EPISODE.set(parse_qs(str(scope["query_string"], "latin-1")).get("episode_id", [""])[0])
        await self._app(scope, replay, send)

    async def _websocket(self, scope: Message, receive: Receive, send: Send) -> None:
        try:
            self._house.enter()
        except SessionRefused as error:
            await receive()
            most = self._options.max_sessions
            data = {"message": str(error), "code": WSErrorCode.CAPACITY_REACHED, "max_sessions": most}
            await send({"type": "websocket.accept"})
            await send({"type": "websocket.send", "text": WSErrorResponse(data=data).model_dump_json()})
            await send({"type": "websocket.close", "code": 1013})
            return
        watch = _Watch(self._options.idle_seconds, send, self._house)
        try:
            await self._app(scope, watch.around(_read(receive)), _told(send))
        finally:
            watch.stop()
            self._house.leave()


class _Watch:
    """Closes a connection whose client has said nothing for too long; time at work does not count."""

    def __init__(self, seconds: float, send: Send, house: House) -> None:
        self._loop = asyncio.get_running_loop()
        self._seconds, self._send, self._house = seconds, send, house
        self._waits_since: float | None = None
        self._closing: asyncio.Task[None] | None = None
        self._timer = self._loop.call_later(seconds, self._look)

    def around(self, receive: Receive) -> Receive:
        """The same messages, with the clock running while none comes."""

        async def patient() -> Message:
            self._waits_since = self._loop.time()
            message = await receive()
            self._waits_since = None
            return message

        return patient

    def _look(self) -> None:
        left = self._seconds
        if self._waits_since is not None:
            left -= self._loop.time() - self._waits_since
        if left > 0:
            self._timer = self._loop.call_later(left, self._look)
        else:
            self._house.metrics.add("seed_refused_total", reason="idle")
            self._closing = self._loop.create_task(self._close())

    async def _close(self) -> None:
        await self._send({"type": "websocket.close", "code": 1001, "reason": f"silent for {self._seconds:g} s"})

    def stop(self) -> None:
        """The connection is gone."""
        self._timer.cancel()


def _read(receive: Receive) -> Receive:
    async def read() -> Message:
        message = await receive()
        if message["type"] == "websocket.receive":
            return {**message, "text": as_object(message.get("text"))}
        return message

    return read


def _told(send: Send) -> Send:
    async def tell(message: Message) -> None:
        text = message.get("text")
        await send({**message, "text": explained(text)} if text else message)

    return tell


def _creates_session(body: bytes) -> bool:
    """Whether a JSON-RPC body asks for a session: one that nothing would count or end."""
    try:
        request = json.loads(body)
    except (ValueError, RecursionError):
        return False
    return isinstance(request, dict) and request.get("method") == "openenv/session/create"


def _name(host: str) -> str:
    """A Host header without its port."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


async def _refuse(scope: Message, send: Send, status: int, text: str) -> None:
    kind = "http" if scope["type"] == "http" else "websocket.http"
    if kind != "http" and "websocket.http.response" not in scope.get("extensions", {}):
        await send({"type": "websocket.close", "code": 1008, "reason": text})
        return
    body = json.dumps({"detail": text}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": f"{kind}.response.start", "status": status, "headers": headers})
    await send({"type": f"{kind}.response.body", "body": body})
