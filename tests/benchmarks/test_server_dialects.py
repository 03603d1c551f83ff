"""Whole runs with ``openai:`` against the dialects of servers that cannot be installed here, emulated on loopback.

Every emulated server lists models, words refusals, limits rates and hands out reasoning as the real one does, and
answers late and out of order; the player only wins when every reply reaches the request it belongs to.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field
from typing import Any

import pytest
from chat_server import completion, serve
from ladder_env import suite_record

pytest.importorskip("httpx", reason="packages: the endpoint agent needs httpx")

from seed_benchmarks.config import AgentSettings, RunConfig
from seed_benchmarks.records import read_transcripts
from seed_benchmarks.runner import start_run
from seed_benchmarks.suite import Suite
from seed_envs.errors import PreflightFailed


def content(text, thought):
    return {"content": text}


@dataclass(frozen=True)
class Dialect:
    """How a server speaks.

    Attributes:
        row: What its list of models says of the model.
        message: Makes a message from a text and a thought.
        thinks: Whether the thought is shown.
        refuses: Fields that are refused, with the error object.
        busy: Status, headers and body of an answer that asks for patience.
        usage: More about tokens.
        pages: Further pages.
        learned: What the harness finds out.
        remark: What it says before the run.
    """

    row: dict[str, Any] = field(default_factory=dict)
    message: Any = content
    thinks: bool = True
    refuses: dict[str, dict[str, Any]] = field(default_factory=dict)
    busy: tuple[int, list[tuple[str, str]], dict[str, Any]] = (429, [], {"error": {"message": "slow down"}})
    usage: dict[str, Any] = field(default_factory=dict)
    pages: dict[str, Any] = field(default_factory=dict)
    learned: dict[str, Any] = field(default_factory=dict)
    remark: str = ""


MAX_TOKENS = {
    "message": "Unsupported parameter: 'max_tokens' is not supported with this model. "
    "Use 'max_completion_tokens' instead.",
    "type": "invalid_request_error",
    "param": "max_tokens",
    "code": "unsupported_parameter",
}
NO_SEED = {"message": "Unknown parameter: 'seed'.", "type": "invalid_request_error", "param": "seed", "code": None}
PS = {"models": [{"name": "tiny", "model": "tiny", "size_vram": 1, "context_length": 4096}]}
DIALECTS = {
    "OpenAI": Dialect(
        row={"object": "model", "owned_by": "openai"},
        thinks=False,
        refuses={"max_tokens": MAX_TOKENS, "seed": NO_SEED},
        busy=(
            429,
            [("Retry-After", "0.05"), ("x-ratelimit-remaining-requests", "0")],
            {"error": {"message": "Rate limit reached for tiny", "type": "requests", "code": "rate_limit_exceeded"}},
        ),
        usage={"total_tokens": 107, "completion_tokens_details": {"reasoning_tokens": 5}},
        learned={"max_completion_tokens": 6, "seed": "drop"},
    ),
    "SGLang": Dialect(
        row={"object": "model", "owned_by": "sglang", "root": "tiny", "max_model_len": 2048},
        message=lambda text, thought: {"content": text, "reasoning_content": thought, "tool_calls": None},
        busy=(503, [], {"object": "error", "message": "The request queue is full.", "code": 503}),
        usage={"total_tokens": 107, "prompt_tokens_details": None},
    ),
    "Ollama": Dialect(
        row={"object": "model", "created": 1, "owned_by": "library"},
        message=lambda text, thought: {"content": text, "reasoning": thought},
        busy=(503, [], {"error": {"message": "server busy, please try again.  maximum pending requests exceeded"}}),
        pages={"/api/ps": PS},
        remark="Ollama cuts prompts that do not fit its 4096 tokens",
    ),
    "vLLM with a reasoning parser": Dialect(
        row={"object": "model", "owned_by": "vllm", "max_model_len": 1024},
        message=lambda text, thought: {"content": text, "reasoning": thought, "refusal": None, "tool_calls": []},
    ),
    "OpenRouter": Dialect(
        row={"name": "Tiny", "context_length": 8192, "architecture": {"input_modalities": ["text"]}},
        message=lambda text, thought: {
            "content": text,
            "reasoning_details": [{"type": "reasoning.text", "text": thought, "index": 0}],
        },
        # A provider's rate limit arrives with status 200.
        busy=(200, [], {"error": {"code": 429, "message": "Provider returned error", "metadata": {}}}),
    ),
    "Mistral": Dialect(
        row={"object": "model", "owned_by": "mistralai", "max_context_length": 32768},
        message=lambda text, thought: {
            "content": [
                {"type": "thinking", "thinking": [{"type": "text", "text": thought}]},
                {"type": "text", "text": text},
            ]
        },
        refuses={
            "seed": {
                "object": "error",
                "message": {"detail": [{"type": "extra_forbidden", "loc": ["body", "seed"], "msg": "Extra inputs"}]},
                "type": "invalid_request_error",
            }
        },
        learned={"seed": "drop"},
    ),
    "DeepSeek": Dialect(
        row={"object": "model", "owned_by": "deepseek"},
        message=lambda text, thought: {"content": text, "reasoning_content": thought},
        busy=(503, [], {"error": {"message": "Server overloaded", "type": "service_unavailable_error"}}),
        usage={"prompt_cache_hit_tokens": 64, "prompt_cache_miss_tokens": 36},
    ),
}


def speaking(dialect):
    """The behaviour of a server of that dialect."""

    def behave(handler, body, attempt):
        if body is None:
            page = {"/v1/models": {"object": "list", "data": [{"id": "tiny", **dialect.row}]}, **dialect.pages}
            found = page.get(handler.path)
            handler.answer(found or {"error": "not found"}, 200 if found else 404)
            return
        for name, error in dialect.refuses.items():
            if name in body:
                handler.answer({"error": error}, 400)
                return
        draw = random.Random(f"{body['messages']}{attempt}")
        time.sleep(draw.uniform(0, 0.03))
        if attempt == 1 and draw.random() < 0.3:
            status, headers, record = dialect.busy
            handler.answer(record, status, headers)
            return
        colour = body["messages"][-1]["content"].rpartition("The next rung is ")[2].split(".")[0]
        message = dialect.message(f"<action>up {colour}</action>", f"It is {colour}.")
        record = completion("", 100, 7, **message)
        record["usage"] |= dialect.usage
        handler.answer(record)

    return behave


def config(server, **options):
    settings = AgentSettings(
        f"openai:tiny@{server.url}", retries=3, retry_wait=0.01, **{"max_new_tokens": 6, **options}
    )
    return RunConfig(Suite.from_json(suite_record()), settings, batch_size=8)


@pytest.mark.parametrize("name", DIALECTS)
def test_a_whole_run_in_every_dialect(name, tmp_path):
    dialect, remarks = DIALECTS[name], []
    with serve(speaking(dialect)) as server:
        result = start_run(config(server), tmp_path / "run", say=remarks.append)
        most, bodies = server.most, server.bodies
    assert result.outcome == "complete", result.summary["errors"]
    assert result.summary["success"]["rate"] == 1.0 and most > 1
    steps = [step for _, transcript in read_transcripts(result.folder.episodes) for step in transcript["steps"]]
    assert all(step["reply"].startswith("<think>It is ") is dialect.thinks for step in steps)
    assert {step["meta"]["usage"]["completion_tokens"] for step in steps} == {7}
    assert sum(step["meta"]["attempts"] > 1 for step in steps) > 0
    played = [body for body in bodies if body is not None and "rung" in body["messages"][-1]["content"]]
    wanted = {"max_tokens": 6, **dialect.learned}
    if "max_completion_tokens" in dialect.learned:
        del wanted["max_tokens"]
    for body in played:
        assert {key: body.get(key, "drop") for key in wanted} == wanted
        assert ("max_tokens" in body) is ("max_completion_tokens" not in body)
    assert any(dialect.remark in remark for remark in remarks) or not dialect.remark


def test_a_reply_that_does_not_fit_the_window_of_a_loaded_model_is_said_before_the_run(tmp_path):
    with serve(speaking(DIALECTS["Ollama"])) as server, pytest.raises(PreflightFailed, match="window of 4096 tokens"):
        start_run(config(server, max_new_tokens=4096), tmp_path / "run", say=lambda text: None)
    assert not (tmp_path / "run").exists()
