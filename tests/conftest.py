"""Shared fixtures. Tests never use a network, a GPU or more than one thread per library."""

from __future__ import annotations

import os
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import pytest
from skip_list import pytest_sessionfinish, pytest_terminal_summary  # noqa: F401

REPO = Path(__file__).resolve().parent.parent

# Child processes (command-line tests) find the data the same way.
if "SEED_DATA_DIR" not in os.environ and (REPO.parent / "shared" / "data").is_dir():
    os.environ["SEED_DATA_DIR"] = str(REPO.parent / "shared" / "data")


@pytest.fixture(scope="session")
def repo() -> Path:
    """The checkout."""
    return REPO


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of real data; tests that need it are skipped where it is missing."""
    named = os.environ.get("SEED_DATA_DIR")
    if not named:
        pytest.skip("real data: set SEED_DATA_DIR to the folder with alfworld/, webshop/, search_qa/, boxoban/")
    folder = Path(named)
    if not folder.is_dir():
        pytest.skip(f"real data: SEED_DATA_DIR={folder} is not a folder")
    return folder
