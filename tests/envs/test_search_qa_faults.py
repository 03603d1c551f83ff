"""Failing servers: every failure has its type, keeps the deadline, and never becomes an observation."""

from __future__ import annotations

import json
import pickle
import random
import socket
import struct
import sys
import threading
import time

import gymnasium as gym
import pytest
from search_qa_samples import free_port, http_answer, raw_server, read_request

from seed_envs.errors import DependencyMissing
from seed_envs.search_qa.retrievers.base import (
    FailureDetails,
    RetrievalProtocolError,
    RetrievalRejected,
    RetrievalTimeout,
    RetrievalUnavailable,
    RetrieverForked,
    RetrieverMismatch,
)
from seed_envs.search_qa.retrievers.http import HttpRetriever
from seed_envs.search_qa.retrievers.reliability import CircuitBreaker, backoff

GOOD = json.dumps(
    {"result": [[{"document": {"id": "1", "title": "T", "text": "t", "contents": '"T"\nt'}, "score": 1.5}]]}
).encode()


LONG = 60.0
"""A deadline that plays no part, in seconds."""


def search(url, seconds=LONG, **kwargs):
    """One search with a deadline; returns hits or the failure."""
    retriever = HttpRetriever(url, **kwargs)
    try:
        return retriever.search(["q"], 3, time.monotonic() + seconds)
    except Exception as error:
        return error


def answering(*answers):
    """A handler that sends the answers one after the other over all connections, the last one for ever."""
    remaining = list(answers)

    def handle(connection, number):
        while read_request(connection):
            answer = remaining.pop(0) if len(remaining) > 1 else remaining[0]
            if answer is None:
                return
            connection.sendall(answer)

    return handle


def reset(connection, number):
    read_request(connection)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def hang(connection, number):
    read_request(connection)
    connection.recv(1)  # until the client gives up


def trickle(connection, number):
    read_request(connection)
    for byte in http_answer(GOOD):
        connection.sendall(bytes([byte]))
        time.sleep(0.05)


def die_in_the_middle(connection, number):
    read_request(connection)
    connection.sendall(http_answer(GOOD)[:-40])


def endless(connection, number):
    read_request(connection)
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n")
    while True:
        connection.sendall(b"x" * 65536)


@pytest.mark.parametrize(
    ("handle", "error"),
    [
        (reset, RetrievalUnavailable),
        (hang, RetrievalTimeout),
        (trickle, RetrievalTimeout),
        (die_in_the_middle, RetrievalUnavailable),
        (answering(http_answer(b"slow", "503 Service Unavailable")), RetrievalUnavailable),
        (answering(http_answer(b"x", "500 Internal Server Error")), RetrievalUnavailable),
        (answering(http_answer(b"busy", "429 Too Many Requests", "Retry-After: 3600\r\n")), RetrievalUnavailable),
        (answering(http_answer(b"no", "422 Unprocessable")), RetrievalRejected),
        (answering(http_answer(b"", "302 Found", "Location: http://127.0.0.1:1/\r\n")), RetrievalProtocolError),
        (answering(http_answer(b"<html>error</html>")), RetrievalProtocolError),
        (answering(http_answer(GOOD[:-5])), RetrievalProtocolError),
        (answering(http_answer(b'{"result": []}')), RetrievalProtocolError),
        (answering(http_answer(b'{"result": [[], []]}')), RetrievalProtocolError),
        (answering(http_answer(b"[" * 100_000)), RetrievalProtocolError),
        (answering(http_answer(GOOD.replace(b"1.5", b"NaN"))), RetrievalProtocolError),
        (answering(http_answer(GOOD.replace(b"1.5", b'"high"'))), RetrievalProtocolError),
        (answering(http_answer(b'{"result": [[{"id": "1"}]]}')), RetrievalProtocolError),
        (answering(b"SSH-2.0-OpenSSH\r\n\r\n"), RetrievalUnavailable),
        (endless, RetrievalProtocolError),
    ],
)
def test_every_fault_has_its_type_and_keeps_the_deadline(handle, error):
    with raw_server(handle) as url:
        failure = search(url, seconds=1.0 if error is RetrievalTimeout else LONG)
    assert type(failure) is error, failure
    # The deadline is for all tries together: the one that meets it is the last.
    assert failure.details.tries == 1 if error is RetrievalTimeout else failure.details.tries >= 1
    assert failure.details.endpoint == url
    assert failure.details.elapsed > 0


def test_a_refused_connection_is_retried_and_then_unavailable():
    failure = search(f"http://127.0.0.1:{free_port()}")
    assert type(failure) is RetrievalUnavailable
    assert 1 < failure.details.tries <= 4


@pytest.mark.parametrize(
    "first", [http_answer(b"x", "503 Service Unavailable"), http_answer(b"x", "500 Internal Server Error"), None]
)
def test_a_server_that_recovers_is_asked_again(first):
    with raw_server(answering(first, http_answer(GOOD))) as url:
        found = search(url)
    assert found[0][0].id == "1"


def test_a_client_error_is_never_retried():
    calls = []

    def handle(connection, number):
        while read_request(connection):
            calls.append(number)
            connection.sendall(http_answer(b"bad", "400 Bad Request"))

    with raw_server(handle) as url:
        assert type(search(url)) is RetrievalRejected
    assert len(calls) == 1


def test_a_server_that_dies_and_comes_back_serves_the_same_retriever():
    port = free_port()
    retriever = HttpRetriever(f"http://127.0.0.1:{port}")

    def serve_once(listener):
        with listener:
            connection, _ = listener.accept()
        with connection:
            read_request(connection)
            connection.sendall(http_answer(GOOD))

    for _ in range(2):
        thread = threading.Thread(target=serve_once, args=(socket.create_server(("127.0.0.1", port)),))
        thread.start()
        assert retriever.search(["q"], 3, time.monotonic() + LONG)[0][0].id == "1"
        thread.join()
        with pytest.raises(RetrievalUnavailable):
            retriever.search(["q"], 3, time.monotonic() + LONG)
    retriever.close()


def test_the_other_endpoint_answers_when_one_is_down():
    with raw_server(answering(http_answer(GOOD))) as good, raw_server(reset) as bad:
        retriever = HttpRetriever([bad, good])
        for _ in range(12):
            assert retriever.search(["q"], 3, time.monotonic() + LONG)[0][0].id == "1"
        broken = next(e for e in retriever._endpoints._endpoints if e.base == bad)
        assert broken.breaker.is_open
        retriever.close()


def test_an_open_breaker_refuses_without_a_call():
    calls = []

    def counted(connection, number):
        calls.append(number)
        reset(connection, number)

    with raw_server(counted) as url:
        retriever = HttpRetriever(url)
        endpoint = retriever._endpoints._endpoints[0]
        endpoint.breaker = CircuitBreaker(lambda: 0.0)  # a clock that stands still: no probe is due
        for _ in range(2):
            with pytest.raises(RetrievalUnavailable):
                retriever.search(["q"], 3, time.monotonic() + LONG)
        assert endpoint.breaker.is_open
        before = len(calls)
        with pytest.raises(RetrievalUnavailable, match="circuit breaker is open") as failure:
            retriever.search(["q"], 3, time.monotonic() + LONG)
        assert (len(calls), failure.value.details.tries) == (before, 0)


def test_the_breaker_opens_probes_and_closes():
    now = [0.0]
    breaker = CircuitBreaker(lambda: now[0], random.Random(0))
    for _ in range(5):
        assert breaker.allows()
        breaker.failed()
    assert not breaker.allows()
    now[0] = 1.3
    assert breaker.allows()
    assert not breaker.allows()
    breaker.failed()
    now[0] = 2.8
    assert not breaker.allows()
    now[0] = 3.8
    assert breaker.allows()
    breaker.succeeded()
    assert not breaker.is_open
    mixed = CircuitBreaker(lambda: now[0], random.Random(0))
    for _ in range(10):
        mixed.succeeded()
        mixed.failed()
    assert mixed.is_open


def test_waits_grow_and_are_limited():
    rng = random.Random(0)
    for tries, most in ((1, 0.1), (2, 0.2), (3, 0.4), (9, 2.0)):
        waits = [backoff(tries, rng) for _ in range(200)]
        assert 0 <= min(waits) < most / 4
        assert most * 0.75 < max(waits) <= most


def test_accepted_variants_of_answers():
    documents = [
        {"document": {"id": 7, "contents": "Plain\ntext"}},
        {"document": {"contents": '"Q"\nt'}, "score": None},
        {"title": '"Bare"', "text": "t", "id": "x"},
        "just text",
    ]
    body = json.dumps({"result": [documents]}).encode()
    with raw_server(answering(http_answer(body))) as url:
        hits = HttpRetriever(url + "/retrieve").search(["q"], 10)[0]
        assert [hit.score for hit in hits] == [None] * 4
        assert [hit.title for hit in hits] == ["Plain", "Q", "Bare", "just text"]
        assert len(HttpRetriever(url).search(["q"], 2)[0]) == 2
        assert len(HttpRetriever(url, variant="query").search(["a", "b"], 2)) == 2
        assert HttpRetriever(url).search([], 2) == []


def test_msgpack_is_spoken_where_it_is_asked_for():
    msgpack = pytest.importorskip("msgpack", reason="packages: the encoding needs msgpack")
    requests = []

    def handle(connection, number):
        while request := read_request(connection):
            requests.append(request)
            body = msgpack.packb(json.loads(GOOD))
            head = f"HTTP/1.1 200 OK\r\nContent-Type: application/msgpack\r\nContent-Length: {len(body)}\r\n\r\n"
            connection.sendall(head.encode() + body)

    with raw_server(handle) as url:
        assert search(url, encoding="msgpack")[0][0].title == "T"
        assert msgpack.unpackb(requests[0].partition(b"\r\n\r\n")[2])["queries"] == ["q"]
        failure = search(url)
    assert type(failure) is RetrievalProtocolError
    assert "encoding='msgpack'" in str(failure)
    broken = b"HTTP/1.1 200 OK\r\nContent-Type: application/msgpack\r\nContent-Length: 3\r\n\r\n\xc1\x00\x00"
    with raw_server(answering(broken)) as url:
        assert type(search(url, encoding="msgpack")) is RetrievalProtocolError


def test_msgpack_that_is_missing_is_named_before_the_first_search(monkeypatch):
    monkeypatch.setitem(sys.modules, "msgpack", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(DependencyMissing, match=r"seed-envs\[search\]"):
        HttpRetriever("http://127.0.0.1:1", encoding="msgpack")


@pytest.mark.parametrize(
    ("url", "token"),
    [
        ("http://127.0.0.1:99999", ""),
        ("http://127.0.0.1:x", ""),
        ("http://", ""),
        ("http://[::1", ""),
        ("ftp://127.0.0.1", ""),
        ("http://127.0.0.1:1/a b", ""),
        ("http://127.0.0.1:1/\r\nX: y", ""),
        ("http://127.0.0.1:1", "a\r\nX: y"),
        ("http://127.0.0.1:1", "ключ"),
    ],
)
def test_addresses_and_tokens_that_no_request_can_hold_are_refused_at_once(url, token):
    with pytest.raises(ValueError, match="address|token"):
        HttpRetriever(url, token=token)


def test_calls_go_round_the_endpoints_on_kept_connections():
    seen: dict[str, set[int]] = {"a": set(), "b": set()}

    def handler(name):
        def handle(connection, number):
            while read_request(connection):
                seen[name].add(number)
                connection.sendall(http_answer(GOOD))

        return handle

    with raw_server(handler("a")) as a, raw_server(handler("b")) as b:
        retriever = HttpRetriever(f"{a},{b}")
        for _ in range(6):
            retriever.search(["q"], 3)
        retriever.close()
    assert seen == {"a": {0}, "b": {0}}


def test_failures_truncate_the_episode_and_are_not_cached():
    with raw_server(answering(http_answer(b"{}"), http_answer(b"<html>"), http_answer(GOOD))) as url:  # /health first
        env = gym.make("seed/SearchQA-v0", collection="tiny", retriever=url, deadline=2.0)
        env.reset(seed=0)
        observation, reward, _, truncated, info = env.step("<search>q</search>")
        assert (observation, reward, truncated) == ("", 0.0, True)
        assert info["stop_reason"] == "retrieval_error"
        assert "html" not in observation
        assert info["search_qa"]["retrieval_error"].startswith("RetrievalProtocolError")
        env.reset(seed=0)
        observation, *_ = env.step("<search>q</search>")
        assert observation == '\n\n<information>Doc 1(Title: "T") t</information>\n\n'


def test_failures_can_be_pickled_and_hide_passwords():
    kinds = [RetrievalTimeout, RetrievalUnavailable, RetrievalProtocolError, RetrievalRejected]
    for kind in [*kinds, RetrieverMismatch, RetrieverForked]:
        failure = kind("what", FailureDetails("http://h", 2, 0.5, ["cause"]))
        again = pickle.loads(pickle.dumps(failure))
        assert type(again) is kind
        assert str(again) == str(failure)
        assert again.details == failure.details
    failure = search("http://user:secret@127.0.0.1:1", seconds=0.3)
    assert "secret" not in str(failure)
    with pytest.raises(ValueError, match="expected http"):
        HttpRetriever("ftp://x")
