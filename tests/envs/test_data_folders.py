"""Where data is looked for, in which order, and what a missing folder says."""

from __future__ import annotations

from pathlib import Path

import pytest

from seed_envs.data import cache_root, data_dir
from seed_envs.errors import DataMissing

VARIABLES = ("DEMO_DATA", "SEED_DATA_DIR", "SEED_CACHE_DIR", "XDG_CACHE_HOME")


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """A folder for every way to name one, and no variable set."""
    for variable in VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    found = {
        "argument": tmp_path / "argument",
        "DEMO_DATA": tmp_path / "own",
        "SEED_DATA_DIR": tmp_path / "all" / "demo",
        "SEED_CACHE_DIR": tmp_path / "cache" / "demo",
    }
    for folder in found.values():
        folder.mkdir(parents=True)
    return found


def test_the_first_place_that_is_named_wins(places: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEED_CACHE_DIR", "~/cache")
    assert data_dir("demo", variable="DEMO_DATA") == places["SEED_CACHE_DIR"]
    monkeypatch.setenv("SEED_DATA_DIR", "~/all")
    assert data_dir("demo", variable="DEMO_DATA") == places["SEED_DATA_DIR"]
    monkeypatch.setenv("DEMO_DATA", "~/own")
    assert data_dir("demo", variable="DEMO_DATA") == places["DEMO_DATA"]
    assert data_dir("demo", "~/argument", "DEMO_DATA") == places["argument"]


def test_a_named_folder_that_is_missing_is_an_error_and_not_passed_over(
    places: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEED_DATA_DIR", str(places["SEED_DATA_DIR"].parent))
    monkeypatch.setenv("DEMO_DATA", "/nowhere/at/all")
    with pytest.raises(DataMissing, match=r"\$DEMO_DATA points at /nowhere/at/all.*or run: fetch demo\."):
        data_dir("demo", None, "DEMO_DATA", "fetch demo")
    with pytest.raises(DataMissing, match="the argument points at /nowhere"):
        data_dir("demo", "/nowhere", "DEMO_DATA")
    with pytest.raises(FileNotFoundError, match=r"Set \$SEED_DATA_DIR\."):
        data_dir("other")


def test_the_cache_follows_the_desktop_convention(places: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    home = places["argument"].parent
    assert cache_root() == home / ".cache" / "seed_envs"
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "xdg"))
    assert cache_root() == home / "xdg" / "seed_envs"
