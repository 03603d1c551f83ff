"""The endpoint agent against a local server that is slow, rude, broken or lying."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading

import pytest
from chat_server import completion, hang_up, serve
from ladder_env import PROFILES, suite_record

pytest.importorskip("httpx", reason="packages: the endpoint agent needs httpx")

from seed_benchmarks.agents.openai_http import OpenAIAgent, split_endpoint
from seed_benchmarks.config import AgentSettings, RunConfig
from seed_benchmarks.errors import UnknownAgent
from seed_benchmarks.records import read_heads, read_transcripts
from seed_benchmarks.runner import resume_run, start_run
from seed_benchmarks.suite import Suite
from seed_benchmarks.suites import find_suite
from seed_envs.errors import EndpointFailed
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


def test_requests_are_in_flight_together():
    everybody = threading.Barrier(12)

    def behave(handler, body, attempt):
        everybody.wait(60)
        handler.answer(completion("ok"))

    with serve(behave) as server:
        replies = ask(server, *[request(str(number)) for number in range(12)])
    assert [reply.text for reply in replies] == ["ok"] * 12
    assert server.most == 12


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
    # Which record is the first is a matter of speed; an episode that failed at once has no step.
    transcripts = list(read_transcripts(tmp_path / "run" / "episodes.jsonl"))
    scored = [transcript["steps"] for record, transcript in transcripts if record.scored]
    assert all(step["meta"]["usage"]["completion_tokens"] == 7 for steps in scored for step in steps)


def push(handler, body, attempt):
    call = {"type": "function", "function": {"name": "act", "arguments": json.dumps({"action": "up"})}}
    handler.answer(completion(None, tool_calls=[call]))


def test_a_run_by_tool_calls(tmp_path):
    with serve(push) as server:
        settings = AgentSettings(f"openai:tiny@{server.url}")
        config = RunConfig(find_suite("sokoban/paper_text"), settings, limit=2, profile="tools", max_steps=3)
        result = start_run(config, tmp_path / "run")
        bodies = [body for body in server.bodies if body]
    assert result.summary["counts"]["failed"] == 0 and bodies
    for body in bodies:
        (tool,) = body["tools"]
        assert tool["function"]["name"] == "act" and all(set(each) == {"role", "content"} for each in body["messages"])
    for _, transcript in read_transcripts(tmp_path / "run" / "episodes.jsonl"):
        assert all((step["action"], step["format_valid"]) == ("up", True) for step in transcript["steps"])


def test_an_interrupt_waits_for_no_endpoint(tmp_path, repo):
    """Four loops hang on a silent server; the run still ends at once, and nothing counts as failed."""
    everybody, never = threading.Barrier(5), threading.Event()

    def behave(handler, body, attempt):
        if body is None:
            handler.answer({}, 404)
            return
        everybody.wait(120)
        never.wait(300)

    (tmp_path / "suite.json").write_text(json.dumps(suite_record()))
    path = os.pathsep.join([str(repo), str(repo / "tests" / "helpers"), *sys.path])
    with serve(behave) as server:
        command = [sys.executable, "-m", "seed_benchmarks", "run", "--suite", str(tmp_path / "suite.json")]
        command += ["--agent", f"openai:tiny@{server.url}", "--batch-size", "4", "--out", str(tmp_path / "run")]
        command += ["--no-preflight"]
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
