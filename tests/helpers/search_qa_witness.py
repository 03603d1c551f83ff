"""Runs Lucene as a witness in a process of its own, or skips with the reason."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from seed_envs.errors import DependencyMissing
from seed_envs.lucene.java import anserini_jar, find_java

HELPER = Path(__file__).resolve().parent / "search_qa_java.py"


def require_java() -> None:
    try:
        anserini_jar()
        find_java()
    except DependencyMissing as missing:
        pytest.skip(f"Java: {missing}")


def ask_java(work: Path) -> None:
    """Runs Lucene in a process of its own."""
    run = subprocess.run(
        [sys.executable, str(HELPER), str(work)], capture_output=True, text=True, check=False, timeout=300,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-2000:]
