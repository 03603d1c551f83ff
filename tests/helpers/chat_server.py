"""An OpenAI-compatible server on the loopback interface that misbehaves as told."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections import Counter
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def completion(text, prompt_tokens=10, completion_tokens=3, **message):
    """The JSON of a good answer."""
    return {
        "choices": [{"message": {"role": "assistant", "content": text, **message}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": prompt_tokens, "completion_tokens": completion_tokens},
    }


def stream(text):
    """A good answer in server-sent events, for clients that ask with ``"stream": true``."""
    head = {"id": "1", "object": "chat.completion.chunk", "created": 0, "model": "m"}
    deltas = [({"role": "assistant", "content": text}, None), ({}, "stop")]
    chunks = [{**head, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]} for delta, reason in deltas]
    chunks.append({**head, "choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 3, "total_tokens": 13}})
    lines = [json.dumps(chunk) for chunk in chunks]
    return "".join(f"data: {line}\n\n" for line in [*lines, "[DONE]"]).encode()


def hang_up(handler):
    """Break the connection."""
    handler.connection.shutdown(socket.SHUT_RDWR)
    handler.close_connection = True


class Handler(BaseHTTPRequestHandler):
    """Hands every request to the server's ``behave(handler, body, attempt)``."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        server = self.server
        with server.lock:
            key = json.dumps(body["messages"])
            server.attempts[key] += 1
            attempt = server.attempts[key]
            server.live += 1
            server.most = max(server.most, server.live)
            server.seen.append((time.monotonic(), self.path, dict(self.headers), body))
        try:
            server.behave(self, body, attempt)
        finally:
            with server.lock:
                server.live -= 1

    def do_GET(self):
        server = self.server
        with server.lock:
            server.seen.append((time.monotonic(), self.path, dict(self.headers), None))
        server.behave(self, None, 1)

    def answer(self, record, status=200, headers=()):
        data = record if isinstance(record, bytes) else json.dumps(record).encode()
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *arguments):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    @property
    def bodies(self):
        """The JSON of every request so far."""
        return [body for *_, body in self.seen]

    def handle_error(self, request, client_address):
        pass  # clients that hang up are part of the tests


@contextmanager
def serve(behave):
    """Run a server; yields it with ``url``, ``seen`` (time, path, headers, body) and ``most`` requests at once."""
    server = Server(("127.0.0.1", 0), Handler)
    server.behave, server.lock, server.attempts = behave, threading.Lock(), Counter()
    server.seen, server.live, server.most = [], 0, 0
    server.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
