"""The endpoint agent against a local server that is slow, rude, broken or lying."""

from __future__ import annotations

import asyncio
import base64
import functools
import io
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest
from chat_server import completion, serve
from ladder_env import PROFILES, suite_record

pytest.importorskip("httpx", reason="the endpoint agent needs httpx (extra: bench)")

from seed_benchmarks.agents import openai_http
from seed_benchmarks.agents.openai_http import OpenAIAgent, split_endpoint
from seed_benchmarks.agents.pacing import RateLimiter, backoff, retry_after
from seed_benchmarks.config import AgentSettings, RunConfig
from seed_benchmarks.errors import EndpointFailed, UnknownAgent
from seed_benchmarks.records import read_heads, read_transcripts
from seed_benchmarks.runner import resume_run, start_run
from seed_benchmarks.suite import Suite
from seed_envs.profiles import TurnContext
from seed_envs.rollout import Request
from seed_envs.tasks import TaskSpec
from seed_envs.trajectory import StopReason


def request(content="hello", number=0):
    messages = [{"role": "user", "content": content}]
    return Request(number, 0, messages, TurnContext("", ""), TaskSpec("task", seed=number), lambda method: None)


def ask(server, *requests, **options):
    settings = AgentSettings("openai:m@u", **{"retries": 3, "retry_wait": 0.01, "request_timeout": 60.0, **options})
    agent = OpenAIAgent(settings, f"tiny@{server.url}", PROFILES["paper"])
    try:
        return agent.act(requests or [request()])
    finally:
        agent.close()


def test_a_good_answer_with_tokens_and_cost():
    with serve(lambda handler, body, attempt: handler.answer(completion("hi", 1000, 500))) as server:
        (reply,) = ask(
            server, price_prompt=2.0, price_completion=10.0, temperature=0.7, max_new_tokens=9, thinking=False
        )
    assert (reply.text, reply.error) == ("hi", None)
    assert reply.meta["usage"] == {"prompt_tokens": 1000, "completion_tokens": 500, "cost": pytest.approx(0.007)}
    _, path, headers, body = server.seen[0]
    assert path == "/v1/chat/completions"
    assert "Authorization" not in headers
    assert (body["model"], body["temperature"], body["max_tokens"]) == ("tiny", 0.7, 9)
    assert body["chat_template_kwargs"] == {"enable_thinking": False}
    assert body["messages"] == [{"role": "user", "content": "hello"}]


def test_the_key_is_sent_but_never_shown(monkeypatch):
    monkeypatch.setenv("MY_KEY", "secret-123")
    with serve(lambda handler, body, attempt: handler.answer({"error": "no"}, 401)) as server:
        (reply,) = ask(server, api_key_env="MY_KEY")
    assert server.seen[0][2]["Authorization"] == "Bearer secret-123"
    assert reply.error.type == "EndpointRefused"
    assert "$MY_KEY" in reply.error.message
    assert "secret-123" not in reply.error.message + reply.error.traceback


def misbehave_first(*faults):
    def behave(handler, body, attempt):
        if attempt <= len(faults):
            faults[attempt - 1](handler)
        else:
            handler.answer(completion("at last"))

    return behave


def hang_up(handler):
    handler.connection.shutdown(socket.SHUT_RDWR)
    handler.close_connection = True


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
    impatient = {"request_timeout": 0.5, "retries": 50} if fault in (too_slow, drip) else {}
    with serve(misbehave_first(fault)) as server:
        (reply,) = ask(server, **impatient)
    assert (reply.text, reply.error) == ("at last", None)
    # On a busy machine an impatient client may give up a good answer too.
    assert reply.meta["attempts"] >= 2 if impatient else reply.meta["attempts"] == 2


def test_after_the_last_attempt_the_fault_is_typed():
    with serve(lambda handler, body, attempt: handler.answer({"error": "down"}, 500)) as server:
        (reply,) = ask(server, retries=2)
        assert len(server.seen) == 3
    assert reply.error.type == "EndpointFailed"
    assert "HTTP 500" in reply.error.message and "attempt 3" in reply.error.message
    assert reply.stop_reason is StopReason.POLICY_ERROR


def test_what_is_refused_is_not_tried_again():
    with serve(lambda handler, body, attempt: handler.answer({"error": "no such model"}, 404)) as server:
        (reply,) = ask(server)
        assert len(server.seen) == 1
    assert reply.error.type == "EndpointRefused"
    assert "no such model" in reply.error.message


def test_a_prompt_that_is_too_long_is_the_agents_affair():
    error = {"error": {"message": "This model's maximum context length is 4096 tokens", "code": 400}}
    with serve(lambda handler, body, attempt: handler.answer(error, 400)) as server:
        (reply,) = ask(server)
        assert len(server.seen) == 1
    assert reply.stop_reason is StopReason.CONTEXT_OVERFLOW
    assert reply.stop_reason.scored


def test_an_endless_answer_is_cut_off(monkeypatch):
    monkeypatch.setattr("seed_benchmarks.agents.openai_http.MAX_RESPONSE", 1000)
    with serve(lambda handler, body, attempt: handler.answer(completion("x" * 2000))) as server:
        (reply,) = ask(server, retries=1)
    assert "longer than 1000 bytes" in reply.error.message


def test_retry_after_is_obeyed_by_everybody():
    def behave(handler, body, attempt):
        if body["messages"][0]["content"] == "a" and attempt == 1:
            handler.answer({"error": "wait"}, 429, [("Retry-After", "0.6")])
        else:
            time.sleep(0.1)
            handler.answer(completion("ok"))

    with serve(behave) as server:
        ask(server, request("a"))
        times = [moment for moment, *_ in server.seen]
    assert times[1] - times[0] >= 0.6


def test_the_rate_limit_spaces_requests(monkeypatch):
    clock = SimpleNamespace(now=100.0, slept=[])

    async def sleep(seconds):
        clock.slept.append(seconds)
        clock.now += seconds

    limiter = functools.partial(RateLimiter, clock=lambda: clock.now, sleep=sleep)
    monkeypatch.setattr(openai_http, "RateLimiter", limiter)
    with serve(lambda handler, body, attempt: handler.answer(completion("ok"))) as server:
        ask(server, *[request(str(number)) for number in range(6)], requests_per_minute=600)
        assert len(server.seen) == 6
        assert clock.slept == pytest.approx([0.1] * 5)
        ask(server, *[request(str(number)) for number in range(6)])
    assert len(clock.slept) == 5, "without a limit nobody waits"


def test_everybody_waits_out_a_pause():
    clock = SimpleNamespace(now=100.0, slept=[])

    async def sleep(seconds):
        clock.slept.append(seconds)
        clock.now += seconds

    async def send():
        limiter = RateLimiter(60, lambda: clock.now, sleep)
        await limiter.wait()
        limiter.pause(5.0)
        for _ in range(2):
            await limiter.wait()

    asyncio.run(send())
    assert clock.slept == pytest.approx([5.0, 1.0])


def test_requests_are_in_flight_together():
    everybody = threading.Barrier(12)

    def behave(handler, body, attempt):
        everybody.wait(60)
        handler.answer(completion("ok"))

    with serve(behave) as server:
        replies = ask(server, *[request(str(number)) for number in range(12)])
    assert [reply.text for reply in replies] == ["ok"] * 12
    assert server.most == 12


def test_pictures_travel_as_data():
    image = np.full((4, 6, 3), 200, np.uint8)
    content = [{"type": "image", "image": image}, {"type": "text", "text": "look"}]
    with serve(lambda handler, body, attempt: handler.answer(completion("ok"))) as server:
        ask(server, request(content))
    picture, text = server.seen[0][3]["messages"][0]["content"]
    assert text == {"type": "text", "text": "look"}
    from PIL import Image

    data = base64.b64decode(picture["image_url"]["url"].removeprefix("data:image/png;base64,"))
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(data))), image)


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"content": None}, ""),
        ({"content": "go", "reasoning_content": "hm"}, "<think>hm</think>go"),
        ({"content": "<think>a</think>go", "reasoning_content": "a"}, "<think>a</think>go"),
        ({"content": None, "reasoning": "hm"}, "<think>hm</think>"),
    ],
)
def test_reasoning_is_part_of_the_reply(message, text):
    with serve(lambda handler, body, attempt: handler.answer({"choices": [{"message": message}]})) as server:
        (reply,) = ask(server)
    assert reply.text == text
    assert reply.meta["usage"]["prompt_tokens"] == 0


def climb_or_fail(handler, body, attempt):
    if handler.server.live > 1:
        handler.server.company.set()
    handler.server.company.wait(60)
    prompt = body["messages"][-1]["content"]
    colour = prompt.rpartition("The next rung is ")[2].split(".")[0]
    if body["seed"] % 7 == 0 and not handler.server.mended:
        handler.answer({"error": "down"}, 500)
    elif body["seed"] % 5 == 0 and attempt == 1:
        hang_up(handler)
    else:
        handler.answer(completion(f"<action>up {colour}</action>", 100, 7))


def test_a_whole_run_over_a_bad_line_and_its_resumption(tmp_path):
    with serve(climb_or_fail) as server:
        server.mended, server.company = False, threading.Event()
        settings = AgentSettings(f"openai:tiny@{server.url}", retries=2, retry_wait=0.01, price_completion=1e6)
        suite = Suite.from_json(suite_record())
        result = start_run(RunConfig(suite, settings, batch_size=8), tmp_path / "run")
        assert 1 < server.most <= 8
        counts = result.summary["counts"]
        assert 0 < counts["failed"] < 24 and counts["missing"] == 0
        assert result.summary["success"]["rate"] == 1.0
        assert set(result.summary["errors"]) == {"EndpointFailed"}
        server.mended = True
        result = resume_run(tmp_path / "run")
    assert result.outcome == "complete"
    records = list(read_heads(tmp_path / "run" / "episodes.jsonl"))
    assert len({record.key for record in records if record.scored}) == 24
    assert len(records) == 24 + counts["failed"]
    steps = sum(record.steps for record in records)
    assert result.summary["tokens"]["completion"] <= 7 * steps
    _, transcript = next(read_transcripts(tmp_path / "run" / "episodes.jsonl"))
    assert transcript["steps"][0]["meta"]["usage"]["completion_tokens"] == 7


def test_an_interrupt_waits_for_no_endpoint(tmp_path, repo):
    """Four loops hang on a silent server; the run still ends at once, and nothing counts as failed."""
    everybody, never = threading.Barrier(5), threading.Event()

    def behave(handler, body, attempt):
        everybody.wait(120)
        never.wait(300)

    (tmp_path / "suite.json").write_text(json.dumps(suite_record()))
    path = os.pathsep.join([str(repo), str(repo / "tests" / "helpers"), *sys.path])
    with serve(behave) as server:
        command = [sys.executable, "-m", "seed_benchmarks", "run", "--suite", str(tmp_path / "suite.json")]
        command += ["--agent", f"openai:tiny@{server.url}", "--batch-size", "4", "--out", str(tmp_path / "run")]
        process = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": path}, stdout=subprocess.PIPE, text=True)
        try:
            everybody.wait(120)
            process.send_signal(signal.SIGTERM)  # as Ctrl-C, which a shell may have switched off for its background
            printed, _ = process.communicate(timeout=100)  # a request would be given up after 120 seconds
        finally:
            never.set()
            process.kill()
    assert process.returncode == 130
    assert "0 of 24 episodes scored (0 tasks), 0 failed, 24 missing" in printed


def test_a_closed_agent_asks_nobody():
    with serve(lambda handler, body, attempt: handler.answer(completion("ok"))) as server:
        agent = OpenAIAgent(AgentSettings("openai:m@u"), f"tiny@{server.url}", PROFILES["paper"])
        agent.close()
        agent.close()
        with pytest.raises(EndpointFailed, match="closed"):
            agent.act([request()])
    assert not server.seen


def test_specs_without_an_address_are_explained(monkeypatch):
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    assert split_endpoint("org/m@v1@http://h:1/v1/") == ("org/m@v1", "http://h:1/v1")
    with pytest.raises(UnknownAgent, match="MODEL@URL"):
        split_endpoint("gpt")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1/")
    assert split_endpoint("gpt") == ("gpt", "http://127.0.0.1:1/v1")
    with pytest.raises(UnknownAgent, match="MODEL@URL"):
        split_endpoint("gpt@localhost:8000")


def test_waits_double_with_jitter_and_are_capped():
    waits = [backoff(attempt, 1.0, seed=4) for attempt in (1, 2, 3, 4, 12)]
    assert all(0.5 * 2**n <= wait <= 1.5 * 2**n for n, wait in enumerate(waits[:4]))
    assert waits[-1] == 300.0
    assert backoff(2, 1.0, seed=4) == waits[1] != backoff(2, 1.0, seed=5)
    assert retry_after("2.5") == 2.5
    assert retry_after("9999999") == 300.0
    assert retry_after("Wed, 21 Oct 2015 07:28:00 GMT") == 0.0
    assert [retry_after(header) for header in (None, "", "soon", "nan")] == [None] * 4
