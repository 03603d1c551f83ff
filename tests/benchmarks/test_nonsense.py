"""Environments and agents that answer nonsense cost their own episodes: typed, counted apart, the run goes on."""

from __future__ import annotations

import pytest
from nonsense_env import SCORED, TASKS, suite_record

from seed_benchmarks.agents.base import vet_replies
from seed_benchmarks.cli import main
from seed_benchmarks.config import AgentSettings, RunConfig
from seed_benchmarks.heads import read_run
from seed_benchmarks.records import read_transcripts
from seed_benchmarks.runner import resume_run, start_run
from seed_benchmarks.suite import Suite
from seed_envs.rollout import Reply


def play(folder, agent, prefix="", **options):
    suite = Suite.from_json(suite_record(prefix=prefix))
    return start_run(RunConfig(suite, AgentSettings(agent), **options), folder)


@pytest.mark.parametrize("workers", [0, 1])
def test_every_odd_answer_of_an_environment_costs_its_own_episode(tmp_path, workers):
    result = play(tmp_path / "run", "oracle", num_workers=workers)
    records = {record.task_id: record for record in read_run(result.folder)}
    assert set(records) == set(TASKS)
    assert {task for task, record in records.items() if record.scored} == set(SCORED)
    errors = {task: record.error["type"] for task, record in records.items() if record.error}
    assert {errors[task] for task in ("nan", "inf", "too_high", "score_nan", "no_family", "bored")} == {"InvalidStep"}
    assert "the score 2.0; expected a number from 0 to 1" in records["too_high"].error["message"]
    assert errors["exits"] == errors["exits_early"] == "SystemExit"
    assert errors["unspeakable"] == "Unspeakable"
    assert result.outcome == "incomplete" and result.summary["success"]["rate"] == 1.0
    assert len(list(read_transcripts(result.folder.episodes))) == len(TASKS)
    assert main(["view", str(result.folder.path)]) == 1


@pytest.mark.parametrize(
    ("agent", "complaint"),
    [
        ("no_text", "text: NoneType"),
        ("number_as_text", "text: int"),
        ("usage_in_words", "'usage']: 'lots', expected a mapping"),
        ("negative_usage", "prompt_tokens: -3"),
        ("usage_of_nothing", "prompt_tokens: None"),
        ("cost_nan", "cost: nan"),
        ("no_meta", "NoneType"),
        ("a_list", "returned list"),
        ("exits", "0"),
        ("raises_unspeakably", "its text cannot be made"),
    ],
)
def test_every_odd_reply_of_an_agent_costs_its_own_episode(tmp_path, agent, complaint):
    result = play(tmp_path / "run", f"python:nonsense_env:{agent}", prefix="fine")
    (record,) = read_run(result.folder)
    assert record.stop_reason == "policy_error"
    assert complaint in record.error["message"]
    assert result.outcome == "incomplete" and result.summary["success"]["rate"] is None
    assert resume_run(result.folder.path).outcome == "incomplete"


def test_a_meta_without_an_end_is_cut_off(tmp_path):
    result = play(tmp_path / "run", "python:nonsense_env:endless_meta", prefix="fine")
    assert result.outcome == "complete"
    ((_, transcript),) = read_transcripts(result.folder.episodes)
    assert "nested too deeply" in str(transcript["steps"][0]["meta"])


def test_the_wrong_number_of_replies_is_nobodys():
    with pytest.raises(ValueError, match="2 replies to 3 requests"):
        vet_replies([Reply("a"), Reply("b")], 3)
