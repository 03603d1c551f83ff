"""``seed-play --web``: the page, its script and style, and a few calls, for one person on this machine.

Binds loopback, answers only pages of its own, loads nothing from elsewhere: what models and environments wrote reaches
the page as JSON and is shown as text.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import gymnasium as gym

from seed_envs.errors import SeedEnvsError
from seed_envs.loopback import LOOPBACK_HOSTS, PAGE_HEADERS, host_name, same_site
from seed_envs.pages import asset
from seed_envs.playing.table import Table

HOST = "127.0.0.1"
_MOST_BYTES = 1 << 16
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; form-action 'none'; "
    "base-uri 'none'; frame-ancestors 'none'"
)


def _page(name: str) -> str:
    return asset(f"page/{name}", __package__ or "")


_FILES: dict[str, tuple[str, Callable[[], str]]] = {
    "/": ("text/html", lambda: _page("play.html")),
    "/play.css": ("text/css", lambda: asset("base.css") + _page("play.css")),
    "/play.js": ("text/javascript", lambda: asset("make.js") + _page("play.js")),
}


class PageServer(ThreadingHTTPServer):
    """Serves one table.

    Args:
        table: What is played.
        port: Port, 0 for a free one.

    Raises:
        OSError: When the port is taken.
    """

    daemon_threads = True

    def __init__(self, table: Table, port: int = 0) -> None:
        if not 0 <= port < 1 << 16:
            raise OSError(f"--port {port}: ports go from 0 (a free one) to 65535")
        self.table = table
        super().__init__((HOST, port), _Handler)
        self.url = f"http://{HOST}:{self.server_address[1]}/"


class _Handler(BaseHTTPRequestHandler):
    server: PageServer
    protocol_version = "HTTP/1.1"
    timeout = 30
    server_version, sys_version = "seed-play", ""

    def do_GET(self) -> None:
        """The page and its files."""
        if self._refused():
            return
        kind, text = _FILES.get(self.path, ("", str))
        self._send(200 if kind else 404, kind or "text/plain", text() or "There is no such page.\n")

    def do_POST(self) -> None:
        """A call of the page."""
        if self._refused():
            return
        name = self.path.removeprefix("/api/")
        if not self.path.startswith("/api/") or name not in self.server.table.calls:
            self._tell(404, {"error": "there is no such call"})
            return
        request = self._body()
        if request is None:
            return
        try:
            self._tell(200, self.server.table.answer(name, request))
        except (SeedEnvsError, gym.error.Error) as error:
            self._tell(400, {"error": str(error)})

    def log_message(self, format: str, *args: Any) -> None:
        """Writes no line."""

    def _refused(self) -> bool:
        ours = host_name(self.headers.get("Host", "")) in LOOPBACK_HOSTS and same_site(self.headers)
        if not ours:
            self.close_connection = True
            self._tell(403, {"error": "requests from other sites are refused"})
        return not ours

    def _body(self) -> dict[str, Any] | None:
        length = self.headers.get("Content-Length", "")
        plain = self.headers.get_content_type() == "application/json" and not self.headers.get("Transfer-Encoding")
        if not plain or not length.isdecimal() or int(length) > _MOST_BYTES:
            self.close_connection = True
            self._tell(413, {"error": f"expected JSON of at most {_MOST_BYTES} bytes"})
            return None
        try:
            request = json.loads(self.rfile.read(int(length)))
        except (ValueError, RecursionError):
            request = None
        if not isinstance(request, dict):
            self._tell(400, {"error": "expected an object of JSON"})
            return None
        return request

    def _tell(self, status: int, answer: dict[str, Any]) -> None:
        self._send(status, "application/json", json.dumps(answer, default=float))

    def _send(self, status: int, kind: str, text: str) -> None:
        data = text.encode("utf-8", "replace")
        self.send_response(status)
        for name, value in PAGE_HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Security-Policy", _POLICY)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def serve(table: Table, port: int, announce: Callable[[str], None]) -> None:
    """Serve until Ctrl-C, SIGTERM included where the command line makes it one.

    Raises:
        OSError: When the port is taken.
    """
    with PageServer(table, port) as server:
        announce(f"seed-play at {server.url} (Ctrl+C ends it)")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            announce("stopped")
        finally:
            table.close()
