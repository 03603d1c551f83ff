"""Ray: two nodes on this machine give the results of one process; lost actors cost one episode."""

from __future__ import annotations

import os
import sys

import pytest
from ladder_env import suite_record
from ray_patience import PATIENCE

from seed_benchmarks.config import AgentSettings, RunConfig
from seed_benchmarks.errors import ConfigInvalid
from seed_benchmarks.records import read_heads, read_transcripts
from seed_benchmarks.runner import start_run
from seed_benchmarks.suite import Suite


def config(agent, suite=None, **options):
    return RunConfig(Suite.from_json(suite or suite_record()), AgentSettings(agent), **options)


def facts(folder):
    return {
        record.key: (record.index, record.seed, record.success, record.score, record.steps, record.stop_reason)
        for record in read_heads(folder / "episodes.jsonl")
    }


def start_two_nodes(make, tries=5):
    """A cluster of two nodes with one processor each; a node that needs more than Ray's 30 seconds is started again."""
    for left in reversed(range(tries)):
        found = make()
        try:
            for extra in ({"include_dashboard": False}, {}):
                found.add_node(num_cpus=1, **extra)
            found.wait_for_nodes(timeout=300)
        except Exception:
            found.shutdown()
            if not left:
                raise
        else:
            return found
    raise AssertionError("unreachable")


@pytest.fixture(scope="module")
def cluster(repo):
    ray = pytest.importorskip("ray", reason="Ray: not installed")
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(repo), str(repo / "tests" / "helpers"), *sys.path]))
        for name, value in PATIENCE.items():
            patch.setenv(name, value)
        found = start_two_nodes(Cluster)
        yield found
        ray.shutdown()
        found.shutdown()


def test_two_nodes_give_the_results_of_one_process(cluster, tmp_path):
    agent = "python:ladder_env:climb_on_ray"
    start_run(config("python:ladder_env:climb", repeats=3, seed=2), tmp_path / "here")
    options = {"executor": "ray", "ray_address": cluster.address, "num_workers": 2, "batch_size": 3}
    result = start_run(config(agent, repeats=3, seed=2, **options), tmp_path / "ray")
    assert result.outcome == "complete"
    assert facts(tmp_path / "ray") == facts(tmp_path / "here")
    nodes = {
        step["meta"]["node"]
        for _, transcript in read_transcripts(tmp_path / "ray" / "episodes.jsonl")
        for step in transcript["steps"]
    }
    assert len(nodes) == 2


def test_lost_and_hanging_actors_cost_one_episode_each(cluster, tmp_path):
    suite = suite_record("bad", env_kwargs={"hang_seconds": 600})
    options = {"executor": "ray", "ray_address": cluster.address, "num_workers": 2, "batch_size": 3, "timeout": 10.0}
    start_run(config("oracle", suite=suite, **options), tmp_path / "ray")
    records = {record.task_id: record for record in read_heads(tmp_path / "ray" / "episodes.jsonl")}
    assert len(records) == 7
    faults = {task: (record.stop_reason, record.error["type"]) for task, record in records.items() if record.error}
    assert faults == {
        "crash/0": ("env_error", "RuntimeError"),
        "exit/0": ("env_error", "WorkerDied"),
        "hang/0": ("timeout", "WorkerTimeout"),
    }
    assert sum(record.success for record in records.values()) == 4


def test_ray_needs_a_number_of_workers():
    with pytest.raises(ConfigInvalid, match="--num-workers"):
        config("oracle", executor="ray")
