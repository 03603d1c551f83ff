"""Running the site: a threaded server on a loopback address, in the foreground or beside an environment."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flask import Flask


class SiteServer:
    """A server thread, usable as a context manager.

    Args:
        app: The application.
        host: Address to bind; loopback by default.
        port: Port, or 0 for a free one.
    """

    def __init__(self, app: Flask, host: str = "127.0.0.1", port: int = 0) -> None:
        from werkzeug.serving import WSGIRequestHandler, make_server

        class QuietHandler(WSGIRequestHandler):
            """Logs nothing (addresses hold session names) and keeps connections open."""

            protocol_version = "HTTP/1.1"

            def version_string(self) -> str:
                """Names the shop, not the software."""
                return "WebShop"

            def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
                """Writes no line."""

        self._server = make_server(host, port, app, threaded=True, request_handler=QuietHandler)
        self._thread: threading.Thread | None = None
        self.url = f"http://{host}:{self._server.server_port}"

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
