"""Trainers and evaluators of others against ``seed-serve``: TRL's own GRPO loop, verifiers' own OpenEnv taskset."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import chat_server
import gymnasium as gym
import pytest
from serving import serve

pytest.importorskip("openenv", reason="OpenEnv: not installed")

import seed_envs

gym.register_envs(seed_envs)
SOKOBAN = "seed/Sokoban-v0"


def test_trl_trains_on_games_that_a_server_plays(repo, tmp_path):
    pytest.importorskip("trl", reason="packages: training needs trl")
    with serve("seed/ALFWorld-v0", "--profile", "compact") as server:
        call = [sys.executable, str(repo / "examples" / "10_train_over_a_server.py"), server.root, str(tmp_path)]
        run = subprocess.run(call, capture_output=True, text=True)
        metrics = server.read("/metrics").decode()
    assert run.returncode == 0, run.stderr
    steps = [line for line in run.stdout.splitlines() if line.startswith("step ")]
    assert len(steps) == 2 and not all("gradient 0.00" in line for line in steps), run.stdout
    assert 'seed_episodes_started_total{env="seed/ALFWorld-v0"} 8\n' in metrics


def solution(index):
    """The oracle's moves in a test level, and what they earn."""
    env = gym.make(SOKOBAN)
    env.reset(options={"task_id": env.unwrapped.task_ids("test")[index]})
    moves, total, ended = [], 0.0, False
    while not ended:
        moves.append(env.unwrapped.oracle_action())
        _, reward, terminated, truncated, _ = env.step(moves[-1])
        total, ended = total + reward, terminated or truncated
    return moves, total


@pytest.mark.slow
def test_verifiers_plays_with_its_own_taskset(tmp_path):
    python = os.environ.get("SEED_VERIFIERS_PYTHON")
    if not python:
        pytest.skip("verifiers: not installed")
    solutions = [solution(index) for index in range(2)]

    def speak(handler, body, attempt):
        """Streams the next move; the level is told by its first text."""
        spoken = [message for message in body["messages"] if message["role"] == "assistant"]
        task = json.loads(body["messages"][0]["content"])["observation"]["task_id"]
        answer = chat_server.completion(solutions[int(task.rpartition("/")[2])][0][len(spoken)])
        choice = {"index": 0, "delta": answer["choices"][0]["message"], "finish_reason": "stop"}
        usage = {**answer["usage"], "total_tokens": 13}
        chunk = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.send_header("Connection", "close")
        handler.end_headers()
        for record in (json.dumps(chunk), json.dumps({**chunk, "choices": [], "usage": usage}), "[DONE]"):
            handler.wfile.write(f"data: {record}\n\n".encode())
        handler.close_connection = True

    with serve(SOKOBAN, "--env-arg", "obs_mode=text") as server, chat_server.serve(speak) as model:
        settings = tmp_path / "eval.toml"
        resets = ", ".join(f'{{split = "test", index = {index}}}' for index in range(2))
        settings.write_text(
            f"""model = "m"
push = false
output_dir = "{tmp_path}"
[client]
base_url = "{model.url}"
api_key_var = "MODEL_KEY"
[env.taskset]
id = "openenv"
base_url = "{server.root}/{SOKOBAN}"
resets = [{resets}]
[env.player]
harness = {{id = "null"}}
runtime = {{type = "subprocess"}}
"""
        )
        programs = Path(python).parent
        environment = {**os.environ, "MODEL_KEY": "x", "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
        call = [str(programs / "vf-eval"), "openenv", "@", str(settings)]
        run = subprocess.run(call, capture_output=True, text=True, env=environment, cwd=tmp_path)
    (file,) = tmp_path.glob("*/traces.jsonl")
    episodes = [json.loads(line) for line in file.read_text().splitlines()]
    assert len(episodes) == 2 and all(episode["ok"] for episode in episodes), run.stdout + run.stderr
    earned = sorted(episode["traces"][0]["rewards"]["openenv_reward"]["score"] for episode in episodes)
    assert earned == pytest.approx(sorted(total for _, total in solutions))
