"""The table of suites: panels of the right size, mini suites that need nothing, data that is named when missing."""

from __future__ import annotations

import json

import pytest

from seed_benchmarks.config import AgentSettings, RunConfig
from seed_benchmarks.errors import ConfigInvalid, UnknownSuite
from seed_benchmarks.runner import start_run
from seed_benchmarks.suite import Suite, load_suite
from seed_benchmarks.suites import SUITES, choose_suites, find_suite
from seed_envs.alfworld.tasks import manifest
from seed_envs.errors import DataInvalid, DataMissing, SeedEnvsError

MINI = [suite for suite in SUITES if suite.name.split("/")[1].startswith("mini")]


def test_the_papers_panels_are_there_with_their_sizes():
    sizes = {suite.name: suite.tasks for suite in SUITES}
    assert len(sizes) == len(SUITES)
    assert (sizes["alfworld/valid_seen"], sizes["alfworld/valid_unseen"]) == (140, 134)
    assert (sizes["webshop/test_128"], sizes["webshop/test"]) == (128, 500)
    sets = ("nq", "triviaqa", "popqa", "hotpotqa", "2wikimultihopqa", "musique", "bamboogle")
    assert sum(sizes[f"search_qa/{name}"] for name in sets) == sizes["search_qa/all"] == 51_713
    families = {suite.name.split("/")[0] for suite in SUITES}
    assert {suite.name.split("/")[0] for suite in MINI} == families


@pytest.mark.parametrize("suite", MINI, ids=[suite.name for suite in MINI])
def test_mini_suites_work_without_any_data(suite, tmp_path, monkeypatch):
    monkeypatch.delenv("SEED_DATA_DIR", raising=False)
    run = RunConfig(suite, AgentSettings("oracle"), limit=3, profile=suite.profile)
    result = start_run(run, tmp_path / "run")
    assert result.outcome == "complete"
    assert result.summary["success"]["rate"] == 1.0
    assert result.summary["manifest"]["tasks"] == suite.tasks
    assert len(result.summary["prompt"]["sha256"]) == 64


@pytest.mark.parametrize(
    ("name", "task"), [("alfworld/valid_seen", 140), ("webshop/test", 500), ("webshop/test_128", 128)]
)
def test_official_panels_have_their_tasks(name, task, data_dir, monkeypatch):
    monkeypatch.setenv("SEED_DATA_DIR", str(data_dir))
    assert len(find_suite(name).load_tasks()) == task


def test_missing_data_is_named_with_the_way_out(tmp_path, monkeypatch):
    monkeypatch.setenv("SEED_DATA_DIR", str(tmp_path))
    monkeypatch.delenv("ALFWORLD_DATA", raising=False)
    with pytest.raises(DataMissing, match="alfworld"):
        find_suite("alfworld/valid_seen").load_tasks()
    with pytest.raises(DataMissing, match="python -m seed_envs.alfworld download"):
        find_suite("alfworld/valid_unseen").load_tasks()
    with pytest.raises(DataMissing, match="--env-arg questions=PATH"):
        find_suite("search_qa/nq").load_tasks()


def test_the_panel_of_new_scenes_has_the_published_tasks(tmp_path):
    listed = manifest("valid_unseen")
    for task_id in listed:
        game = tmp_path / "json_2.1.1" / task_id / "game.tw-pddl"
        game.parent.mkdir(parents=True)
        game.write_text("{}")
    tasks = find_suite("alfworld/valid_unseen").load_tasks(env_kwargs={"data_dir": str(tmp_path)})
    assert tasks.ids == listed.ids
    assert tasks.sha256 == "07ecc1cbf51299c2780b2e8e3379eace1a0e081269da85162e1de267c0d16a75"


def test_the_seven_question_sets_are_read_in_order_and_counted(tmp_path, monkeypatch):
    suites = [suite for suite in SUITES if suite.data and suite.prefix]
    folder = tmp_path / "search_qa"
    folder.mkdir()
    passage = {"id": "0", "contents": '"Title"\nSome text.'}
    (folder / "wiki-18.jsonl").write_text(json.dumps(passage) + "\n")
    rows = [
        {"id": f"test_{n}", "question": f"Question {n}?", "golden_answers": ["a"], "data_source": suite.prefix[:-1]}
        for suite in reversed(suites)
        for n in range(suite.tasks or 0)
    ]
    arrow = pytest.importorskip("pyarrow", reason="packages: parquet needs pyarrow")
    from pyarrow import parquet

    split = {"hotpotqa": "dev", "2wikimultihopqa": "dev", "musique": "dev"}
    extra = [{"split": split.get(row["data_source"], "test"), "index": n} for n, row in enumerate(rows)]
    columns = {key: [row[key] for row in rows] for key in rows[0]}
    parquet.write_table(arrow.table({**columns, "extra_info": extra}), folder / "test.parquet")
    monkeypatch.setenv("SEED_DATA_DIR", str(tmp_path))
    whole = find_suite("search_qa/all").load_tasks()
    assert len(whole) == 51_713
    parts = [suite.load_tasks() for suite in suites]
    assert [len(part) for part in parts] == [suite.tasks for suite in suites]
    assert [task_id for part in parts for task_id in part] == list(whole)


def test_a_panel_of_another_size_is_refused(tmp_path, monkeypatch, data_dir):
    monkeypatch.setenv("SEED_DATA_DIR", str(data_dir))
    with pytest.raises(DataInvalid, match="has 500 tasks"):
        find_suite("webshop/test").load_tasks(env_kwargs={"num_products": 100})


def test_names_families_and_files_choose_suites(tmp_path):
    assert choose_suites([]) == MINI
    assert {suite.name.split("/")[0] for suite in choose_suites(["alfworld"])} == {"alfworld"}
    path = tmp_path / "mine.json"
    mine = Suite("mine/panel", "seed/ALFWorld-v0", "mini_valid_seen", first=5, tasks=5)
    path.write_text(json.dumps(mine.to_json()))
    assert choose_suites([str(path)]) == [mine]
    assert len(mine.load_tasks()) == 5
    with pytest.raises(UnknownSuite, match="Did you mean 'webshop/mini'"):
        find_suite("webshop/minni")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "mine.json"),
        ("[]", "one JSON object"),
        ('{"name": "a"}', "are missing"),
        ('{"name": "a", "env_id": "b", "split": "c", "tsks": 3}', "Did you mean 'tasks'"),
        ('{"name": 5, "env_id": "b", "split": "c"}', "name=5; expected text"),
        ('{"name": "a", "env_id": "b", "split": "c", "tasks": "x"}', "tasks='x'; expected a whole number above 0"),
        ('{"name": "a", "env_id": "b", "split": "c", "first": -1}', "first=-1; expected a whole number above 0"),
        ('{"name": "a", "env_id": "b", "split": "c", "env_kwargs": [1]}', "expected a mapping"),
    ],
)
def test_suite_files_with_faults_are_explained(tmp_path, content, message):
    path = tmp_path / "mine.json"
    path.write_text(content)
    with pytest.raises(ConfigInvalid, match=message):
        load_suite(path)


@pytest.mark.parametrize(
    ("profiles", "message"),
    [
        ("json:dumps", "no table of profiles"),
        ("json:decoder", "no table of profiles"),
        ("json:nothing", "no attribute 'nothing'"),
        ("no_such_module:PROFILES", "no_such_module"),
    ],
)
def test_a_suite_without_a_table_of_profiles_is_explained(profiles, message):
    suite = Suite("a/b", "seed/ALFWorld-v0", "mini_valid_seen", profiles=profiles)
    with pytest.raises(SeedEnvsError, match=message):
        suite.find_profile()
