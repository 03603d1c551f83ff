"""``seed-serve`` as a program of its own, for tests that talk to it from outside."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from local_server import LocalServer


@contextmanager
def serve(*arguments: str, token: str = "", modules: str = "") -> Iterator[LocalServer]:
    """A running server; it is killed at the end. ``modules`` is a folder of modules that it may import."""
    path = os.pathsep.join(filter(None, (modules, os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "SEED_SERVE_TOKEN": token, "PYTHONPATH": path}
    command = [sys.executable, "-m", "seed_envs.serving.command", *arguments, "--port"]
    server = LocalServer(lambda port: [*command, str(port)], environment)
    try:
        yield server
    finally:
        server.kill()
