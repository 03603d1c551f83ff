"""A run that goes on is the run it was, or says what has changed; it may move, and it stops when all is lost."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from ladder_env import suite_record

from seed_benchmarks.agents.base import make_agent
from seed_benchmarks.breaker import Breaker, Stopped
from seed_benchmarks.config import AgentSettings, RunConfig
from seed_benchmarks.errors import ConfigInvalid, RecordsInvalid, RunFolderInvalid
from seed_benchmarks.identity import hash_files
from seed_benchmarks.merge import merge_runs
from seed_benchmarks.options import moved
from seed_benchmarks.records import EpisodeRecord, read_heads
from seed_benchmarks.repair import repair_run
from seed_benchmarks.runner import resume_run, start_run, summarise_folder
from seed_benchmarks.suite import Suite


def _config(agent: str = "python:ladder_env:climb", **options: object) -> RunConfig:
    return RunConfig(Suite.from_json(suite_record()), AgentSettings(agent), **{"limit": 3, **options})  # type: ignore[arg-type]


def _edit(path: Path, *keys: str, value: object) -> None:
    record = json.loads(path.read_text())
    place = record
    for key in keys[:-1]:
        place = place[key]
    place[keys[-1]] = value
    path.write_text(json.dumps(record))


@pytest.mark.parametrize(
    ("file", "keys", "value", "field"),
    [
        ("config.json", ("run", "agent", "temperature"), 1.5, "agent.temperature"),
        ("config.json", ("run", "max_steps"), 3, "max_steps"),
        ("config.json", ("run", "suite", "env_kwargs"), {"pause": 0.001}, "suite.env_kwargs"),
        ("logs/attempt_1/attempt.json", ("identity", "model", "source"), "0" * 64, "model.source"),
        (
            "logs/attempt_1/attempt.json",
            ("identity", "software", "packages", "numpy"),
            "1.0",
            "software.packages.numpy",
        ),
        ("logs/attempt_1/attempt.json", ("identity", "software", "seed_envs"), "0.0.1", "software.seed_envs"),
    ],
)
def test_what_changes_scores_is_refused_until_it_is_accepted(
    tmp_path: Path, file: str, keys: tuple[str, ...], value: object, field: str
) -> None:
    out = tmp_path / "run"
    start_run(_config(), out)
    _edit(out / file, *keys, value=value)
    with pytest.raises(RunFolderInvalid, match=rf"{field}.* was .*, is .*--accept-change {field}"):
        resume_run(out)
    assert len(list((out / "logs").iterdir())) == 1, "a refused attempt leaves nothing"
    resume_run(out, accepted=[field.rpartition(".")[0] or field])
    attempts = summarise_folder_attempts(out)
    assert [attempt["attempt"] for attempt in attempts] == [1, 2]
    assert all(attempt["software"]["python"] for attempt in attempts)
    resume_run(out)


def summarise_folder_attempts(out: Path) -> list[dict[str, Any]]:
    from seed_benchmarks.folder import RunFolder

    attempts: list[dict[str, Any]] = summarise_folder(RunFolder(out))["attempts"]
    return attempts


def test_another_function_under_the_same_name_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib
    import sys

    monkeypatch.syspath_prepend(tmp_path)
    module = tmp_path / "my_player_of_today.py"
    module.write_text("def play(request):\n    return 'no'\n")
    start_run(_config("python:my_player_of_today:play"), tmp_path / "run")
    module.write_text("def play(request):\n    return 'yes, yes'\n")
    importlib.invalidate_caches()
    del sys.modules["my_player_of_today"]
    with pytest.raises(RunFolderInvalid, match=r"--accept-change model\.source"):
        resume_run(tmp_path / "run")


def test_a_model_folder_is_known_by_its_files(tmp_path: Path) -> None:
    first, second = tmp_path / "a.bin", tmp_path / "b.bin"
    first.write_bytes(b"weights")
    second.write_bytes(b"more")
    before = hash_files([first, second])
    assert before == hash_files([second, first])
    second.write_bytes(b"mord")
    assert hash_files([first, second]) != before


def test_weights_overwritten_between_attempts_are_noticed(tmp_path: Path, repo: Path) -> None:
    pytest.importorskip("transformers", reason="packages: local models need transformers")
    import shutil

    model = tmp_path / "model"
    shutil.copytree(repo / "seed_trainer" / "tiny" / "models" / "alfworld-tiny", model)
    config = _config(f"hf:{model}")
    config = dataclasses.replace(
        config, agent=dataclasses.replace(config.agent, max_new_tokens=4), limit=1, max_steps=1
    )
    start_run(config, tmp_path / "run")
    identity = json.loads((tmp_path / "run/logs/attempt_1/attempt.json").read_text())["identity"]["model"]
    assert set(identity) == {"chat_template", "weights", "tokenizer", "settings"}
    (weights,) = model.glob("*.safetensors")
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(bytes(data))
    with pytest.raises(RunFolderInvalid, match=r"model\.weights was"):
        resume_run(tmp_path / "run")


def test_weights_that_are_not_float32_get_a_remark(repo: Path) -> None:
    pytest.importorskip("transformers", reason="packages: local models need transformers")
    from ladder_env import PROFILES

    model = repo / "seed_trainer" / "tiny" / "models" / "alfworld-tiny"
    for dtype, remarks in (("bfloat16", 1), ("float32", 0)):
        said: list[str] = []
        agent = make_agent(AgentSettings(f"hf:{model}", dtype=dtype), PROFILES["paper"])
        agent.contestant(said.append)  # type: ignore[attr-defined]
        agent.close()
        assert len(said) == remarks and all("--batch-size 1" in text for text in said)


def test_joined_parts_go_on_as_a_whole(tmp_path: Path) -> None:
    for part in (1, 2):
        start_run(_config(shard=(part, 2)), tmp_path / f"part_{part}")
    journal = tmp_path / "part_2" / "episodes.jsonl"
    journal.write_bytes(b"")
    joined = merge_runs([tmp_path / "part_1", tmp_path / "part_2"], tmp_path / "whole")
    assert joined.outcome == "incomplete"
    assert resume_run(tmp_path / "whole").outcome == "complete"


def test_a_run_may_move_but_not_change() -> None:
    stored = _config("openai:m@http://127.0.0.1:1/v1")
    there = moved(stored, {"url": "http://127.0.0.1:2/v1?api-version=3", "retries": 2, "num_workers": 4})
    assert there.agent.spec == "openai:m@http://127.0.0.1:2/v1?api-version=3"
    assert (there.agent.retries, there.num_workers, there.limit) == (2, 4, 3)
    with pytest.raises(ConfigInvalid, match="--max-new-tokens could change"):
        moved(stored, {"max_new_tokens": 9})


def _record(index: int, message: str = "", scored: bool = False) -> EpisodeRecord:
    error = None if scored else {"type": "EndpointFailed", "message": message}
    stop = "success" if scored else "policy_error"
    return EpisodeRecord(index, f"t/{index}", 0, 0, 1, "env", stop_reason=stop, error=error)


def test_equal_failures_in_a_row_stop_a_run() -> None:
    breaker = Breaker(_config(max_equal_failures=3), planned=100, todo=100)
    for record in (
        _record(0, "down 1"),
        _record(1, "down 2"),
        _record(2, scored=True),
        _record(3, "down"),
        _record(4, "x"),
    ):
        breaker.count(record)
    breaker.count(_record(5, "down at port 80"))
    breaker.count(_record(6, "down at port 81"))
    with pytest.raises(Stopped, match="3 episodes in a row.*down at port 82.*whether the server still runs.*--url"):
        breaker.count(_record(7, "down at port 82"))


def test_the_last_failures_of_a_run_stop_nothing_and_zero_never_does() -> None:
    last = Breaker(_config(max_equal_failures=2), planned=2, todo=2)
    never = Breaker(_config(max_equal_failures=0), planned=9, todo=9)
    for index in range(2):
        last.count(_record(index, "down"))
    for index in range(8):
        never.count(_record(index, "down"))


def test_a_stopped_run_says_why_and_goes_on(tmp_path: Path) -> None:
    result = start_run(_config("python:ladder_env:nobody_home", limit=9, max_equal_failures=4), tmp_path / "run")
    assert result.outcome == "stopped" and "nobody is home" in result.reason
    assert result.summary["counts"]["failed"] == 4 and result.summary["attempts"][0]["error"] == result.reason


def _damage(journal: Path, number: int, line: bytes) -> list[bytes]:
    lines = journal.read_bytes().splitlines()
    lines[number] = line
    journal.write_bytes(b"".join(each + b"\n" for each in lines))
    return lines


@pytest.mark.parametrize("line", [b"", b"{", b'{"index": 1}', b"\xff\xfe"])
def test_a_damaged_line_names_the_remedy_which_works(tmp_path: Path, line: bytes) -> None:
    out = tmp_path / "run"
    journal = start_run(_config(), out).folder.episodes
    whole = journal.read_bytes()
    damaged = _damage(journal, 1, line)
    with pytest.raises(RecordsInvalid, match=rf"line 2.*seed-bench repair {out}"):
        resume_run(out)
    done = repair_run(out)
    assert done.kept == 2 and "line 2" in done.faults[0]
    assert done.copy is not None and done.copy.read_bytes() == b"".join(each + b"\n" for each in damaged)
    assert resume_run(out).outcome == "complete"
    assert {record.key for record in read_heads(journal)} == {
        (json.loads(each)["task_id"], json.loads(each)["repeat"]) for each in whole.splitlines()
    }
    assert repair_run(out).copy is None


def test_a_torn_transcript_behind_a_whole_head_is_taken_out(tmp_path: Path) -> None:
    journal = start_run(_config(), tmp_path / "run").folder.episodes
    _damage(journal, 0, journal.read_bytes().splitlines()[0][:-20])
    assert "transcript" in repair_run(tmp_path / "run").faults[0]
    assert resume_run(tmp_path / "run").outcome == "complete"


def test_two_contradicting_scores_are_refused_and_both_taken_out(tmp_path: Path) -> None:
    out = tmp_path / "run"
    folder = start_run(_config(), out).folder
    record = json.loads(folder.episodes.read_bytes().splitlines()[0])
    with folder.episodes.open("ab") as file:
        file.write(json.dumps({**record, "success": not record["success"]}).encode() + b"\n")
    with pytest.raises(RecordsInvalid, match="has two outcomes.*seed-bench repair"):
        summarise_folder(folder)
    assert repair_run(out).kept == 2
    assert resume_run(out).outcome == "complete"


def test_tokens_of_replaced_attempts_were_paid_for(tmp_path: Path) -> None:
    folder = start_run(_config(), tmp_path / "run").folder
    lines = []
    for number, line in enumerate(folder.episodes.read_bytes().splitlines()):
        record = {**json.loads(line), "prompt_tokens": 10, "completion_tokens": 2, "cost": 0.5}
        if number == 0:
            failed = {"stop_reason": "policy_error", "error": {"type": "E", "message": "m", "traceback": ""}}
            lines.append({**record, **failed})
        lines.append(record)
    folder.episodes.write_text("".join(json.dumps(record) + "\n" for record in lines))
    assert summarise_folder(folder)["tokens"] == {"prompt": 40, "completion": 8, "cost": 2.0}


def test_agents_describe_what_identifies_them() -> None:
    from ladder_env import PROFILES

    agent = make_agent(AgentSettings("python:ladder_env:climb"), PROFILES["paper"])
    assert len(agent.describe()["identity"]["source"]) == 64
