"""``seed-serve`` as a program of its own, for tests that talk to it from outside."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from local_server import LocalServer


@contextmanager
def serve(*arguments: str, token: str = "") -> Iterator[LocalServer]:
    """A running server; it is killed at the end."""
    environment = {**os.environ, "SEED_SERVE_TOKEN": token}
    command = [sys.executable, "-m", "seed_envs.serving.command", *arguments, "--port"]
    server = LocalServer(lambda port: [*command, str(port)], environment)
    try:
        yield server
    finally:
        server.kill()
