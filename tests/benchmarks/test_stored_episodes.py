"""Run folders that somebody edited: one line that names file, line and field, never a traceback or a wrong number."""

from __future__ import annotations

import json

import pytest
from ladder_env import suite_record

from seed_benchmarks.cli import main
from seed_benchmarks.config import AgentSettings, RunConfig
from seed_benchmarks.errors import RecordsInvalid
from seed_benchmarks.heads import read_run
from seed_benchmarks.records import read_transcripts
from seed_benchmarks.runner import start_run
from seed_benchmarks.suite import Suite


@pytest.fixture
def folder(tmp_path):
    suite = Suite.from_json(suite_record())
    return start_run(RunConfig(suite, AgentSettings("oracle"), limit=3, repeats=2), tmp_path / "run").folder


def edit(folder, number, **changes):
    lines = folder.episodes.read_text().splitlines()
    lines[number - 1] = json.dumps({**json.loads(lines[number - 1]), **changes})
    folder.episodes.write_text("\n".join(lines) + "\n")


def complaint(capsys, folder, *arguments):
    capsys.readouterr()
    assert main([*arguments, str(folder.path)]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    return line


def test_an_untouched_run_is_read(folder):
    assert [record.index for record in read_run(folder)] == list(range(6))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("success", "yes"),
        ("success", 1),
        ("score", 1.5),
        ("score", -0.1),
        ("score", float("nan")),
        ("score", True),
        ("reward", "x"),
        ("reward", float("inf")),
        ("reward", None),
        ("steps", None),
        ("steps", 2.5),
        ("steps", -1),
        ("index", -1),
        ("index", 6),
        ("index", "0"),
        ("repeat", 1),
        ("attempt", 0),
        ("task_id", 7),
        ("task_id", "somewhere/else"),
        ("env_id", "seed/Sokoban-v0"),
        ("stop_reason", "boredom"),
        ("started", "yesterday"),
        ("error", "none"),
        ("error", {"type": 3, "message": ""}),
        ("transcript", 5),
        ("transcript", None),
    ],
)
def test_a_wrong_field_is_named_with_file_and_line(capsys, folder, field, value):
    edit(folder, 2, **{field: value})
    with pytest.raises(RecordsInvalid, match=rf"episodes\.jsonl, line 2: .*\({field}: "):
        list(read_run(folder))
    line = complaint(capsys, folder, "view")
    assert line.startswith("seed-bench: ") and f"({field}: " in line


def test_resume_and_compare_refuse_as_well(capsys, folder):
    attempts = len(folder.attempts())
    edit(folder, 2, reward="x")
    assert "(reward: 'x', expected a finite number)" in complaint(capsys, folder, "run", "--resume")
    assert "(reward: 'x', expected a finite number)" in complaint(capsys, folder, "compare", str(folder.path))
    assert len(folder.attempts()) == attempts


@pytest.mark.parametrize("line", ["[]", "3", "{}", "nonsense", '"text"'])
def test_lines_that_are_no_records(capsys, folder, line):
    with folder.episodes.open("a") as file:
        file.write(line + "\n")
    assert "line 7: not an episode record" in complaint(capsys, folder, "view")


def test_a_transcript_that_cannot_be_read_is_named(capsys, folder, tmp_path):
    lines = folder.episodes.read_text().splitlines()
    lines[1] = lines[1][:-20]
    folder.episodes.write_text("\n".join(lines) + "\n")
    report = complaint(capsys, folder, "view", "--out", str(tmp_path / "report.html"))
    assert "episodes.jsonl, line 2: not an episode record (transcript: " in report
    with pytest.raises(RecordsInvalid, match="line 2: .*transcript: "):
        list(read_transcripts(folder.episodes))


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("manifest", {}, "manifest.name: None, expected str"),
        ("manifest.chosen", "3", "manifest.chosen: '3', expected int"),
        ("manifest.chosen", 0, "manifest.chosen: 0, expected at least 1"),
        ("planned", None, "planned: None, expected int"),
        ("command", "run", "command: 'run', expected list"),
        ("run.agent", {}, "spec"),
        ("run.agent.colour", "red", "colour"),
        ("run.agent.temperature", "hot", "run configuration"),
        ("run.colour", "red", "unknown key 'colour'"),
        ("run.suite", 3, "run configuration"),
        ("run.suite.tasks", "all", "tasks='all'"),
        ("run.shard", [1], "run configuration"),
        ("run.repeats", "x", "run configuration"),
    ],
)
def test_a_configuration_that_somebody_edited_is_named(capsys, folder, path, value, message):
    record = json.loads((folder.path / "config.json").read_text())
    *parents, last = path.split(".")
    part = record
    for key in parents:
        part = part[key]
    part[last] = value
    (folder.path / "config.json").write_text(json.dumps(record))
    for command in (["view"], ["run", "--resume"], ["compare", str(folder.path)]):
        line = complaint(capsys, folder, *command)
        assert f"{folder.path / 'config.json'}: " in line and message in line


@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"attempt": 1, "started": "now", "seconds": 1}'])
def test_the_note_of_an_attempt_that_somebody_edited_is_named(capsys, folder, content):
    path = folder.path / "logs" / "attempt_1" / "attempt.json"
    path.write_text(content)
    assert f"{path}: not the note of an attempt" in complaint(capsys, folder, "view")


@pytest.mark.parametrize("name", ["config.json", "summary.json"])
@pytest.mark.parametrize("content", ["[1]", '{"schema_version": 1}', "{", '{"schema_version": 1, "run": 4}'])
def test_ls_marks_a_broken_run_and_goes_on(capsys, folder, tmp_path, name, content):
    suite = folder.run_config().suite
    start_run(RunConfig(suite, AgentSettings("oracle"), limit=3), tmp_path / "whole")
    (folder.path / name).write_text(content)
    capsys.readouterr()
    assert main(["ls", str(tmp_path)]) == 0
    rows = {line.split("|")[1].strip(): line for line in capsys.readouterr().out.splitlines() if "/" in line}
    assert "complete" in rows[str(tmp_path / "whole")]
    broken = rows[str(folder.path)]
    assert "unfinished" in broken if (name, content) == ("summary.json", "{") else "broken (" in broken
