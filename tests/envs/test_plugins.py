"""Tables that other packages add to: what is found, where, and what is said about a name that is not."""

from __future__ import annotations

import os
import subprocess
import sys

import gymnasium as gym
import pytest

import seed_envs
from seed_envs.errors import NameTaken, SeedEnvsError, UnknownEnvironment
from seed_envs.plugins import OpenTable
from seed_envs.registration import TABLE, EnvRow, find_row


class Lost(SeedEnvsError):
    """The error of the table under test."""


@pytest.fixture
def table():
    joined = []
    made = OpenTable("number", "numbers", int, {"one": 1, "two": 2}, Lost, joined.append, also=["many"])
    assert joined == [1, 2]
    return made


@pytest.fixture
def outside(tmp_path, monkeypatch):
    """A module beside the installed ones, and a package that declares entry points."""
    (tmp_path / "numbers_of_mine.py").write_text("seven = 7\nword = 'seven'\n")
    info = tmp_path / "numbers_of_mine-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: numbers-of-mine\nVersion: 1.0\n")
    points = "[seed_envs.numbers]\nseven = numbers_of_mine:seven\none = numbers_of_mine:seven\n"
    (info / "entry_points.txt").write_text(f"{points}word = numbers_of_mine:word\ngone = nowhere:seven\n")
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def test_rows_are_found_by_name_in_order(table):
    table.add("three", 3)
    table.add("three", 3)
    assert dict(table) == {"one": 1, "two": 2, "three": 3} and table.find("three") == 3 and "four" not in table
    with pytest.raises(NameTaken, match="'one' is registered already, as 1"):
        table.add("one", 11)
    with pytest.raises(TypeError, match="number 'four' is a str; expected int"):
        table.add("four", "4")


def test_a_module_is_imported_and_its_attribute_or_what_it_added_is_taken(table, outside):
    assert table.find("numbers_of_mine:seven") == 7
    table.add("eight", 8)
    assert table.find("numbers_of_mine:eight") == 8


def test_entry_points_are_listed_without_being_loaded_and_shipped_rows_win(table, outside):
    sys.modules.pop("numbers_of_mine", None)
    assert list(table) == ["one", "two", "seven", "word", "gone"] and "numbers_of_mine" not in sys.modules
    assert table["one"] == 1 and table["seven"] == 7 and "numbers_of_mine" in sys.modules


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("tow", "number 'tow' is unknown; expected one of one, two, seven, word, gone, many. Did you mean 'two'?"),
        ("manny", "Did you mean 'many'?"),
        ("nowhere:seven", "number 'nowhere:seven' cannot be imported: No module named 'nowhere'"),
        ("numbers_of_mine:eight", "module numbers_of_mine neither registers nor holds a int of the name 'eight'"),
        ("numbers_of_mine:word", "neither registers nor holds a int"),
        ("gone", "number 'gone' cannot be imported: No module named 'nowhere'"),
        ("word", "number 'word' is a str; expected int"),
        (":", "is unknown"),
        ("", "is unknown"),
    ],
)
def test_what_cannot_be_had_is_explained(table, outside, name, said):
    with pytest.raises(Lost) as caught:
        table.find(name)
    assert said in str(caught.value)
    with pytest.raises(KeyError):
        table[name]


def test_two_packages_that_want_one_name_are_told_apart(table, outside):
    other = outside / "more_numbers-1.0.dist-info"
    other.mkdir()
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: more-numbers\nVersion: 1.0\n")
    (other / "entry_points.txt").write_text("[seed_envs.numbers]\nseven = more_numbers:seven\n")
    with pytest.raises(Lost, match="declared more than once: more_numbers:seven, numbers_of_mine:seven"):
        table.find("seven")


def test_an_environment_of_ones_own_joins_the_table_and_gymnasium():
    kwargs = {"levels": "classic"}
    row = EnvRow(
        "tests/Sokoban-v3", "seed_envs.vision.sokoban.env:SokobanEnv", 7, "seed_envs.vision.sokoban.prompts:PROFILES",
        kwargs=kwargs,
    )  # fmt: skip
    seed_envs.register(row)
    seed_envs.register(row)
    assert find_row("tests/Sokoban-v3") is row and row.annotator == ""
    with seed_envs.make_agent_env("tests/Sokoban-v3", "paper-text", max_steps=None) as env:
        assert env.unwrapped.spec.kwargs["levels"] == "classic"
    with pytest.raises(NameTaken):
        seed_envs.register(EnvRow("tests/Sokoban-v3", row.entry_point, 8, row.profiles))
    with pytest.raises(ValueError, match="profiles='prompts'; expected 'module:attribute'"):
        EnvRow("tests/Other-v0", row.entry_point, 8, "prompts")
    assert next(iter(TABLE)) == "seed/ALFWorld-v0" and gym.spec("tests/Sokoban-v3").max_episode_steps == 7


def test_an_id_that_gymnasium_alone_knows_is_no_environment_of_ours():
    with pytest.raises(UnknownEnvironment, match="module gymnasium neither registers nor holds a EnvRow"):
        find_row("gymnasium:CartPole-v1")


def test_a_module_of_the_current_folder_is_found_by_the_command(tmp_path, repo):
    source = (repo / "examples" / "05_new_environment.py").read_text(encoding="utf-8")
    (tmp_path / "my_game.py").write_text(source)
    start = "import sys; sys.path.remove(''); from seed_envs.play import main; sys.exit(main())"
    command = [sys.executable, "-c", start, "my_game:demo/Guess-v0", "--player", "oracle"]
    path = os.pathsep.join([str(repo), *(entry for entry in sys.path if entry)])
    done = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0 and "success: True" in done.stdout, done.stderr
