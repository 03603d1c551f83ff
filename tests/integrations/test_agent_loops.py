"""The agent loops of the examples play over HTTP: a server that knows a winning list of actions calls our tools."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys

import pytest
from chat_server import completion, serve
from tool_calls import as_call

from seed_envs.integrations.episode import Episode

LOOPS = {
    "07_openai_tools.py": "openai",
    "08_smolagents.py": "smolagents",
    "09_langgraph.py": "langgraph",
}


def winning_calls(env_id):
    """The oracle's actions as tool calls."""
    episode = Episode(env_id)
    episode.reset(seed=0)
    calls = []
    while not episode.done:
        action = episode.env.unwrapped.oracle_action()
        calls.append(as_call(episode.tools, action))
        episode.act(action)
    assert len(calls) == len(episode.actions) > 1 and episode.success
    return calls


def caller(calls):
    """Answers every request with the next call, and says so when there is none left."""

    def behave(handler, body, attempt):
        number = len(handler.server.bodies) - 1
        offered = {tool["function"]["name"] for tool in body["tools"]}
        name, arguments = calls[number] if number < len(calls) else ("final_answer", {"answer": "done"})
        if name not in offered:
            record = completion("The task is solved.")
        else:
            call = {"id": f"call_{number}", "type": "function"}
            call["function"] = {"name": name, "arguments": json.dumps(arguments)}
            record = completion(None, tool_calls=[call])
        record["usage"]["total_tokens"] = 13
        record["choices"][0]["index"] = 0
        handler.answer({"id": "1", "object": "chat.completion", "created": 0, "model": "m", **record})

    return behave


@pytest.mark.parametrize(
    ("example", "env_id"), [*((name, "seed/WebShop-v0") for name in LOOPS), ("08_smolagents.py", "seed/ALFWorld-v0")]
)
def test_a_loop_plays_the_list_to_the_end(repo, example, env_id):
    if importlib.util.find_spec(LOOPS[example]) is None:
        pytest.skip(f"integrations: needs {LOOPS[example]}")
    calls = winning_calls(env_id)
    with serve(caller(calls)) as server:
        command = [sys.executable, str(repo / "examples" / example), server.url, "m", env_id]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    assert f"{len(calls)} actions, score 1.00, success True" in done.stdout
    assert all("tools" in body for body in server.bodies)
