"""A run on Ray that is killed leaves no process behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest
from ladder_env import suite_record
from ray_patience import PATIENCE

#: Seconds until the last process must have ended; a busy machine gets more.
GRACE = 15.0


def _marked(mark: str) -> list[str]:
    """Command lines of the living processes that were started with ``mark`` in their environment."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdigit() and mark.encode() in (folder / "environ").read_bytes():
                state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                if state != "Z":
                    found.append(command[:120])
        except OSError:  # ended meanwhile, or somebody else's
            continue
    return found


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="Linux: needs /proc")
def test_a_killed_run_leaves_no_ray_process(tmp_path: Path, repo: Path) -> None:
    pytest.importorskip("ray", reason="Ray: not installed")
    mark = f"seed_test_{uuid.uuid4().hex}"
    suite = {**suite_record(), "env_kwargs": {"pause": 0.2}}
    (tmp_path / "suite.json").write_text(json.dumps(suite))
    path = os.pathsep.join([str(repo), str(repo / "tests" / "helpers"), *sys.path])
    command = [
        sys.executable,
        "-m",
        "seed_benchmarks",
        "run",
        "--suite",
        str(tmp_path / "suite.json"),
        "--agent",
        "oracle",
    ]
    command += ["--executor", "ray", "--num-workers", "1", "--out", str(tmp_path / "run"), "--quiet"]
    environment = {**os.environ, **PATIENCE, "PYTHONPATH": path, "SEED_TEST_MARK": mark}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    journal = tmp_path / "run" / "episodes.jsonl"
    try:
        while not (journal.exists() and journal.stat().st_size):
            assert process.poll() is None, "the run ended before it could be killed"
            time.sleep(0.05)
        assert len(_marked(mark)) > 2, "Ray runs processes of its own"
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    end = time.monotonic() + GRACE
    while time.monotonic() < end and _marked(mark):
        time.sleep(0.5)
    if left := _marked(mark):
        time.sleep(4 * GRACE)
        assert not _marked(mark), f"still running: {left}"
