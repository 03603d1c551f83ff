"""verifiers' own evaluator plays our environments through the package it finds by name."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from chat_server import serve, stream

pytest.importorskip("verifiers", reason="integrations: needs verifiers")

from seed_envs.integrations.episode import Episode
from seed_envs.integrations.verifiers import SeedTasksetConfig, SeedVerifiersTaskset

ENV_ID, PROFILE = "seed/Sokoban-v0", "strict-text"


def winning_replies(tasks):
    """What the oracle says to every prompt of the first tasks."""
    episode, replies = Episode(ENV_ID, PROFILE), {}
    for task in episode.tasks("test", tasks):
        messages = episode.reset(task.task_id)
        while not episode.done:
            reply = episode.profile.action_format.format(episode.env.unwrapped.oracle_action())
            replies[messages[-1]["content"]] = reply
            messages = episode.reply(reply)
    return replies


def test_tasks_have_the_first_prompt_and_stable_names():
    taskset = SeedVerifiersTaskset(SeedTasksetConfig(env_id=ENV_ID, profile=PROFILE, split="test", tasks=3))
    tasks = list(taskset)
    assert [task.data.name for task in tasks] == [task.task_id for task in Episode(ENV_ID, PROFILE).tasks("test", 3)]
    assert all(task.data.prompt.startswith(tasks[0].data.prompt[:60]) for task in tasks)


@pytest.mark.slow
def test_vf_eval_plays_whole_episodes_and_records_their_rewards(tmp_path):
    """Slow: its chat loop runs in an environment of its own, which it installs from the package index with uv."""
    replies = winning_replies(3)

    def behave(handler, body, attempt):
        content = body["messages"][-1]["content"]
        text = content if isinstance(content, str) else "".join(part["text"] for part in content)
        handler.answer(stream(replies[text]), headers=[("Content-Type", "text/event-stream")])

    with serve(behave) as server:
        command = [
            str(Path(sys.executable).with_name("vf-eval")),
            "seed-verifiers",
            "-m",
            "m",
            "--no-push",
            "--no-rich",
        ]
        command += ["--env.taskset.env-id", ENV_ID, "--env.taskset.profile", PROFILE, "--env.taskset.split", "test"]
        command += ["--env.taskset.tasks", "3", "--client.base-url", server.url, "--client.api-key-var", "SEED_API_KEY"]
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        variables = {**os.environ, "SEED_API_KEY": "none", "UV_SYSTEM_CERTS": "1", "PATH": path}
        done = subprocess.run(
            [*command, "-o", str(tmp_path)], env=variables, capture_output=True, text=True, cwd=tmp_path, check=False
        )
    if "Failed to fetch" in done.stderr or "uv: not found" in done.stderr:
        pytest.skip("package index: none can be reached, so the chat loop of verifiers cannot be installed")
    assert done.returncode == 0, done.stderr[-3000:]
    (path,) = tmp_path.rglob("traces.jsonl")
    told = path.read_text()
    traces = [record for line in told.splitlines() for record in (json.loads(line),)]
    assert len(server.bodies) == len(replies)
    found = [trace for record in traces for trace in record.get("traces", [record])]
    assert len(found) == 3
    for trace in found:
        assert trace["metrics"]["success"] == 1.0 and trace["metrics"]["score"] == 1.0
        assert trace["info"]["stop_reason"] == "success"
