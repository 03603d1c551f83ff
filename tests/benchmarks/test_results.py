"""The checked-in baselines: complete, on the tasks that are listed today, and in the table that describes them."""

from __future__ import annotations

import json

import pytest

from seed_benchmarks.baselines import play, results_markdown
from seed_benchmarks.suites import SUITES, find_suite

#: Panels whose rule player stays under 60 %.
HARD = [
    find_suite(f"alfworld/{name}")
    for name in ("unlikely_places", "crowded", "new_layouts", "two_goals", "own_words", "human_valid_seen")
] + [find_suite("search_qa/hops"), find_suite("webshop/combined")]


@pytest.fixture(scope="module")
def results(repo):
    return repo / "benchmarks" / "results"


def test_every_mini_suite_has_its_three_players(results):
    found = {path.stem for path in results.glob("*.json")}
    wanted = {
        f"{suite.name.replace('/', '_')}--{agent}"
        for suite in SUITES
        if suite.name.split("/")[1].startswith("mini")
        for agent in ("oracle", "rule", "random")
    }
    assert wanted <= found


def test_every_result_is_complete_and_says_how_it_was_made(results):
    for path in results.glob("*.json"):
        record = json.loads(path.read_text(encoding="utf-8"))
        assert record["complete"] and record["counts"]["failed"] == 0, path.name
        assert record["command"].startswith(f"seed-bench run --suite {record['suite']} --agent {record['agent']}")
        assert record["counts"]["tasks"] == find_suite(record["suite"]).tasks
        assert record["software"]["python"] and record["hardware"]["cores"]


def test_mini_results_are_on_the_tasks_of_today(results, monkeypatch):
    monkeypatch.delenv("SEED_DATA_DIR", raising=False)
    for path in results.glob("*_mini*--oracle.json"):
        record = json.loads(path.read_text(encoding="utf-8"))
        assert record["manifest"]["sha256"] == find_suite(record["suite"]).load_tasks().sha256, path.name


@pytest.mark.parametrize("suite", HARD, ids=[suite.name for suite in HARD])
def test_hard_panels_leave_room_above_the_rule_and_none_above_the_oracle(results, suite, monkeypatch):
    monkeypatch.delenv("SEED_DATA_DIR", raising=False)
    kept = {
        agent: json.loads((results / f"{suite.name.replace('/', '_')}--{agent}.json").read_text(encoding="utf-8"))
        for agent in ("oracle", "rule", "random")
    }
    assert kept["oracle"]["success"]["rate"] == 1.0
    assert kept["rule"]["success"]["rate"] < 0.6 and kept["random"]["success"]["rate"] < 0.05
    if not suite.name.startswith("alfworld/human"):
        assert {record["manifest"]["sha256"] for record in kept.values()} == {suite.load_tasks().sha256}


def rounded(value):
    """The same without the digits of an interval in which processors differ."""
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [rounded(item) for item in value]
    return round(value, 12) if isinstance(value, float) else value


@pytest.mark.slow
@pytest.mark.parametrize("agent", ["oracle", "rule"])
@pytest.mark.parametrize("suite", HARD, ids=[suite.name for suite in HARD])
def test_hard_panels_played_again_give_the_same_numbers(results, suite, agent, monkeypatch, request):
    if "human" in suite.name:
        monkeypatch.setenv("SEED_DATA_DIR", str(request.getfixturevalue("data_dir")))
    kept = json.loads((results / f"{suite.name.replace('/', '_')}--{agent}.json").read_text(encoding="utf-8"))
    again = rounded(json.loads(json.dumps(play(suite, agent, 1))))
    kept = rounded(kept)
    for field in ("manifest", "prompt", "counts", "stop_reasons", "steps", "by", "measures"):
        assert again[field] == kept.get(field, again[field]), field
    assert again["success"]["solved"] == kept["success"]["solved"]


def test_the_table_is_made_from_the_results(results):
    assert (results / "README.md").read_text(encoding="utf-8") == results_markdown(results)


@pytest.mark.parametrize(("agent", "repeats"), [("rule", 1), ("random", 4)])
@pytest.mark.parametrize(
    "suite", ["alfworld/mini", "webshop/mini_fixed", "search_qa/mini", "sokoban/mini_text", "ezpoints/mini_text"]
)
def test_a_baseline_played_again_gives_the_same_numbers(results, suite, agent, repeats, monkeypatch):
    """Whatever changes a task, a prompt, a rule or a player makes its baselines again."""
    monkeypatch.delenv("SEED_DATA_DIR", raising=False)
    kept = json.loads((results / f"{suite.replace('/', '_')}--{agent}.json").read_text(encoding="utf-8"))
    again = json.loads(json.dumps(play(find_suite(suite), agent, repeats)))
    for field in ("manifest", "prompt", "counts", "stop_reasons", "steps"):
        assert again[field] == kept[field], field
    assert again["success"]["solved"] == kept["success"]["solved"]
    assert again["score"]["mean"] == pytest.approx(kept["score"]["mean"])
