"""Runs: every planned episode once, faults typed and apart, the same results however the work is spread."""

from __future__ import annotations

import json

import pytest
from ladder_env import GOOD, suite_record

from seed_benchmarks.config import AgentSettings, RunConfig
from seed_benchmarks.errors import ConfigInvalid, RunFolderInvalid, RunLocked, UnknownAgent
from seed_benchmarks.records import read_heads, read_transcripts
from seed_benchmarks.runner import resume_run, start_run
from seed_benchmarks.suite import Suite
from seed_envs.errors import DataInvalid
from seed_envs.journal import Journal


def config(agent="oracle", split="good", agent_options=None, suite=None, **options):
    settings = AgentSettings(agent, **(agent_options or {}))
    return RunConfig(Suite.from_json(suite or suite_record(split)), settings, **options)


def outcomes(folder):
    """What an episode's line says, without times and attempts."""
    found = {}
    for record, transcript in read_transcripts(folder / "episodes.jsonl"):
        steps = [{key: value for key, value in step.items() if key != "seconds"} for step in transcript["steps"]]
        error = record.error and (record.error["type"], record.error["message"])
        assert record.key not in found, "an episode is there twice"
        found[record.key] = (
            *(record.index, record.seed, record.success, record.score, record.stop_reason, error),
            *(steps, transcript["final_observation"], transcript["extras"]),
        )
    return found


def test_the_oracle_solves_every_task_and_the_run_is_complete(tmp_path):
    result = start_run(config(), tmp_path / "run", ["seed-bench", "run"])
    assert result.outcome == "complete"
    assert result.summary["success"]["rate"] == 1.0
    assert [record.task_id for record in read_heads(tmp_path / "run" / "episodes.jsonl")] == list(GOOD)
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["counts"] == {"planned": 24, "scored": 24, "failed": 0, "missing": 0, "tasks": 24}
    assert [family["n"] for family in summary["families"]] == [12, 12]
    saved = json.loads((tmp_path / "run" / "config.json").read_text())
    assert saved["manifest"]["sha256"] == summary["manifest"]["sha256"]
    assert len(saved["prompt"]["sha256"]) == 64
    assert saved["software"]["python"] and saved["hardware"]["cores"] and saved["command"] == ["seed-bench", "run"]
    assert saved["environment"]["spec"]["kwargs"] == {"split": "good"}
    assert RunConfig.from_json(saved["run"]) == config()


def test_every_message_action_and_reward_is_in_the_line(tmp_path):
    start_run(config("python:ladder_env:climb", limit=1), tmp_path / "run")
    ((record, transcript),) = read_transcripts(tmp_path / "run" / "episodes.jsonl")
    assert record.steps == len(transcript["steps"]) in (2, 4)
    first, second = transcript["steps"][:2]
    assert first["messages"][0]["content"].startswith("Task: Reach the top.\nYou stand below the ladder.")
    assert first["reply"].endswith(f"<action>{first['action']}</action>")
    assert "You climb." in second["messages"][0]["content"]
    assert transcript["steps"][-1]["reward"] == 1.0
    assert set(first["seconds"]) == {"policy", "env"}


def test_a_growing_conversation_is_stored_once_and_read_back_whole(tmp_path):
    start_run(config("python:ladder_env:climb", profile="growing"), tmp_path / "run")
    line = (tmp_path / "run" / "episodes.jsonl").read_text().splitlines()[-1]
    assert line.count("Task: Reach the top.") == 1
    _, transcript = list(read_transcripts(tmp_path / "run" / "episodes.jsonl"))[-1]
    roles = [[message["role"] for message in step["messages"]] for step in transcript["steps"]]
    assert roles[:2] == [["system", "user"], ["system", "user", "assistant", "user"]]
    assert transcript["steps"][1]["messages"][2]["content"] == transcript["steps"][0]["reply"]


SPREADS = {
    "one process": {},
    "batches": {"batch_size": 5},
    "two workers": {"num_workers": 2},
}


@pytest.mark.parametrize("agent", ["random", "python:ladder_env:stumble"])
def test_results_do_not_depend_on_how_the_work_is_spread(tmp_path, agent):
    found = []
    for number, options in enumerate(SPREADS.values()):
        start_run(config(agent, repeats=2, seed=7, **options), tmp_path / str(number))
        found.append(outcomes(tmp_path / str(number)))
    assert len(found[0]) == 48
    assert found[1] == found[0]
    assert found[2] == found[0]
    start_run(config(agent, repeats=2, seed=8), tmp_path / "seed")
    assert outcomes(tmp_path / "seed") != found[0]


def test_faults_are_typed_counted_apart_and_never_scored(tmp_path):
    suite = suite_record("bad", env_kwargs={"hang_seconds": 600})
    result = start_run(config(suite=suite, num_workers=1, timeout=8.0), tmp_path / "run")
    records = {record.task_id: record for record in read_heads(tmp_path / "run" / "episodes.jsonl")}
    assert len(records) == 7
    assert {task: record.stop_reason for task, record in records.items() if not record.scored} == {
        "crash/0": "env_error",
        "exit/0": "env_error",
        "hang/0": "timeout",
    }
    assert records["crash/0"].error["type"] == "RuntimeError"
    assert "the ladder broke" in records["crash/0"].error["traceback"]
    assert records["exit/0"].error["message"] == "the worker process ended after 1 replies (exit code 7)"
    assert records["hang/0"].error["type"] == "WorkerTimeout"
    summary = result.summary
    assert result.outcome == "incomplete"
    assert (summary["counts"]["scored"], summary["counts"]["failed"]) == (4, 3)
    assert summary["success"]["rate"] == 1.0
    assert summary["success"]["rate_if_errors_fail"] == pytest.approx(4 / 7)
    assert summary["errors"] == {"RuntimeError": 1, "WorkerDied": 1, "WorkerTimeout": 1}
    transcripts = {record.task_id: found for record, found in read_transcripts(tmp_path / "run" / "episodes.jsonl")}
    (last_words,) = transcripts["exit/0"]["steps"]
    assert last_words["reply"].startswith("<action>up ")


def test_a_model_agents_environments_are_isolated_too(tmp_path, monkeypatch):
    import seed_benchmarks.agents.functions as functions
    from seed_benchmarks.agents.base import Placement

    monkeypatch.setattr(functions.FunctionAgent, "placement", Placement.BATCH)
    suite = suite_record("bad", env_kwargs={"hang_seconds": 600})
    start_run(config("python:ladder_env:climb", suite=suite, num_workers=3, timeout=8.0), tmp_path / "run")
    records = {record.task_id: record for record in read_heads(tmp_path / "run" / "episodes.jsonl")}
    errors = {task: record.error["type"] for task, record in records.items() if record.error}
    assert errors == {"crash/0": "RuntimeError", "exit/0": "WorkerDied", "hang/0": "WorkerTimeout"}
    assert sum(record.success for record in records.values()) == 4


def test_resume_plays_what_is_missing_or_failed_and_nothing_else(tmp_path):
    start_run(config("python:ladder_env:stumble"), tmp_path / "run")
    path = tmp_path / "run" / "episodes.jsonl"
    before = {record.key: record for record in read_heads(path)}
    failed = {key for key, record in before.items() if not record.scored}
    assert 0 < len(failed) < 24
    lines = path.read_bytes().splitlines(keepends=True)
    gone = next(record.key for record in before.values() if record.scored)
    kept = [line for line in lines if json.loads(line)["task_id"] != gone[0]]
    path.write_bytes(b"".join(kept) + lines[0][:40])
    result = resume_run(tmp_path / "run")
    again = [record.key for record in read_heads(path) if record.attempt == 2]
    assert set(again) == failed | {gone} and len(again) == len(failed) + 1
    assert result.summary["superseded_records"] == len(failed)
    assert result.summary["attempts"][1]["torn_bytes"] == 40
    assert (tmp_path / "run" / "logs" / "attempt_2" / "run.log").read_text().count("ERROR") == len(failed)


def test_a_complete_run_resumes_to_itself(tmp_path):
    start_run(config(), tmp_path / "run")
    before = (tmp_path / "run" / "episodes.jsonl").read_bytes()
    assert resume_run(tmp_path / "run").outcome == "complete"
    assert (tmp_path / "run" / "episodes.jsonl").read_bytes() == before


def test_fail_on_error_stops_early(tmp_path):
    result = start_run(config("python:ladder_env:stumble", fail_on_error=2), tmp_path / "run")
    assert result.outcome == "stopped"
    assert result.summary["counts"]["failed"] == 2
    assert result.summary["counts"]["missing"] > 0
    share = start_run(config("python:ladder_env:stumble", fail_on_error=0.04), tmp_path / "share")
    assert share.summary["counts"]["failed"] == 1


def test_pictures_are_files_beside_the_journal(tmp_path):
    suite = suite_record(env_kwargs={"image": True})
    start_run(config(suite=suite, limit=2), tmp_path / "run")
    _, transcript = next(read_transcripts(tmp_path / "run" / "episodes.jsonl"))
    part = transcript["steps"][1]["messages"][0]["content"][0]
    assert (part["type"], part["size"]) == ("image", [8, 8])
    from PIL import Image

    assert Image.open(tmp_path / "run" / part["file"]).getpixel((0, 0)) == (40, 40, 40)


def test_a_folder_in_use_is_refused(tmp_path):
    start_run(config(limit=1), tmp_path / "run")
    with pytest.raises(RunFolderInvalid, match="--resume"):
        start_run(config(limit=1), tmp_path / "run")
    with Journal(tmp_path / "run" / "episodes.jsonl"), pytest.raises(RunLocked, match="another process"):
        resume_run(tmp_path / "run")
    with pytest.raises(RunFolderInvalid, match="holds no run"):
        resume_run(tmp_path)


def test_resume_refuses_other_tasks_or_another_prompt(tmp_path):
    start_run(config(limit=1), tmp_path / "run")
    path = tmp_path / "run" / "config.json"
    saved = json.loads(path.read_text())
    for part in ("manifest", "prompt"):
        path.write_text(json.dumps({**saved, part: {**saved[part], "sha256": "0" * 64}}))
        with pytest.raises(RunFolderInvalid, match=f"the {part} has changed"):
            resume_run(tmp_path / "run")


def test_suites_that_list_a_task_twice_or_the_wrong_number_are_refused(tmp_path):
    with pytest.raises(DataInvalid, match="twice"):
        start_run(config(split="twice"), tmp_path / "a")
    with pytest.raises(DataInvalid, match="has 99 tasks"):
        start_run(config(suite=suite_record(tasks=99)), tmp_path / "b")
    with pytest.raises(ConfigInvalid, match="no list"):
        start_run(config(split="endless"), tmp_path / "c")
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"repeats": 0}, "repeats=0"),
        ({"shard": (3, 2)}, "shard=3/2"),
        ({"timeout": 1.0}, "--num-workers"),
        ({"executor": "slurm"}, "'local' or 'ray'"),
        ({"limit": 0}, "limit=0"),
    ],
)
def test_contradictions_are_refused(options, message):
    with pytest.raises(ConfigInvalid, match=message):
        config(**options)


@pytest.mark.parametrize(
    ("agent", "message"),
    [
        ("orakle", "Did you mean 'oracle'"),
        ("hf:", "incomplete"),
        ("hf:/nope/model", "there is no folder /nope/model"),
        ("hf:./nope", "there is no folder ./nope"),
        ("hf:builtin/alfworld-tiny", "builtin/ is a prefix of seed-train"),
        ("oracle:x", "nothing after the colon"),
        ("python:ladder_env", "MODULE:FUNCTION"),
        ("python:ladder_env:no", "cannot be imported"),
        ("python:ladder_env:GOOD", "not a function"),
    ],
)
def test_agents_that_cannot_be_read_are_refused(tmp_path, agent, message):
    with pytest.raises(UnknownAgent, match=message):
        start_run(config(agent), tmp_path / "run")


def test_skill_prompt_reaches_the_prompt_by_task_type(tmp_path):
    (tmp_path / "skills.json").write_text(json.dumps({"short": "Two steps.", "*": "Look first."}))
    options = {"skill_prompt": str(tmp_path / "skills.json")}
    start_run(config("oracle", agent_options=options), tmp_path / "run")
    for record, transcript in read_transcripts(tmp_path / "run" / "episodes.jsonl"):
        expected = "Two steps." if record.task_type == "short" else "Look first."
        assert all(expected in step["messages"][0]["content"] for step in transcript["steps"])
    with pytest.raises(ConfigInvalid, match="cannot be read"):
        start_run(config(agent_options={"skill_prompt": str(tmp_path / "none.txt")}), tmp_path / "other")
