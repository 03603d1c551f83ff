"""Passages, an encoder without a model, and faulty servers, for the Search QA tests."""

from __future__ import annotations

import hashlib
import json
import socket
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np

from seed_envs.lucene import analyze
from seed_envs.search_qa.encoders import EncoderRecord
from seed_envs.search_qa.retrievers.base import Hit

_LONG = "harbor " + "stone wall gate lantern bridge mill tower garden " * 7 + "river"
WORKED = [
    ("p1", '"Velk River"\nThe Velk River flows through Ostara. The river floods in spring.'),
    ("p2", '"Ostara"\nOstara is a town on the Velk River. It was founded in 1742.'),
    ("p3", '"Mara Quill"\nMara Quill is a novelist born in Ostara.'),
    ("p10", '"Mara Quill"\nMara Quill is a novelist born in Ostara.'),
    ("p4", '"Glass Harbor"\nGlass Harbor is a novel by Mara Quill about a river pilot.'),
    ("p5", f'"Long"\n{_LONG}'),
]
TIDE_MILL = ("p6", '"Tide Mill"\nA tide mill stands beside the river near Ostara.')


class HashEncoder:
    """Bags of hashed words: deterministic, instant, and similar for similar texts."""

    record = EncoderRecord("hash", dimension=64, weights="words", unit_length=True)

    def encode_queries(self, texts: Sequence[str]) -> np.ndarray:
        return np.stack([self._one(text) for text in texts])

    encode_passages = encode_queries

    def _one(self, text: str) -> np.ndarray:
        vector = np.zeros(64, dtype=np.float32)
        for word in analyze(text):
            digest = hashlib.sha256(word.encode()).digest()
            vector[digest[0] % 64] += 1.0 if digest[1] % 2 else -1.0
        length = float(np.linalg.norm(vector))
        return vector / length if length else vector


class FixedRetriever:
    """Answers every query with the same passages and counts the calls."""

    def __init__(self, hits: list[Hit], fail: Callable[[], None] | None = None) -> None:
        from seed_envs.search_qa.retrievers.base import Capabilities

        self.capabilities = Capabilities()
        self.fingerprint = "fixed"
        self.calls: list[list[str]] = []
        self._hits, self._fail = hits, fail

    def search(self, queries: Sequence[str], k: int, deadline: float | None = None) -> list[list[Hit]]:
        self.calls.append(list(queries))
        if self._fail is not None:
            self._fail()
        return [self._hits[:k] for _ in queries]

    def close(self) -> None:
        pass


def free_port() -> int:
    """A loopback port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def json_server(answer: Callable[[str, str, bytes], tuple[int, object]]):
    """A loopback server; `answer(method, path, body)` gives status and JSON value (or raw bytes)."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _reply(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, value = answer(self.command, self.path, body)
            data = value if isinstance(value, bytes) else json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PUT = do_HEAD = do_DELETE = _reply

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def raw_server(handle: Callable[[socket.socket, int], None]):
    """A loopback server that hands each connection (with its number) to `handle` in a thread."""
    listener = socket.create_server(("127.0.0.1", 0))
    stopped = threading.Event()

    def accept() -> None:
        number = 0
        while not stopped.is_set():
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=_guarded, args=(handle, connection, number), daemon=True).start()
            number += 1

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        stopped.set()
        listener.close()


def _guarded(handle: Callable[[socket.socket, int], None], connection: socket.socket, number: int) -> None:
    with connection:
        try:
            handle(connection, number)
        except OSError:
            return


def read_request(connection: socket.socket) -> bytes:
    """One request with its body, as bytes."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = connection.recv(65536)
        if not more:
            return data
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    length = next(int(v.split(b":")[1]) for v in head.split(b"\r\n") if v.lower().startswith(b"content-length"))
    while len(body) < length:
        body += connection.recv(65536)
    return head + b"\r\n\r\n" + body


def http_answer(body: bytes, status: str = "200 OK", extra: str = "") -> bytes:
    """A complete HTTP answer."""
    return (
        f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n{extra}\r\n".encode()
        + body
    )


def wait_until(condition: Callable[[], bool], seconds: float = 10.0) -> None:
    """Waits for a condition."""
    limit = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > limit:
            raise AssertionError("the condition did not come true")
        time.sleep(0.02)
