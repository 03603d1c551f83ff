"""Fields of requests: what users change, what a server refuses, and what is found out before a run."""

from __future__ import annotations

import pytest
from chat_server import completion, serve

pytest.importorskip("httpx", reason="packages: the client of chat endpoints needs httpx")

from seed_envs.endpoints.client import ChatClient, chat_address, sibling
from seed_envs.endpoints.fields import learn_arguments, with_arguments
from seed_envs.endpoints.probe import probe
from seed_envs.errors import EndpointRefused

USUAL = {"temperature": 0.4, "top_p": 1.0, "max_tokens": 512, "seed": 7}


def test_arguments_add_replace_rename_and_leave_out():
    assert with_arguments(USUAL, {}) == USUAL
    assert with_arguments(USUAL, {"seed": "drop", "reasoning_effort": "low"}) == {
        "temperature": 0.4,
        "top_p": 1.0,
        "max_tokens": 512,
        "reasoning_effort": "low",
    }
    assert "max_tokens" not in with_arguments(USUAL, {"max_completion_tokens": 99})
    kept = with_arguments({**USUAL, "chat_template_kwargs": {"a": 1}}, {"chat_template_kwargs": {"b": 2}})
    assert kept["chat_template_kwargs"] == {"b": 2}


def learn(refuse, parameters=USUAL):
    """What is learned from a server that refuses requests in which ``refuse`` finds a message."""

    def behave(handler, body, attempt):
        message, name = refuse(body)
        if message:
            handler.answer({"error": {"message": message, "param": name}}, 400)
        else:
            handler.answer(completion("yes"))

    with serve(behave) as server, ChatClient(server.url, "m", attempts=1) as client:
        return learn_arguments(client, parameters), server.bodies


def test_a_server_that_takes_everything_is_asked_once_and_briefly():
    learned, bodies = learn(lambda body: ("", ""))
    assert learned == {} and len(bodies) == 1
    assert bodies[0]["max_tokens"] == 16 and bodies[0]["temperature"] == 0.4


def test_new_names_and_dispensable_fields_are_found_out():
    def strict(body):
        for name, message in {
            "max_tokens": "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.",
            "seed": "Extra inputs are not permitted",
            "top_p": "`temperature` and `top_p` cannot both be given",
        }.items():
            if name in body:
                return message, name
        return "", ""

    learned, bodies = learn(strict)
    assert learned == {"max_completion_tokens": 512, "seed": "drop", "top_p": "drop"}
    assert len(bodies) == 4 and bodies[-1]["max_completion_tokens"] == 16


@pytest.mark.parametrize(
    ("parameters", "field"), [(USUAL, "temperature"), ({**USUAL, "top_p": 0.9}, "top_p"), ({"stop": ["x"]}, "stop")]
)
def test_what_changes_replies_is_the_users_decision(parameters, field):
    with pytest.raises(EndpointRefused, match=f"--request-arg {field}=drop"):
        learn(lambda body: ("no", field) if field in body else ("", ""), parameters)


def test_a_refusal_of_something_else_is_passed_on():
    with pytest.raises(EndpointRefused, match="roles must alternate"):
        learn(lambda body: ("roles must alternate", None))


@pytest.mark.parametrize(
    ("row", "window", "sees"),
    [
        ({"max_model_len": 4096}, 4096, None),
        ({"context_length": 8192, "architecture": {"input_modalities": ["text", "image"]}}, 8192, True),
        ({"context_window": 1000}, 1000, None),
        ({"meta": {"n_ctx": 512}, "owned_by": "llamacpp", "architecture": {"input_modalities": ["text"]}}, 512, False),
        ({"owned_by": "llamacpp", "meta": None}, 777, False),
        ({"max_model_len": "long"}, None, None),
        ({}, None, None),
    ],
)
def test_servers_say_how_long_their_window_is(row, window, sees):
    def behave(handler, body, attempt):
        if handler.path == "/props":
            handler.answer({"default_generation_settings": {"n_ctx": 777}, "modalities": {"vision": False}})
        else:
            handler.answer({"data": [{"id": "m", **row}]})

    with serve(behave) as server:
        facts = probe(server.url, "m")
    assert (facts.window, facts.sees_pictures) == (window, sees)


def test_what_a_server_says_of_a_model_without_what_changes_at_every_start():
    rows = [{"id": "m", "created": 5, "owned_by": "us", "max_model_len": 9}, {"id": "other"}]
    with serve(lambda handler, body, attempt: handler.answer({"data": rows})) as server:
        with ChatClient(server.url, "m") as client:
            assert client.describe_model() == {"served": {"id": "m", "max_model_len": 9, "owned_by": "us"}}
        with ChatClient(server.url, "unknown") as client:
            assert client.describe_model() == {}


@pytest.mark.parametrize("answer", [b"<html>", [], {"data": 3}, {"data": [3]}])
def test_a_server_that_lists_nothing_says_nothing(answer):
    with serve(lambda handler, body, attempt: handler.answer(answer)) as server, ChatClient(server.url, "m") as client:
        assert client.describe_model() == {}
    assert client.look("http://127.0.0.1:9/v1/models") is None


def test_pages_beside_chat_completions_keep_the_query():
    address = chat_address("http://127.0.0.1:1/openai/v1/?api-version=2")
    assert sibling(address, "models") == "http://127.0.0.1:1/openai/v1/models?api-version=2"
    assert sibling(address, "/props") == "http://127.0.0.1:1/props?api-version=2"
