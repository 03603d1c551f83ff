"""Runs the application on a listening socket until it is told to stop."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from seed_envs.serving.app import check_environments, create_app
from seed_envs.serving.options import ServeOptions

_HEAD_SECONDS = 30.0
"""Longest time from a connection to the head of its first request."""
_STOP_SECONDS = 5
"""Longest time that running requests are given at the end."""


class _Impatient(H11Protocol):
    """HTTP that drops connections on which no request arrives; uvicorn itself would keep them."""

    patience = _HEAD_SECONDS

    def connection_made(self, transport: Any) -> None:
        """Starts the clock."""
        super().connection_made(transport)
        self.loop.call_later(self.patience, self._give_up)

    def _give_up(self) -> None:
        if self.cycle is None and self.transport.get_protocol() is self:
            self.transport.close()


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Ends in order on SIGINT and SIGTERM, without raising them once more as uvicorn would."""
        earlier = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in earlier.items():
                signal.signal(number, handler)


def serve(options: ServeOptions, listening: socket.socket, announce: Callable[[str], None]) -> None:
    """Serve until SIGINT or SIGTERM.

    Args:
        options: How to serve.
        listening: A listening socket.
        announce: Called once with a line that holds the address.
    """
    check_environments(options)
    config = uvicorn.Config(
        create_app(options),
        http=type("Impatient", (_Impatient,), {"patience": min(_HEAD_SECONDS, options.idle_seconds)}),
        log_level="warning",
        access_log=False,
        server_header=False,
        limit_concurrency=options.max_sessions + 64,
        timeout_graceful_shutdown=_STOP_SECONDS,
        ws_max_size=options.max_message,
        ws_per_message_deflate=False,  # its buffers would be most of a session's memory
    )
    host, port = listening.getsockname()[:2]
    announce(f"serving {', '.join(options.env_ids)} at http://{f'[{host}]' if ':' in host else host}:{port}")
    asyncio.run(_Server(config).serve(sockets=[listening]))
