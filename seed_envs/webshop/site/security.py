"""Request checks and response headers of the site: hosts, origins, sizes, content policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seed_envs.loopback import PAGE_HEADERS, host_name, same_site

if TYPE_CHECKING:
    from flask import Flask, Response

CONTENT_POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
_HEADERS = {"Content-Security-Policy": CONTENT_POLICY, **PAGE_HEADERS}


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
        if not same_site(request.headers):
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
