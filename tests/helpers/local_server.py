"""A server program of somebody else on the loopback interface, for tests against the real thing."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from typing import Any


class LocalServer:
    """A server in a process group of its own, so that killing it leaves no worker behind.

    Args:
        command: Makes the command line from a port.
        environment: Variables of the process; None for those of the tests.
        seconds: How long a start may take.

    Attributes:
        root: Address of the server, before ``/v1``.
        url: Address of its chat endpoints, up to ``/v1``.
    """

    def __init__(
        self,
        command: Callable[[int], Sequence[str]],
        environment: Mapping[str, str] | None = None,
        seconds: float = 120.0,
    ) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self._command, self._environment, self._seconds = list(command(port)), environment, seconds
        self.root = f"http://127.0.0.1:{port}"
        self.url = f"{self.root}/v1"
        self.start()

    def start(self) -> None:
        """Start the program and wait until it answers.

        Raises:
            RuntimeError: When it ends or takes too long; the message holds the end of its output.
        """
        with tempfile.TemporaryFile() as log:
            self._process = subprocess.Popen(
                self._command, env=self._environment, stdout=log, stderr=log, start_new_session=True
            )
            end = time.monotonic() + self._seconds
            while True:
                try:
                    self.read("/health")  # answers 503 while a model is loaded
                    return
                except OSError as error:
                    if self._process.poll() is not None or time.monotonic() > end:
                        self.kill()
                        log.seek(0)
                        tail = log.read().decode(errors="replace")[-2000:]
                        raise RuntimeError(f"{self._command[:3]} did not start ({error}): {tail}") from error
                    time.sleep(0.1)

    def kill(self) -> None:
        """End the program and its workers at once."""
        if self._process.returncode is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def read(self, path: str) -> bytes:
        """What the server answers at a path."""
        with urllib.request.urlopen(f"{self.root}{path}", timeout=60) as answer:
            return bytes(answer.read())

    def get(self, path: str) -> Any:
        """The same as JSON."""
        return json.loads(self.read(path))

    def post(self, path: str, record: dict[str, Any]) -> Any:
        """The answer to a JSON record, as JSON."""
        request = urllib.request.Request(
            f"{self.root}{path}", json.dumps(record).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)
