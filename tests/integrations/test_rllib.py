"""RLlib trains on Ray; it wants an older Gymnasium, so it lives in an environment of its own."""

from __future__ import annotations

import os
import re
import subprocess

import pytest


@pytest.mark.slow
def test_the_example_samples_whole_episodes_on_a_remote_runner(repo, tmp_path):
    python = os.environ.get("SEED_RLLIB_PYTHON")
    if not python:
        pytest.skip("RLlib: SEED_RLLIB_PYTHON names the python of an environment that has it and this package")
    command = [python, str(repo / "examples" / "11_rllib.py"), "2"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    steps, mean = re.search(r"(\d+) steps, mean return (-?[\d.]+)", done.stdout).groups()
    assert int(steps) >= 1024 and -12 < float(mean) < 11
