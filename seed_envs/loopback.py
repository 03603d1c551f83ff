"""Who can reach an address, and whose request it is: what every server of this package asks before it answers."""

from __future__ import annotations

import ipaddress
import re
from typing import Any, Protocol

LOOPBACK_HOSTS = frozenset({"127.0.0.1", "localhost", "[::1]"})
PAGE_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""What every answer to a browser carries, besides the page's own content policy."""
_HOST = re.compile(r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(:[0-9]{1,5})?")


class Headers(Protocol):
    """Headers of a request, names in any case, as every server framework has them."""

    def get(self, name: str, /) -> Any: ...
    def __getitem__(self, name: str, /) -> Any: ...


def is_loopback(host: str) -> bool:
    """Whether an address is reachable from this machine alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def host_name(host: str) -> str:
    """A Host header without its port; empty if it is anything but one name and at most a port.

    >>> host_name("localhost:3000"), host_name("[::1]:3000"), host_name("localhost,evil.example")
    ('localhost', '[::1]', '')
    """
    match = _HOST.fullmatch(host)
    return match.group(1).lower() if match else ""


def same_site(headers: Headers) -> bool:
    """Whether a request comes from a page of this site or from no page at all."""
    fetch_site = headers.get("Sec-Fetch-Site")
    if fetch_site is not None and fetch_site not in ("same-origin", "none"):
        return False
    origin = headers.get("Origin")
    # Under "no-referrer" browsers send "null" with their own site's forms; then the fetch header has to vouch.
    return origin in (None, f"http://{headers['Host']}") or (origin == "null" and fetch_site == "same-origin")
