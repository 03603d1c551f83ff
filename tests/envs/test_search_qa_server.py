"""The retrieval server: Search-R1's API without its faults, limits, batching, deadlines, orderly stop."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress

import gymnasium as gym
import pytest
from search_qa_samples import FixedRetriever

from seed_envs.search_qa.__main__ import main
from seed_envs.search_qa.corpus import JsonlCorpus
from seed_envs.search_qa.knowledge.library import open_library
from seed_envs.search_qa.retrievers.base import Hit, RetrievalRejected, RetrievalUnavailable, RetrieverMismatch
from seed_envs.search_qa.retrievers.bm25 import BM25Retriever
from seed_envs.search_qa.retrievers.http import HttpRetriever, read_result
from seed_envs.search_qa.server import RetrievalServer, ServerOptions
from seed_envs.search_qa.server_api import ApiError, Limits, parse_request, render_result
from seed_envs.search_qa.server_http import Patience

HITS = [Hit(str(n), f"T{n}", f"text {n}", 9.0 - n) for n in range(9)]


@contextmanager
def running(retriever, wait=True, **options):
    """A server in a thread with an event loop of its own; yields (port, server)."""
    server = RetrievalServer(retriever, ServerOptions(port=0, **options), 9, "test")
    started, stopping = threading.Event(), asyncio.Event()
    loops = []

    async def serve():
        loops.append(asyncio.get_running_loop())
        await server.start()
        while wait and not server.ready:
            await asyncio.sleep(0.005)
        started.set()
        await stopping.wait()
        await server.stop()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    assert started.wait(30)
    try:
        yield server.port, server
    finally:
        loops[0].call_soon_threadsafe(stopping.set)
        thread.join(30)
        assert not thread.is_alive()


def eventually(holds):
    """Waits until something holds; how long that takes is not part of any test."""
    limit = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < limit
        time.sleep(0.005)


def ask(port, payload, path="/retrieve", method="POST", headers=None):
    """One request; returns status, decoded body, headers."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    connection.request(method, path, body if method == "POST" else None, headers or {})
    answer = connection.getresponse()
    data = answer.read()
    connection.close()
    return answer.status, json.loads(data) if data[:1] in (b"{", b"[") else data, answer.headers


@pytest.fixture(scope="module")
def port():
    with running(FixedRetriever(HITS), limits=Limits(body=1 << 20, queries=1024)) as (port, _):
        yield port


def test_scores_and_documents(port):
    status, answer, _ = ask(port, {"queries": ["a", "b"], "topk": 2, "return_scores": True})
    assert status == 200
    assert answer["result"][0] == answer["result"][1]
    assert answer["result"][0][0] == {
        "document": {"id": "0", "title": "T0", "text": "text 0", "contents": '"T0"\ntext 0'},
        "score": 9.0,
    }


@pytest.mark.parametrize("count", [1, 2, 3, 64])
def test_without_scores_every_query_gets_its_list_of_bare_documents(port, count):
    status, answer, _ = ask(port, {"queries": ["q"] * count, "topk": 2})
    assert status == 200
    assert [len(found) for found in answer["result"]] == [2] * count
    assert answer["result"][0][0]["contents"] == '"T0"\ntext 0'


def test_bodies_are_those_of_a_json_encoder():
    scores = [9.0, 0.1 + 0.2, 1e-9, 3.5e22, None, 7, -0.0]
    hits = [Hit(str(n), 'a "title"', f"näher\n\t{n}", score, bool(n % 2)) for n, score in enumerate(scores)]
    documents = [{"id": hit.id, "title": hit.title, "text": hit.text, "contents": hit.contents} for hit in hits]
    scored = [{"document": document, "score": hit.score} for document, hit in zip(documents, hits, strict=True)]
    assert render_result([hits, []], True) == json.dumps({"result": [scored, []]}).encode()
    assert render_result([hits, []], False) == json.dumps({"result": [documents, []]}).encode()
    assert render_result([], True) == b'{"result": []}'


def test_odd_but_accepted_requests(port):
    assert ask(port, {"queries": []})[:2] == (200, {"result": []})
    assert len(ask(port, {"query": "one"})[1]["result"][0]) == 3
    for topk in (0, None):
        assert len(ask(port, {"queries": ["q"], "topk": topk})[1]["result"][0]) == 3
    assert len(ask(port, {"queries": ["q"], "topk": "5", "extra": 1})[1]["result"][0]) == 5


@pytest.mark.parametrize(
    ("payload", "status", "code"),
    [
        (b"{", 400, "bad_json"),
        (b"\xff\xfe", 400, "bad_json"),
        (b"[" * 100_000, 400, "bad_json"),
        ([1], 422, "schema"),
        ({}, 422, "schema"),
        ({"queries": "q"}, 422, "schema"),
        ({"queries": [1]}, 422, "schema"),
        ({"queries": ["q"], "topk": -1}, 422, "schema"),
        ({"queries": ["q"], "topk": 101}, 422, "schema"),
        ({"queries": ["q"], "topk": 1.5}, 422, "schema"),
        ({"queries": ["q"], "topk": [1] * 100_000}, 422, "schema"),
        ({"queries": ["q"], "topk": "²"}, 422, "schema"),
        ({"queries": ["q"], "topk": "+-5"}, 422, "schema"),
        ({"queries": ["q"], "topk": "9" * 5000}, 422, "schema"),
        ({"queries": ["q"], "topk": 1e400}, 422, "schema"),
        ({"queries": ["q"], "return_scores": "maybe"}, 422, "schema"),
        ({"queries": ["q"], "return_scores": {}}, 422, "schema"),
        ({"queries": ["q"] * 1025}, 413, "too_many_queries"),
    ],
)
def test_faulty_requests_have_their_status(port, payload, status, code):
    found, answer, _ = ask(port, payload)
    assert (found, answer["error"]["code"]) == (status, code)
    assert len(answer["error"]["message"]) < 300


def test_paths_and_methods(port):
    head = raw(port, b"HEAD /health HTTP/1.1\r\nConnection: close\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK")
    assert head.endswith(b"\r\n\r\n")
    assert ask(port, {}, "/nothing")[0] == 404
    assert ask(port, b"", "/retrieve", "GET")[0] == 405
    assert ask(port, b"", "/health?x=1", "GET")[1]["status"] == "ok"
    status, text, _ = ask(port, b"", "/metrics", "GET")
    assert status == 200
    assert b'searchqa_requests_total{status="200"}' in text


def raw(port, data):
    with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        connection.sendall(data)
        received = b""
        while chunk := connection.recv(65536):
            received += chunk
        return received


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"POST /retrieve HTTP/1.1\r\n\r\n", b"411"),
        (b"POST /retrieve HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", b"411"),
        (b"POST /retrieve HTTP/1.1\r\nContent-Length: x\r\n\r\n", b"400"),
        (b"POST /retrieve HTTP/1.1\r\nContent-Length: \xb2\r\n\r\n", b"400"),
        (b"POST /retrieve HTTP/1.1\r\nContent-Length: -5\r\n\r\n", b"400"),
        (b"POST /retrieve HTTP/1.1\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}", b"400"),
        (b"POST /retrieve HTTP/1.1\r\nContent-Length: +5\r\n\r\n", b"400"),
        (b"POST /retrieve HTTP/1.1\r\nContent-Length: 2000000\r\n\r\n", b"413"),
        (b"POST /retrieve HTTP/1.1\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n", b"413"),
        (b"nonsense\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nbroken header\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nX: " + b"y" * 20_000, b"431"),
        (b"GET / HTTP/1.1\r\nX: " + b"y" * 20_000 + b"\r\n\r\n", b"431"),
        (b"GET /nothing HTTP/1.0\r\n\r\n", b"404"),
    ],
)
def test_broken_http_is_answered_and_closed(port, data, status):
    assert raw(port, data).startswith(b"HTTP/1.1 " + status)


@pytest.mark.parametrize("size", [(1 << 20) + 1, 20 << 20])
def test_ordinary_clients_see_why_a_large_body_is_refused(port, size):
    status, answer, headers = ask(port, b" " * size)
    assert (status, answer["error"]["code"], headers["Connection"]) == (413, "body_too_large", "close")
    with pytest.raises(RetrievalRejected, match="413"):
        HttpRetriever(f"http://127.0.0.1:{port}").search(["q" * size], 3)


def test_whoever_sends_for_ever_is_cut_off(port):
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(b"POST /retrieve HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n")
        with pytest.raises(OSError, match="reset|pipe|abort"):
            for _ in range(1000):
                connection.sendall(b" " * (1 << 20))


def test_many_requests_ahead_wait_outside_and_are_all_answered(port):
    body = b'{"queries": ["q"], "topk": 1}' + b" " * 400_000
    one = b"POST /retrieve HTTP/1.1\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    last = one.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1)
    assert raw(port, one * 20 + last).count(b"HTTP/1.1 200 OK") == 21


def test_clients_that_do_not_read_do_not_fill_the_memory():
    retriever = FixedRetriever([Hit("0", "T", "x" * 1_000_000, 1.0)])
    with running(retriever) as (port, _), socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        body = b'{"queries": ["q"], "topk": 1}'
        connection.sendall((b"POST /retrieve HTTP/1.1\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)) * 200)
        eventually(lambda: len(retriever.calls) > 1)
        ask(port, {"queries": ["another client"]})
        assert len(retriever.calls) < 50


def test_a_stopping_server_answers_who_waits_and_closes_every_connection():
    release = threading.Event()
    answers = []
    retriever = FixedRetriever(HITS, after_loading(lambda: release.wait(30)))
    with running(retriever) as (port, server):
        idle = socket.create_connection(("127.0.0.1", port), timeout=30)
        threads = [threading.Thread(target=lambda: answers.append(ask(port, {"queries": ["q"]})[0])) for _ in range(3)]
        for thread in threads:
            thread.start()
        eventually(lambda: len(retriever.calls) == 2 and server._batcher.waiting == 3 - len(retriever.calls[1]))
    for thread in threads:
        thread.join(30)
    release.set()
    assert answers == [503] * 3
    assert idle.recv(10) == b""
    idle.close()


def test_kept_and_pipelined_connections(port):
    body = b'{"queries": ["q"], "topk": 1}'
    one = b"POST /retrieve HTTP/1.1\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    last = one.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1)
    assert raw(port, one + one + last).count(b"HTTP/1.1 200 OK") == 3
    with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        connection.sendall(b"POST /retrieve HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(body))
        assert connection.recv(100).startswith(b"HTTP/1.1 100")
        connection.sendall(body)
        assert connection.recv(65536).startswith(b"HTTP/1.1 200")


def test_fastapi_style_errors():
    with running(FixedRetriever(HITS), fastapi_errors=True) as (port, _):
        assert "detail" in ask(port, {"queries": 1})[1]


def test_loading_is_503_and_health_says_so():
    opened = threading.Event()
    with running(FixedRetriever(HITS, lambda: opened.wait(5)), wait=False) as (port, _):
        assert ask(port, {"queries": ["q"]})[0] == 503
        assert ask(port, b"", "/health", "GET")[1]["status"] == "loading"
        opened.set()


def after_loading(wait):
    """Calls `wait` at every search but the first one, which is the server's own."""
    calls = []

    def call():
        calls.append(1)
        if len(calls) > 1:
            wait()

    return call


def test_deadlines_and_a_full_queue():
    release = threading.Event()
    retriever = FixedRetriever(HITS, after_loading(lambda: release.wait(30)))
    with running(retriever, max_waiting=2) as (port, server):
        for wished in ("100", "100", "100", "0", "-5"):
            status, answer, _ = ask(port, {"queries": ["q"]}, headers={"X-Deadline-Ms": wished})
            assert (status, answer["error"]["code"]) == (504, "deadline")
        status, _, headers = ask(port, {"queries": ["q"] * 3})
        assert (status, headers["Retry-After"]) == (429, "1")
        release.set()
        eventually(lambda: server._batcher.waiting == 0)
        for wished in ("²", "9" * 5000, "x"):
            assert ask(port, {"queries": ["q"]}, headers={"X-Deadline-Ms": wished.encode("latin-1")})[0] == 200


def test_engine_faults_are_503_and_unknown_ones_hide_their_text():
    def raising(error):
        calls = []

        def fail():
            calls.append(1)
            if len(calls) > 1:
                raise error

        return fail

    with running(FixedRetriever(HITS, raising(RetrievalUnavailable("engine gone")))) as (port, _):
        assert ask(port, {"queries": ["q"]})[0] == 503
    with running(FixedRetriever(HITS, raising(KeyError("password")))) as (port, _):
        status, answer, _ = ask(port, {"queries": ["q"]})
        assert status == 500
        assert "password" not in str(answer)


def test_concurrent_requests_are_batched():
    release = threading.Event()
    retriever = FixedRetriever(HITS, after_loading(lambda: release.wait(30)))
    with running(retriever) as (port, server):
        threads = [threading.Thread(target=ask, args=(port, {"queries": [f"q{n}"]})) for n in range(12)]
        for thread in threads:
            thread.start()
        eventually(lambda: len(retriever.calls) == 2 and server._batcher.waiting == 12 - len(retriever.calls[1]))
        release.set()
        for thread in threads:
            thread.join(30)
    sizes = [len(call) for call in retriever.calls[1:]]
    assert sum(sizes) == 12
    assert len(sizes) == 2


def test_tokens_guard_servers_beyond_loopback():
    with pytest.raises(ValueError, match="needs a token"):
        ServerOptions(host="0.0.0.0")
    with running(FixedRetriever(HITS), token="secret") as (port, _):
        assert ask(port, {"queries": ["q"]})[0] == 401
        assert ask(port, {"queries": ["q"]}, headers={"Authorization": "Bearer wrong"})[0] == 401
        hits = HttpRetriever(f"http://127.0.0.1:{port}", token="secret").search(["q"], 3)
        assert len(hits[0]) == 3


def test_too_many_connections_are_refused_when_all_are_at_work():
    release = threading.Event()
    retriever = FixedRetriever(HITS, after_loading(lambda: release.wait(30)))
    with running(retriever, max_connections=2) as (port, server):
        threads = [threading.Thread(target=ask, args=(port, {"queries": ["q"]})) for _ in range(2)]
        for thread in threads:
            thread.start()
        eventually(lambda: len(server.connections) == 2 and not any(one.waits for one in server.connections))
        assert raw(port, b"").startswith(b"HTTP/1.1 503")
        release.set()
        for thread in threads:
            thread.join(30)


def test_idle_connections_make_room_for_new_ones():
    """Whoever opens connections and sends nothing, or half a request, keeps nobody out."""
    with running(FixedRetriever(HITS), max_connections=4) as (port, server):
        kept = [socket.create_connection(("127.0.0.1", port), timeout=30) for _ in range(10)]
        for connection in kept[::2]:
            connection.sendall(b"POST /retrieve HTTP/1.1\r\nContent-Length: 50\r\n\r\n{")
        for _ in range(8):
            assert ask(port, b"", "/health", "GET")[0] == 200
            assert ask(port, {"queries": ["q"]})[0] == 200
        assert len(server.connections) <= 4
        for connection in kept:
            connection.close()


HALF_SENT = [b"", b"GET /health HT", b"POST /retrieve HTTP/1.1\r\nContent-Length: 50\r\n\r\n{"]


@pytest.mark.parametrize("sent", HALF_SENT)
def test_idle_and_half_sent_connections_are_cut_off(sent):
    with running(FixedRetriever(HITS), patience=Patience(0.2, 0.2)) as (port, server):
        with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
            connection.sendall(sent)
            with suppress(ConnectionResetError):
                assert connection.recv(100) == b""
        eventually(lambda: not server.connections)


def test_who_does_not_read_its_answers_is_cut_off_and_others_are_kept():
    body = json.dumps({"queries": ["q"] * 400, "topk": 9}).encode()
    one = b"POST /retrieve HTTP/1.1\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    with (
        running(FixedRetriever(HITS), patience=Patience(60.0, 0.3)) as (port, server),
        socket.create_connection(("127.0.0.1", port), timeout=30) as patient,
        socket.create_connection(("127.0.0.1", port), timeout=30) as deaf,
    ):
        with suppress(OSError):
            for _ in range(200):
                deaf.sendall(one)
        eventually(lambda: len(server.connections) == 1)
        patient.sendall(b"GET /health HTTP/1.1\r\n\r\n")
        assert patient.recv(100).startswith(b"HTTP/1.1 200")


def test_search_r1s_published_run_in_one_request(port):
    """512 questions x 5 rollouts, one of them with a query of 5,000 characters."""
    corpus = open_library("tiny", 0).corpus
    queries = [corpus.passage(n % 305).title for n in range(2559)] + ["river " * 833]
    with running(BM25Retriever(corpus)) as (own, _):
        status, answer, headers = ask(own, {"queries": queries, "topk": 3, "return_scores": True})
        assert status == 200
        assert len(answer["result"]) == 2560
        assert answer["result"][7] == answer["result"][305 + 7]
        assert answer["result"][7][0]["document"]["title"] == corpus.passage(7).title
        assert headers["X-Collection"] == corpus.fingerprint
        assert HttpRetriever(f"http://127.0.0.1:{own}").search(queries, 3)[7] == BM25Retriever(corpus).search(
            [corpus.passage(7).title], 3
        )[0]  # fmt: skip
    # A server with narrower limits gets parts; one that names none of them would have to take it in one piece.
    assert [len(hits) for hits in HttpRetriever(f"http://127.0.0.1:{port}").search(queries, 3)] == [3] * 2560
    assert ask(port, {"queries": queries})[0] == 413


def test_a_large_request_lets_small_ones_through():
    retriever = FixedRetriever(HITS)
    with running(retriever, max_waiting=100) as (port, _):
        assert len(ask(port, {"queries": ["q"] * 1000})[1]["result"]) == 1000
    assert max(map(len, retriever.calls)) == 64


def test_large_bodies_share_a_budget():
    body = b"POST /retrieve HTTP/1.1\r\nContent-Length: %d\r\n\r\n{" % (3 << 20)
    with running(FixedRetriever(HITS), max_buffered=4 << 20) as (port, server):
        with socket.create_connection(("127.0.0.1", port), timeout=30) as first:
            first.sendall(body)
            eventually(lambda: server._buffered == 3 << 20)
            assert raw(port, body).startswith(b"HTTP/1.1 503")
        eventually(lambda: not server._buffered)
        assert ask(port, b'{"queries": ["q"]}' + b" " * (3 << 20))[0] == 200


def test_overlong_queries_are_cut():
    retriever = FixedRetriever(HITS)
    with running(retriever, limits=Limits(query_characters=100)) as (port, _):
        assert ask(port, {"queries": ["q" * 5000, "short"]})[0] == 200
    assert list(map(len, retriever.calls[-1])) == [100, 5]


FIELDS = [
    True, False, None, 0, 1, 2, -1, 1.0, 0.0, 1.5, 2.0, 101, "1", "0", "yes", "no", "on", "off", "y", "n", "t", "f",
    "true", "TRUE", "Yes", "false", "", " true ", "1.0", "3", "3.0", " 3 ", "+3", "0x1", "3.5", [1], {"a": 1},
]  # fmt: skip


@pytest.mark.parametrize("field", ["topk", "return_scores"])
def test_fields_are_taken_and_refused_as_the_original_does(field):
    """Its request is a pydantic model with `topk: Optional[int] = None` and `return_scores: bool = False`."""
    pydantic = pytest.importorskip("pydantic", reason="services: the original's request is a pydantic model")
    kinds = {"topk": (int | None, None), "return_scores": (bool, False)}
    model = pydantic.create_model("QueryRequest", queries=(list[str], ...), **{field: kinds[field]})
    for value in FIELDS:
        body = json.dumps({"queries": ["q"], field: value})
        try:
            wanted = getattr(model.model_validate_json(body), field)
            if field == "topk":  # the original takes its default for 0 and lets any other number through
                wanted = 3 if not wanted else wanted if 1 <= wanted <= 100 else "refused"
        except pydantic.ValidationError:
            wanted = "refused"
        try:
            found = getattr(parse_request(body.encode(), default_topk=3), field)
        except ApiError as error:
            assert error.status == 422
            found = "refused"
        assert (value, found) == (value, wanted)


def test_padding_and_repeated_passages_of_a_server_are_dropped():
    def item(name, score):
        return {"document": {"id": name, "contents": f"T{name}\ntext"}, "score": score}

    items = [item("7", 2.0), item("7", 1.5), item("8", 1.0), item("-1", 0.5), item("9", -3.4028234663852886e38)]
    assert [hit.id for hit in read_result({"result": [items]}, 1, 5)[0]] == ["7", "8"]
    assert [hit.score for hit in read_result({"result": [items]}, 1, 5)[0]] == [2.0, 1.0]


def test_a_changed_collection_behind_a_server_is_refused(tmp_path):
    path = tmp_path / "p.jsonl"
    path.write_text("".join(json.dumps({"id": str(n), "contents": f"T{n}\nword{n}"}) + "\n" for n in range(5)))
    served = JsonlCorpus(path)
    with running(BM25Retriever(served, tmp_path / "index")) as (port, _):
        url = f"http://127.0.0.1:{port}"
        env = gym.make("seed/SearchQA-v0", collection=str(path), retriever=url)
        _, info = env.reset(seed=0)
        assert info["search_qa"]["collection_sha256"] == served.fingerprint
        assert ask(port, b"", "/health", "GET")[1]["collection"] == served.fingerprint
        first = HttpRetriever(url)
        first.open()
        assert first.fingerprint != HttpRetriever(url).fingerprint
        path.write_text(path.read_text().replace("word3", "word8"))
        changed = gym.make("seed/SearchQA-v0", collection=str(path), retriever=url)
        with pytest.raises(RetrieverMismatch, match=f"serve --collection {path}"):
            changed.reset(seed=0)
        with pytest.raises(RetrieverMismatch, match="serves the collection"):
            HttpRetriever(url, corpus=JsonlCorpus(path)).search(["word1"], 1)


def test_an_engine_that_cannot_be_opened_ends_the_server(tmp_path, capsys):
    path = tmp_path / "p.jsonl"
    path.write_text('{"id": "0", "contents": "T\\nword"}\n')
    index = ["index", "--collection", str(path), "--retriever", f"bm25:{tmp_path}/index"]
    assert main(index) == 0
    path.write_text('{"id": "0", "contents": "T\\nward"}\n')
    assert main(["serve", *index[1:], "--port", "0"]) == 2
    assert f"--retriever bm25:{tmp_path}/index --replace" in capsys.readouterr().err
    assert main([*index, "--replace"]) == 0
    assert JsonlCorpus(path).fingerprint in capsys.readouterr().out


def test_our_environment_plays_over_our_server():
    corpus = open_library("tiny", 0).corpus
    direct = gym.make("seed/SearchQA-v0", collection="tiny", split="test")
    with running(BM25Retriever(corpus)) as (port, server):
        remote = gym.make("seed/SearchQA-v0", collection="tiny", split="test", retriever=f"http://127.0.0.1:{port}")
        for task_id in direct.unwrapped.task_ids("test"):
            for env in (direct, remote):
                env.reset(options={"task_id": task_id})
            ended = False
            while not ended:
                action = remote.unwrapped.oracle_action()
                one, two = direct.step(action), remote.step(action)
                assert one[:4] == two[:4]
                ended = one[2] or one[3]
            assert two[4]["success"]
        fingerprint = HttpRetriever(f"http://127.0.0.1:{port}").server_fingerprint()
        assert fingerprint == server.retriever.fingerprint


def test_the_command_serves_and_stops_on_sigterm():
    command = [sys.executable, "-m", "seed_envs.search_qa", "serve", "--collection", "tiny", "--port", "0"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        line = process.stdout.readline()
        assert re.fullmatch(r"serving 305 passages at http://127\.0\.0\.1:\d+\n", line)
        retriever = HttpRetriever(line.split()[-1])
        assert retriever.search(["capital of Grourundia"], 1)[0][0].title == "Grourundia"
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=10) == 0


def test_commands_report_errors_and_build_indices(capsys, tmp_path):
    assert main(["serve", "--host", "0.0.0.0", "--collection", "tiny"]) == 2
    assert "needs a token" in capsys.readouterr().err
    assert (
        main(["index", "--collection", "tiny", "--retriever", f"bm25:{tmp_path}/i", "--option", "k1=1.2", "--progress"])
        == 0
    )
    printed = capsys.readouterr()
    assert "305 passages are indexed" in printed.out
    assert "305/305" in printed.err
    assert main(["index", "--collection", "tiny", "--option", "broken"]) == 2
    assert main(["manifests", "--size", "tiny", "--output", str(tmp_path)]) == 0
    names = sorted(path.stem.rpartition("-")[2] for path in tmp_path.glob("generated-tiny-0-*.txt"))
    assert names == ["dev", "hops", "test", "train"]


def test_parsing_never_raises_anything_else():
    for body in (b"null", b"1", b'"x"', b'{"queries": null}', b'{"query": []}', b'{"queries": [null]}', b"\x00", b""):
        with pytest.raises(ApiError):
            parse_request(body)
