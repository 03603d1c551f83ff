"""Refusals as servers word them, and answers in the shapes that they use."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from seed_envs.endpoints.refusals import read_refusal, refused_field
from seed_envs.endpoints.wire import read_answer
from seed_envs.errors import ContextOverflow, EndpointPassing, EndpointRefused

ANSWERS = json.loads((Path(__file__).parent / "endpoint_refusals.json").read_text(encoding="utf-8"))


def _meaning(error: Exception) -> str:
    if isinstance(error, ContextOverflow):
        return "overflow"
    if isinstance(error, EndpointPassing):
        return "passing"
    assert isinstance(error, EndpointRefused)
    return "hopeless" if error.hopeless else "refused"


@pytest.mark.parametrize("answer", ANSWERS, ids=[answer["server"] for answer in ANSWERS])
def test_a_refusal_means_what_its_server_means(answer: dict[str, object]) -> None:
    body = answer["body"]
    text = body if isinstance(body, str) else json.dumps(body)
    error = read_refusal(int(str(answer["status"])), text, "http://127.0.0.1/v1")
    assert _meaning(error) == answer["means"]
    assert f"HTTP {answer['status']}" in str(error)


def test_counts_decide_before_words() -> None:
    fits = {"error": {"message": "context size", "n_prompt_tokens": 100, "n_ctx": 512}}
    assert _meaning(read_refusal(400, json.dumps(fits), "u")) == "refused"


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ('{"error": {"param": "max_tokens", "message": "use another"}}', "max_tokens"),
        ('{"error": {"message": "`temperature` and `top_p` cannot both be specified"}}', "temperature"),
        ('{"detail": [{"loc": ["body", "seed"], "msg": "Extra inputs are not permitted"}]}', "seed"),
        ('{"message": {"detail": [{"loc": ["body", "seed"]}]}}', "seed"),
        ('{"error": {"message": "Use max_completion_tokens instead", "param": "max_completion_tokens"}}', ""),
        ("<html>no</html>", ""),
    ],
)
def test_the_field_complained_about_is_found(text: str, field: str) -> None:
    assert refused_field(text, {"temperature": 0.4, "top_p": 1.0, "max_tokens": 8, "seed": 1}) == field


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"content": [{"type": "text", "text": "go "}, {"type": "text", "text": "north"}]}, "go north"),
        ({"content": [{"type": "text", "text": None}]}, ""),
        (
            {
                "content": [
                    {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
                    {"type": "text", "text": "go"},
                ]
            },
            "<think>hm</think>go",
        ),
        ({"content": "go", "reasoning_details": [{"type": "reasoning.text", "text": "hm"}]}, "<think>hm</think>go"),
        ({"content": None, "refusal": "I will not."}, "I will not."),
        (
            {"content": None, "tool_calls": [{"type": "function", "function": {"name": "go", "arguments": "{}"}}]},
            '<tool_call>{"name": "go", "arguments": "{}"}</tool_call>',
        ),
        ({"content": ""}, ""),
    ],
)
def test_answers_are_read_in_every_shape(message: dict[str, object], text: str) -> None:
    assert read_answer({"choices": [{"message": message}]}).whole == text


@pytest.mark.parametrize(
    "message", [{"content": 7}, {"content": ["go"]}, {"content": "go", "reasoning": 7}, {"tool_calls": [{}]}, None]
)
def test_what_is_no_answer_is_refused(message: object) -> None:
    with pytest.raises(ValueError, match="no chat completion"):
        read_answer({"choices": [{"message": message}]})
