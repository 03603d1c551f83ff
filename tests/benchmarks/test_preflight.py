"""``seed-bench run`` before its first episode: what is refused, what is said, and that a run is the same after it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from chat_server import completion, serve
from ladder_env import suite_record

from seed_benchmarks.cli import main
from seed_benchmarks.records import read_transcripts

TINY = Path(__file__).parents[2] / "seed_trainer" / "tiny" / "models" / "alfworld-tiny"


def run(capsys, *arguments):
    code = main(["run", *map(str, arguments)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.fixture
def suite(tmp_path):
    path = tmp_path / "ladder.json"
    path.write_text(json.dumps(suite_record()))
    return path


@pytest.fixture(autouse=True)
def no_pause(monkeypatch):
    monkeypatch.setattr("seed_envs.endpoints.probe.PAUSE", 0.0)


def test_a_text_model_on_a_picture_suite(capsys, tmp_path):
    pytest.importorskip("transformers", reason="packages: local models need transformers (extra: train)")
    out = tmp_path / "run"
    for more in ([], ["--dry-run"]):
        code, _, err = run(
            capsys, "--suite", "sokoban/mini", "--agent", f"hf:{TINY}", "--limit", 1, "--out", out, *more
        )
        assert code == 2 and "reads text alone, and profile 'strict' shows pictures: use --profile strict-text" in err
        assert "Loading weights" not in err, "a log is no place for a bar"
    assert not out.exists()


def test_a_local_model_plays_the_same_after_the_preflight(capsys, tmp_path):
    pytest.importorskip("transformers", reason="packages: local models need transformers (extra: train)")
    what = ["--suite", "alfworld/mini", "--profile", "compact", "--agent", f"hf:{TINY}", "--limit", 2, "--max-steps", 3]
    what += ["--max-new-tokens", 10, "--temperature", 1, "--quiet"]
    played = []
    for name, more in (("with", []), ("without", ["--no-preflight"])):
        code, _, err = run(capsys, *what, "--out", tmp_path / name, *more)
        assert code == 0, err
        transcripts = [transcript for _, transcript in read_transcripts(tmp_path / name / "episodes.jsonl")]
        played.append([[step["reply"] for step in transcript["steps"]] for transcript in transcripts])
    assert played[0] == played[1]


def test_a_prompt_that_does_not_fit(capsys, tmp_path):
    pytest.importorskip("transformers", reason="packages: local models need transformers (extra: train)")
    what = ["--suite", "alfworld/mini", "--agent", f"hf:{TINY}", "--max-prompt-tokens", 8, "--out", tmp_path / "run"]
    code, _, err = run(capsys, *what, "--max-new-tokens", 10)
    assert code == 2 and "at most 8 fit" in err and "raise --max-prompt-tokens" in err


def test_a_port_where_nothing_listens(capsys, suite, tmp_path):
    pytest.importorskip("httpx", reason="packages: the endpoint agent needs httpx")
    what = ["--suite", suite, "--agent", "openai:m@http://127.0.0.1:9/v1", "--out", tmp_path / "run"]
    code, _, err = run(capsys, *what)
    assert code == 2 and "retrying" in err and "nothing answers at http://127.0.0.1:9/v1" in err
    assert not (tmp_path / "run").exists()


def test_two_questions_before_the_run_and_a_remark_about_its_answer(capsys, suite, tmp_path):
    pytest.importorskip("httpx", reason="packages: the endpoint agent needs httpx")

    def behave(handler, body, attempt):
        handler.answer({"data": [{"id": "m"}]} if body is None else completion("nothing of use"))

    with serve(behave) as server:
        what = ["--suite", suite, "--agent", f"openai:m@{server.url}", "--limit", 1, "--max-steps", 1]
        code, out, _ = run(capsys, *what, "--dry-run")
        assert code == 0 and '"planned": 1' in out
        asked = ["/v1/models", "/v1/chat/completions", "/api/ps", "/v1/chat/completions"]
        assert [path for _, path, _, _ in server.seen] == asked
        code, out, _ = run(capsys, *what, "--out", tmp_path / "run", "--quiet")
        assert code == 0 and len(server.seen) == 4 + 4 + 2, "the same questions, the model's identity, one turn"


def test_a_run_tells_that_the_endpoint_is_asked_again(capsys, suite, tmp_path):
    pytest.importorskip("httpx", reason="packages: the endpoint agent needs httpx")

    def behave(handler, body, attempt):
        handler.answer(completion("up")) if attempt > 1 else handler.answer({"error": "still loading"}, 503)

    with serve(behave) as server:
        what = ["--suite", suite, "--agent", f"openai:m@{server.url}", "--limit", 3, "--max-steps", 1, "--no-preflight"]
        code, _, err = run(capsys, *what, "--out", tmp_path / "run", "--quiet")
    assert code == 0 and err.count("retrying in") == 1 and "HTTP 503" in err and "attempt 1 of " in err


def test_a_resumed_run_is_checked_while_there_is_something_to_play(capsys, suite, tmp_path):
    pytest.importorskip("httpx", reason="packages: the endpoint agent needs httpx")
    out = tmp_path / "run"

    def behave(handler, body, attempt):
        handler.answer({"data": [{"id": "m"}]} if body is None else completion("up"))

    with serve(behave) as server:
        what = ["--suite", suite, "--agent", f"openai:m@{server.url}", "--limit", 1, "--max-steps", 1, "--retries", 0]
        assert run(capsys, *what, "--out", out, "--quiet")[0] == 0
    assert run(capsys, "--resume", out)[0] == 0, "nothing is left to play, and nobody is asked"
    (out / "episodes.jsonl").write_text("")
    code, _, err = run(capsys, "--resume", out)
    assert code == 2 and "nothing answers" in err
    assert run(capsys, "--resume", out, "--no-preflight")[0] == 1


def test_an_output_folder_is_looked_at_before_a_model_is_loaded(capsys, suite, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    code, _, err = run(capsys, "--suite", suite, "--agent", "hf:./no/such/model", "--out", blocked / "run")
    assert code == 2 and "--out" in err and "cannot be written" in err
