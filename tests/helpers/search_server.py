"""A search server on the loopback interface over the passages of the tiny world."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from seed_envs.search_qa.collection import open_collection
from seed_envs.search_qa.retrievers.factory import open_retriever


@contextmanager
def searching():
    """A server that repeats the caller's headers when it ``refuses``; yields it with its ``url``."""
    engine = open_retriever("bm25", open_collection("tiny", 0).open())

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status = 400 if self.server.refuses else 200
            found = [
                [{"document": {"id": hit.id, "contents": hit.contents}, "score": hit.score} for hit in hits]
                for hits in engine.search(request["queries"], request["topk"])
            ]
            answer = {"result": found} if status == 200 else {"headers": dict(self.headers)}
            data = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *arguments):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.refuses = False
    server.url = f"http://127.0.0.1:{server.server_address[1]}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
