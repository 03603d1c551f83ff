"""The client of chat endpoints against a local server that is slow, rude, broken or lying."""

from __future__ import annotations

import asyncio
import base64
import io
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest
from chat_server import completion, hang_up, serve

pytest.importorskip("httpx", reason="packages: the client of chat endpoints needs httpx")

from seed_envs.endpoints.client import ChatClient
from seed_envs.endpoints.pacing import RateLimiter, backoff, retry_after
from seed_envs.errors import ContextOverflow, EndpointFailed, EndpointRefused

MESSAGES = [{"role": "user", "content": "hello"}]


def fake_clock():
    """A clock that moves when somebody sleeps, and what was slept."""
    clock = SimpleNamespace(now=100.0, slept=[])

    async def sleep(seconds):
        clock.slept.append(seconds)
        clock.now += seconds

    clock.options = {"clock": lambda: clock.now, "sleep": sleep}
    return clock


def connect(server, **options):
    return ChatClient(server.url, "tiny", **{"timeout": 60.0, **fake_clock().options, **options})


def deliver(server, messages=MESSAGES, **options):
    with connect(server, **options) as client:
        return client.submit(messages, {"temperature": 0.0}).result()


def misbehave_first(*faults):
    def behave(handler, body, attempt):
        if attempt <= len(faults):
            faults[attempt - 1](handler)
        else:
            handler.answer(completion("at last"))

    return behave


def half_an_answer(handler):
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"choices": [')
    handler.wfile.flush()
    hang_up(handler)


def too_slow(handler):
    time.sleep(0.8)
    handler.close_connection = True


def drip(handler):
    """Never silent for long, never done."""
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    try:
        for _ in range(20):
            handler.wfile.write(b" ")
            handler.wfile.flush()
            time.sleep(0.1)
    except OSError:
        pass
    handler.close_connection = True


@pytest.mark.parametrize(
    "fault",
    [
        hang_up,
        half_an_answer,
        too_slow,
        drip,
        lambda handler: handler.answer({"error": "busy"}, 503),
        lambda handler: handler.answer({"error": "slow down"}, 429),
        lambda handler: handler.answer(b"<html>gateway</html>"),
        lambda handler: handler.answer(b"[" * 100_000),
        lambda handler: handler.answer({"choices": []}),
        lambda handler: handler.answer({"choices": [{"message": {"content": 7}}]}),
        lambda handler: handler.answer(b"\xff\xfe garbage"),
        lambda handler: handler.answer(completion("free", prompt_tokens=-1)),
        lambda handler: handler.answer(completion("endless", completion_tokens=float("inf"))),
        lambda handler: handler.answer(completion("many", completion_tokens=[1])),
    ],
    ids=[
        "hangs up",
        "half",
        "slow",
        "drips",
        "503",
        "429",
        "html",
        "deep",
        "empty",
        "number",
        "bytes",
        "negative",
        "infinite",
        "list",
    ],
)
def test_what_may_pass_is_tried_again(fault):
    impatient = {"timeout": 0.5, "attempts": 50} if fault in (too_slow, drip) else {}
    with serve(misbehave_first(fault)) as server:
        delivery = deliver(server, **impatient)
    assert delivery.answer.text == "at last"
    # On a busy machine an impatient client may give up a good answer too.
    assert delivery.attempts >= 2 if impatient else delivery.attempts == 2


def test_what_is_sent_and_counted(monkeypatch):
    monkeypatch.setenv("MY_KEY", "secret-123")
    useless = {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 5}}
    with serve(misbehave_first(lambda handler: handler.answer(useless))) as server:
        with connect(server, key_env="MY_KEY") as client:
            answer = client.ask(MESSAGES, {"temperature": 0.0, "max_tokens": 9})
        _, path, headers, body = server.seen[0]
    assert (answer.text, answer.prompt_tokens, answer.completion_tokens) == ("at last", 10, 3)
    assert (path, headers["Authorization"]) == ("/v1/chat/completions", "Bearer secret-123")
    assert body == {"model": "tiny", "messages": MESSAGES, "temperature": 0.0, "max_tokens": 9}
    assert vars(client.usage) == {"requests": 1, "attempts": 2, "prompt_tokens": 17, "completion_tokens": 8}
    assert "secret-123" not in repr(vars(client))


@pytest.mark.parametrize(
    ("status", "error", "hopeless"),
    [
        (401, EndpointRefused, True),
        (404, EndpointRefused, True),
        (422, EndpointRefused, False),
        (302, EndpointRefused, False),
    ],
)
def test_what_is_refused_is_not_tried_again(status, error, hopeless):
    headers = [("Location", "http://127.0.0.1:9/elsewhere")]
    with serve(lambda handler, body, attempt: handler.answer({"error": "no"}, status, headers)) as server:
        with pytest.raises(error, match=f"127.0.0.1.*HTTP {status}.*no") as caught:
            deliver(server)
        assert len(server.seen) == 1
    assert caught.value.hopeless is hopeless


def test_a_prompt_that_is_too_long_is_an_error_of_its_own():
    error = {"error": {"message": "This model's maximum context length is 4096 tokens"}}
    with (
        serve(lambda handler, body, attempt: handler.answer(error, 400)) as server,
        pytest.raises(ContextOverflow, match="4096"),
    ):
        deliver(server)


def test_it_gives_up_with_the_last_reason():
    clock = fake_clock()
    with (
        serve(lambda handler, body, attempt: handler.answer({"error": "maintenance"}, 503)) as server,
        pytest.raises(EndpointFailed, match="HTTP 503.*maintenance.*attempt 4, given up"),
    ):
        deliver(server, attempts=4, **clock.options)
    assert len(clock.slept) == 3 and clock.slept == sorted(clock.slept)


def test_a_bad_address_is_explained_and_a_query_stays_one():
    with pytest.raises(ValueError, match="must be an http"):
        ChatClient("file:///etc/passwd", "tiny")
    with ChatClient("http://127.0.0.1:1/v1/?api-version=2", "tiny") as client:
        assert client.address == "http://127.0.0.1:1/v1/chat/completions?api-version=2"


def test_half_a_character_can_be_written_down():
    with serve(lambda handler, body, attempt: handler.answer(completion("a \ud83d b"))) as server:
        deliver(server).answer.text.encode()


def test_an_endless_answer_is_cut_off(monkeypatch):
    monkeypatch.setattr("seed_envs.endpoints.client.MAX_RESPONSE", 1000)
    with (
        serve(lambda handler, body, attempt: handler.answer(completion("x" * 2000))) as server,
        pytest.raises(EndpointFailed, match="longer than 1000 bytes"),
    ):
        deliver(server, attempts=2)


@pytest.mark.parametrize(
    ("asked", "slept"), [("7", 7.0), ("9999", 30.0), ("nan", None), ("inf", None), ("-5", None), ("", None)]
)
def test_a_pause_asked_for_is_honoured_up_to_a_limit(asked, slept):
    clock = fake_clock()
    busy = lambda handler: handler.answer({"error": "wait"}, 429, [("Retry-After", asked)])
    with serve(misbehave_first(busy)) as server:
        deliver(server, longest_pause=30.0, **clock.options)
    (pause,) = clock.slept
    assert pause == slept if slept else 0.5 <= pause <= 1.5


def test_the_rate_limit_spaces_requests():
    clock = fake_clock()
    with serve(lambda handler, body, attempt: handler.answer(completion("ok"))) as server:
        with connect(server, requests_per_minute=600, **clock.options) as client:
            waiting = [client.submit(MESSAGES, {}) for _ in range(6)]
            assert [future.result().answer.text for future in waiting] == ["ok"] * 6
        assert clock.slept == pytest.approx([0.1] * 5)
        with connect(server, **clock.options) as client:
            for future in [client.submit(MESSAGES, {}) for _ in range(6)]:
                future.result()
    assert len(clock.slept) == 5, "without a limit nobody waits"


def test_everybody_waits_out_a_pause():
    clock = fake_clock()

    async def send():
        limiter = RateLimiter(60, **clock.options)
        await limiter.wait()
        limiter.pause(5.0)
        for _ in range(2):
            await limiter.wait()

    asyncio.run(send())
    assert clock.slept == pytest.approx([5.0, 1.0])


def test_failed_attempts_are_told_about_now_and_then():
    clock, told = fake_clock(), []
    broken = lambda handler: handler.answer({"error": "still\nloading"}, 503, [("Retry-After", "3")])
    options = {"longest_pause": 3.0, "say": told.append, **clock.options}
    with serve(misbehave_first(*[broken] * 9)) as server:
        deliver(server, attempts=10, **options)
        assert clock.slept == [3.0] * 9 and len(told) == 5, "a line at 0, 6, 12, 18 and 24 s"
        first, *later = told
        assert f"{server.url}/chat/completions" in first and "503" in first and first.count("\n") == 0
        assert "attempt 1 of 10, retrying in" in first and "more failed" not in first
        assert all("(1 more failed since the last such line)" in line for line in later)
        told.clear()
        deliver(server, **options)
    assert told == [], "nothing failed"


def test_many_waiting_requests_share_a_line():
    told = []
    broken = lambda handler: handler.answer({"error": "busy"}, 500)
    with (
        serve(misbehave_first(broken)) as server,
        connect(server, first_pause=0.0, longest_pause=0.0, say=told.append) as client,
    ):
        waiting = [client.submit([{"role": "user", "content": str(n)}], {}) for n in range(20)]
        assert [future.result().attempts for future in waiting] == [2] * 20
    assert len(told) == 1, told


def test_pictures_travel_as_data():
    image = np.full((4, 6, 3), 200, np.uint8)
    content = [{"type": "image", "image": image}, {"type": "text", "text": "look"}]
    with serve(lambda handler, body, attempt: handler.answer(completion("ok"))) as server:
        deliver(server, [{"role": "user", "content": content}])
    picture, text = server.seen[0][3]["messages"][0]["content"]
    assert text == {"type": "text", "text": "look"}
    from PIL import Image

    data = base64.b64decode(picture["image_url"]["url"].removeprefix("data:image/png;base64,"))
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(data))), image)


def test_closing_gives_up_what_is_waited_for():
    never = threading.Event()
    with serve(lambda handler, body, attempt: never.wait(60)) as server:
        client = connect(server)
        future = client.submit(MESSAGES, {})
        while not server.seen:
            time.sleep(0.01)
        client.close()
        client.close()
        never.set()
        assert future.cancelled()
        with pytest.raises(EndpointFailed, match="closed"):
            client.submit(MESSAGES, {})


def test_waits_double_with_jitter_and_are_capped():
    waits = [backoff(attempt, 1.0, seed=4) for attempt in (1, 2, 3, 4, 12)]
    assert all(0.5 * 2**n <= wait <= 1.5 * 2**n for n, wait in enumerate(waits[:4]))
    assert waits[-1] == 300.0
    assert backoff(12, 1.0, seed=4, longest=30.0) == 30.0
    assert backoff(2, 1.0, seed=4) == waits[1] != backoff(2, 1.0, seed=5)
    assert retry_after("2.5") == 2.5
    assert retry_after("9999999") == 300.0
    assert retry_after("Wed, 21 Oct 2015 07:28:00 GMT") == 0.0
    assert [retry_after(header) for header in (None, "", "soon", "nan", "inf")] == [None] * 5
