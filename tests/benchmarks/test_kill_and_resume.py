"""A run that is killed fifty times at random moments ends with every episode exactly once, and the same outcomes."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from ladder_env import suite_record

from seed_benchmarks.config import AgentSettings, RunConfig
from seed_benchmarks.folder import RunFolder
from seed_benchmarks.records import read_heads
from seed_benchmarks.runner import resume_run, start_run
from seed_benchmarks.setup_run import build_agent, prepare
from seed_benchmarks.suite import Suite
from seed_envs.journal import Journal, read_lines

# Forks a child per round, so that fifty kills do not cost fifty interpreter starts. Each child is a whole run.
KILLER = """
import os, random, signal, sys, time
from pathlib import Path
from seed_envs.journal import Journal
from seed_benchmarks.runner import resume_run
from seed_benchmarks.versions import describe_software

folder, rounds, most = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
describe_software()
append = Journal.append

def run_until(limit):
    # Continues the run; after so many more episodes it waits to be killed, however slow the killer is.
    def append_some(journal, line):
        nonlocal limit
        append(journal, line)
        limit -= 1
        while limit == 0:
            time.sleep(60)

    Journal.append = append_some
    resume_run(folder)
    os._exit(0)

draw = random.Random(11)
before, played = b"", 0

def lines(path):
    return path.read_bytes().count(b"\\n") if path.exists() else 0

for number in range(rounds):
    # Some die while they start, the others after a random number of further episodes and a moment more.
    wanted = 0 if number % 4 == 3 else draw.randrange(1, most)
    child = os.fork()
    if child == 0:
        run_until(wanted + 6)
    deadline = time.monotonic() + 300
    path = folder / "episodes.jsonl"
    while wanted and lines(path) < before.count(b"\\n") + wanted and time.monotonic() < deadline:
        time.sleep(0.001)
    time.sleep(draw.uniform(0.0, 0.01 if wanted else 0.2))
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    now = path.read_bytes() if path.exists() else b""
    whole = before[: before.rfind(b"\\n") + 1]
    assert now.startswith(whole), f"round {number}: a finished line was lost or changed"
    played += now.count(b"\\n") - before.count(b"\\n")
    print("killed" if os.WIFSIGNALED(status) else "finished", now.count(b"\\n"), len(now) - now.rfind(b"\\n") - 1)
    before = now
"""


def config(pause, **options):
    suite = suite_record(env_kwargs={"pause": pause})
    return RunConfig(Suite.from_json(suite), AgentSettings("python:ladder_env:climb"), repeats=30, seed=3, **options)


def keys(folder: Path):
    return [record.key for record in read_heads(folder / "episodes.jsonl")]


def facts(folder: Path):
    return {
        record.key: (record.seed, record.index, record.success, record.score, record.steps, record.stop_reason)
        for record in read_heads(folder / "episodes.jsonl")
    }


@pytest.mark.parametrize(("workers", "rounds", "most"), [(0, 44, 16), (2, 6, 40)])
def test_nothing_is_lost_doubled_or_torn(tmp_path, repo, workers, rounds, most):
    folder = tmp_path / "run"
    start_run(config(0.0), tmp_path / "whole")
    prepared = prepare(config(0.002, num_workers=workers))
    RunFolder(folder).create(prepared.describe(build_agent(prepared.config), []))
    path = os.pathsep.join([str(repo), str(repo / "tests" / "helpers"), *sys.path])
    command = [sys.executable, "-c", KILLER, str(folder), str(rounds), str(most)]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    assert [line[0] for line in lines] == ["killed"] * rounds
    assert int(lines[-1][1]) > 50, "the kills came before anything was played"
    result = resume_run(folder)
    assert result.outcome == "complete"
    assert rounds / 2 < len(result.summary["attempts"]) <= rounds + 2
    assert len(keys(folder)) == len(set(keys(folder))) == 24 * 30
    assert facts(folder) == facts(tmp_path / "whole")
    assert all(json.loads(line) for line in read_lines(folder / "episodes.jsonl"))


def test_a_line_torn_at_any_byte_is_cut_off(tmp_path):
    path = tmp_path / "journal.jsonl"
    with Journal(path) as journal:
        journal.append(b'{"a": 1}')
        journal.append(b'{"b": 2}')
    whole = path.read_bytes()
    for cut in range(len(whole) + 1):
        path.write_bytes(whole[:cut])
        kept = list(read_lines(path))
        with Journal(path) as journal:
            assert journal.torn_bytes == cut - sum(len(line) + 1 for line in kept)
            journal.append(b'{"c": 3}')
        assert list(read_lines(path)) == [*kept, b'{"c": 3}']


def test_a_long_torn_line_is_cut_off(tmp_path):
    path = tmp_path / "journal.jsonl"
    path.write_bytes(b'{"a": 1}\n' + b"x" * 3_000_000)
    with Journal(path) as journal:
        assert journal.torn_bytes == 3_000_000
    assert path.read_bytes() == b'{"a": 1}\n'
    path.write_bytes(b"x" * 1_500_000)
    with Journal(path) as journal:
        assert journal.torn_bytes == 1_500_000
    assert path.read_bytes() == b""


def test_a_journal_takes_whole_lines_only(tmp_path):
    with Journal(tmp_path / "journal.jsonl") as journal, pytest.raises(ValueError, match="newline"):
        journal.append(b"a\nb")


def test_lines_are_whole_while_somebody_writes(tmp_path):
    path = tmp_path / "journal.jsonl"
    draw = random.Random(0)
    with Journal(path) as journal:
        for number in range(200):
            journal.append(json.dumps({"n": number, "pad": "x" * draw.randrange(5000)}).encode())
            assert sum(1 for _ in read_lines(path)) == number + 1
