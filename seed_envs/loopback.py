"""Who can reach an address: the question every server of this package asks before it serves without a token."""

from __future__ import annotations

import ipaddress


def is_loopback(host: str) -> bool:
    """Whether an address is reachable from this machine alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
