"""Running the site: a threaded server on a loopback address, in the foreground or beside an environment."""

from __future__ import annotations

import socket
import threading
from types import TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flask import Flask


_LAST_PORT = 65535


def _listen(host: str, port: int) -> socket.socket:
    """A listening socket (Werkzeug itself would end the process when the port is taken)."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    if not 0 <= port <= _LAST_PORT:
        raise OSError(f"cannot serve at port {port}: ports go from 0 (a free one) to {_LAST_PORT}")
    try:
        return socket.create_server((host, port), family=family, backlog=128)
    except OSError as error:
        raise OSError(f"cannot serve at {host}:{port}: {error.strerror}. Choose another host or port") from error


class SiteServer:
    """A server thread, usable as a context manager.

    Args:
        app: The application.
        host: Address to bind; loopback by default.
        port: Port, or 0 for a free one.
        patience: Seconds after which a client that neither sends nor reads is dropped.

    Raises:
        OSError: If the address cannot be bound.
    """

    def __init__(self, app: Flask, host: str = "127.0.0.1", port: int = 0, patience: float = 30.0) -> None:
        from werkzeug.serving import WSGIRequestHandler, make_server

        class QuietHandler(WSGIRequestHandler):
            """Logs nothing (addresses hold session names) and does not wait for slow senders forever."""

            protocol_version = "HTTP/1.1"
            timeout = patience

            def version_string(self) -> str:
                """Names the shop, not the software."""
                return "WebShop"

            def log(self, type: str, message: str, *args: Any) -> None:
                """Writes no line."""

        with _listen(host, port) as listening:
            self.port: int = listening.getsockname()[1]
            self._server = make_server(
                host, port, app, threaded=True, request_handler=QuietHandler, fd=listening.fileno()
            )
        self._thread: threading.Thread | None = None
        self.url = f"http://{f'[{host}]' if ':' in host else host}:{self.port}"

    def start(self) -> SiteServer:
        """Serves in a thread."""
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True, name="webshop-site")
        self._thread.start()
        return self

    def serve_forever(self) -> None:
        """Serves in this thread until interrupted."""
        self._server.serve_forever()

    def stop(self) -> None:
        """Stops serving and frees the port; calling it twice is fine."""
        if self._thread is not None:
            self._server.shutdown()
            self._thread.join()
            self._thread = None
        self._server.server_close()

    def __enter__(self) -> SiteServer:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
