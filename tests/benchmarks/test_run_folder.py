"""Run folders in bad times: a full disk, a clock that jumps, two runs that want one folder."""

from __future__ import annotations

import errno
import itertools
import json
import os
import threading
import time

import pytest
from ladder_env import suite_record

from seed_benchmarks import children, folder
from seed_benchmarks.cli import main
from seed_benchmarks.config import AgentSettings, RunConfig
from seed_benchmarks.errors import RunFolderInvalid
from seed_benchmarks.folder import RunFolder, write_bytes, write_json
from seed_benchmarks.heads import read_run
from seed_benchmarks.runner import resume_run, start_run, summarise_folder
from seed_benchmarks.suite import Suite
from seed_envs import journal


def config(**options):
    return RunConfig(Suite.from_json(suite_record()), AgentSettings("oracle"), **options)


class FullDisk:
    """``os.write`` of a disk with room for so many bytes."""

    def __init__(self, room):
        self.room, self.write = room, os.write

    def __call__(self, descriptor, data):
        if self.room == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written = self.write(descriptor, data[: self.room])
        self.room -= written
        return written


def test_a_full_disk_is_one_line_and_the_run_goes_on_when_there_is_room(tmp_path, monkeypatch, capsys):
    suite, out = tmp_path / "suite.json", tmp_path / "run"
    suite.write_text(json.dumps(suite_record()))
    disk = FullDisk(20_000)
    with monkeypatch.context() as patch:
        patch.setattr(journal.os, "write", disk)
        assert main(["run", "--suite", str(suite), "--agent", "oracle", "--out", str(out), "--quiet"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line == f"seed-bench: {os.strerror(errno.ENOSPC)}: '{out / 'episodes.jsonl'}'"
    whole = list(read_run(RunFolder(out)))
    assert 0 < len(whole) < 24 and disk.room == 0
    assert RunFolder(out).attempts()[0]["outcome"] == "failed"
    result = resume_run(out)
    assert result.outcome == "complete"
    assert len(list(read_run(result.folder))) == 24
    assert result.summary["attempts"][1]["torn_bytes"] > 0


def test_a_file_that_cannot_be_written_is_named_and_leaves_nothing(tmp_path, monkeypatch):
    def refuse(*arguments, **options):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    write_bytes(tmp_path / "a.json", b"old")
    monkeypatch.setattr(folder.os, "replace", refuse)
    with pytest.raises(OSError) as caught:
        write_bytes(tmp_path / "a.json", b"new")
    assert caught.value.filename == str(tmp_path / "a.json")
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]
    assert (tmp_path / "a.json").read_bytes() == b"old"


@pytest.mark.parametrize("links", [True, False])
def test_of_several_runs_that_begin_in_one_folder_one_succeeds(tmp_path, monkeypatch, links):
    if not links:

        def refuse(*arguments):
            raise PermissionError(errno.EPERM, "no hard links here")

        monkeypatch.setattr(folder.os, "link", refuse)
    monkeypatch.setattr(folder.os, "getpid", threading.get_ident)  # threads stand for processes
    start, won, lost = threading.Barrier(8), [], []

    def begin(number):
        start.wait()
        try:
            RunFolder(tmp_path / "run").create({"run": number})
            won.append(number)
        except RunFolderInvalid:
            lost.append(number)

    threads = [threading.Thread(target=begin, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1 and len(lost) == 7
    assert json.loads((tmp_path / "run" / "config.json").read_text())["run"] == won[0]
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["config.json"]


def test_a_clock_that_is_set_back_or_forth_changes_no_outcome(tmp_path, monkeypatch):
    """Workers with a time limit, while the clock of the day leaps back and forth."""
    leaps = itertools.cycle([2e9, 1e9, 1.5e9, 5e8])
    years = itertools.cycle([2050, 2030, 2040, 2020])
    monkeypatch.setattr(time, "time", lambda: next(leaps))
    monkeypatch.setattr(children, "utc_now", lambda: f"{next(years)}-01-01T00:00:00.000+00:00")
    suite = Suite.from_json(suite_record("bad", env_kwargs={"hang_seconds": 0}))
    result = start_run(RunConfig(suite, AgentSettings("oracle"), num_workers=1, timeout=300.0), tmp_path / "run")
    records = {record.task_id: record for record in read_run(result.folder)}
    assert {task for task, record in records.items() if not record.scored} == {"crash/0", "exit/0"}
    assert all(record.seconds >= 0 for record in records.values())
    assert resume_run(tmp_path / "run").summary["counts"]["failed"] == 2


def test_the_time_of_a_killed_attempt_is_never_negative(tmp_path):
    result = start_run(config(limit=2), tmp_path / "run")
    path = tmp_path / "run" / "logs" / "attempt_1" / "attempt.json"
    attempt = json.loads(path.read_text())
    write_json(path, {**attempt, "seconds": None, "started": "2099-01-01T00:00:00.000+00:00"})
    assert summarise_folder(result.folder)["wall_seconds"] == 0.0
