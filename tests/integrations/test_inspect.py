"""``inspect eval`` finds every suite by the name of our package and plays it over HTTP."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import version
from importlib.util import find_spec

import pytest
from chat_server import completion, serve

pytest.importorskip("inspect_ai", reason="integrations: needs inspect_ai")

from inspect_ai.log import read_eval_log

from seed_benchmarks.inspect_tasks import suite_task
from seed_benchmarks.suites import SUITES, find_suite
from seed_envs.integrations.episode import Episode


@pytest.mark.skipif(
    find_spec("openai") is None or int(version("openai").split(".")[0]) < 3,
    reason="integrations: Inspect needs openai>=3.4, which verifiers refuses; install them apart",
)
def test_the_command_plays_a_suite_of_pictures(tmp_path):
    suite = find_suite("ezpoints/mini")
    episode, said = Episode(suite.env_id, suite.profile, **suite.arguments({})), []
    for task_id in list(suite.load_tasks())[:2]:
        episode.reset(task_id)
        while not episode.done:
            said.append(episode.profile.action_format.format(episode.env.unwrapped.oracle_action()))
            episode.reply(said[-1])
    replies = iter(said)

    def behave(handler, body, attempt):
        record = completion(next(replies))
        record["choices"][0]["index"] = 0
        record["usage"]["total_tokens"] = 13
        handler.answer({"id": "1", "object": "chat.completion", "created": 0, "model": "m", **record})

    with serve(behave) as server:
        command = [sys.executable, "-m", "inspect_ai", "eval", "seed_benchmarks/ezpoints_mini"]
        command += ["--model", "openai-api/local/m", "--model-base-url", server.url, "--limit", "2"]
        command += ["--max-samples", "1", "--log-dir", str(tmp_path), "--display", "plain"]
        variables = {**os.environ, "LOCAL_API_KEY": "none"}
        done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, f"{done.stdout[-2000:]}{done.stderr[-2000:]}"
    log = read_eval_log(next(str(path) for path in tmp_path.glob("*.eval")))
    assert log.status == "success" and len(server.bodies) == len(said)
    assert {score.name: score.metrics["mean"].value for score in log.results.scores} == {"success": 1.0, "score": 1.0}
    asked = server.bodies[0]["messages"][-1]["content"]
    assert [part["type"] for part in asked] == ["image_url", "text"]
    assert asked[0]["image_url"]["url"].startswith("data:image/png;base64,")
    assert json.dumps(server.bodies[1]).count("image_url") <= 2 * len(said)


def test_every_suite_is_a_task():
    from inspect_ai._util.registry import registry_lookup

    assert all(registry_lookup("task", f"seed_benchmarks/{suite.name.replace('/', '_')}") for suite in SUITES)
    assert len(suite_task("sokoban/mini_text").dataset) == 64
