"""Request checks and response headers of the site: hosts, origins, sizes, content policy."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flask import Flask, Response
    from werkzeug.datastructures import Headers

LOOPBACK_HOSTS = frozenset({"127.0.0.1", "localhost", "[::1]"})
CONTENT_POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
_HOST = re.compile(r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(:[0-9]{1,5})?")
_HEADERS = {
    "Content-Security-Policy": CONTENT_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def host_name(host: str) -> str:
    """A Host header without its port; empty if it is anything but one name and at most a port.

    >>> host_name("localhost:3000"), host_name("[::1]:3000"), host_name("localhost,evil.example")
    ('localhost', '[::1]', '')
    """
    match = _HOST.fullmatch(host)
    return match.group(1).lower() if match else ""


def _same_site(headers: Headers) -> bool:
    """Whether a request comes from a page of this site or from no page at all."""
    fetch_site = headers.get("Sec-Fetch-Site")
    if fetch_site is not None and fetch_site not in ("same-origin", "none"):
        return False
    origin = headers.get("Origin")
    # Under "no-referrer" browsers send "null" with their own site's forms; then the fetch header has to vouch.
    return origin in (None, f"http://{headers['Host']}") or (origin == "null" and fetch_site == "same-origin")


def protect(app: Flask, hosts: frozenset[str], max_body: int, max_page: int) -> None:
    """Installs the checks.

    Args:
        app: The application.
        hosts: Accepted host names, without port.
        max_body: Largest accepted request body, bytes.
        max_page: Largest page sent, bytes.
    """
    from flask import abort, request

    app.config["MAX_CONTENT_LENGTH"] = max_body
    app.config["MAX_FORM_MEMORY_SIZE"] = max_body
    app.config["MAX_FORM_PARTS"] = 16

    @app.before_request
    def check_request() -> None:
        if host_name(request.headers.get("Host", "")) not in hosts:
            abort(403, "This host name is not served here.")
        if not _same_site(request.headers):
            abort(403, "Requests from other sites are refused.")
        if request.headers.get("Transfer-Encoding") or (request.content_length or 0) > max_body:
            abort(413, "The request is too large.")

    @app.after_request
    def add_headers(response: Response) -> Response:
        for name, value in _HEADERS.items():
            response.headers.setdefault(name, value)
        if (response.content_length or 0) > max_page:
            response.set_data("This page is too large to be shown.")
            response.status_code = 413
        return response
