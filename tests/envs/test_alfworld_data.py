"""Game files: trees, packs, the compiled cache, hostile content, commands."""

from __future__ import annotations

import hashlib
import json
import lzma
import os
import re
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from alfworld_files import GRAMMAR, document, make_pack, put_game, wins
from alfworld_quirk_room import SESSIONS, quirk_problem

from seed_envs.alfworld import cache
from seed_envs.alfworld.__main__ import main
from seed_envs.alfworld.cache import open_library
from seed_envs.alfworld.engine import Engine
from seed_envs.alfworld.gamefile import read_game_file
from seed_envs.alfworld.generator import compact, rooms
from seed_envs.alfworld.goals import TASK_TYPES, Goal
from seed_envs.alfworld.library import PACK_NAME, PackLibrary, TreeLibrary
from seed_envs.alfworld.pddl import MAX_PROBLEM_CHARS, read_goal, read_problem, write_goal, write_problem
from seed_envs.alfworld.sources import TaskSource
from seed_envs.alfworld.tasks import manifest
from seed_envs.errors import DataInvalid, DataMissing, UnknownTask


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("SEED_CACHE_DIR", str(tmp_path / "cache"))
    open_library.cache_clear()
    yield
    open_library.cache_clear()


# -- reading and writing -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "task_id",
    ["procedural/train/1", "procedural/valid_unseen/8", "procedural/train/2;goals=2;words=1", "compact/test/3"],
)
def test_a_generated_game_survives_the_file_format(task_id: str, tmp_path: Path) -> None:
    game = (compact if task_id.startswith("compact") else rooms).generate(task_id)
    path = put_game(tmp_path, "mine/task/trial_1", document(task_id))
    again = read_game_file(path, task_id)
    assert cache.pack_game(again) == cache.pack_game(game)
    assert wins(Engine(again))


@pytest.mark.parametrize("kind", TASK_TYPES)
def test_goals_are_read_back_as_written(kind: str) -> None:
    goal = Goal(kind, "mug", "desklamp" if kind == "look" else "shelf")
    problem = quirk_problem(goal)
    assert read_problem(write_problem(problem, "x")) == problem
    assert write_goal(goal).count("(") == write_goal(goal).count(")")
    also = Goal("clean", "plate", "cabinet")
    for joint in (goal._replace(also=also), also._replace(also=goal)):
        assert read_problem(write_problem(quirk_problem(joint), "x")).goal == joint
        with pytest.raises(DataInvalid, match="six known shapes"):
            read_goal(write_goal(joint).lower() + "(exists (?r - receptacle) (and))")


def test_a_tree_like_alfworlds_own_download_is_read(tmp_path: Path) -> None:
    put_game(tmp_path / "json_2.1.1", "valid_unseen/pick-x-1/trial_A", document("compact/train/0"))
    put_game(tmp_path / "json_2.1.1", "mine/own-task/trial_B", document("compact/train/1"))
    put_game(tmp_path, "mine/own-task/trial_C", document("compact/train/2"))
    (tmp_path / "json_2.1.1" / "valid_unseen" / "pick-x-1" / "trial_A" / "traj_data.json").write_text("{}")
    library = TreeLibrary(tmp_path)
    assert library.ids == ("mine/own-task/trial_B", "mine/own-task/trial_C", "valid_unseen/pick-x-1/trial_A")
    assert wins(Engine(library.game("mine/own-task/trial_B")))
    assert TaskSource(tmp_path).ids("custom") == library.ids, "none of the three is on an official list"
    with pytest.raises(UnknownTask, match="trial_B"):
        library.game("mine/own-task/trial_D")
    with pytest.raises(UnknownTask):
        library.game("../../etc/passwd")


def test_an_empty_folder_is_explained(tmp_path: Path) -> None:
    with pytest.raises(DataMissing, match="seed_envs.alfworld download"):
        open_library(tmp_path)


def test_the_real_pack_reads_like_files(data_dir: Path, tmp_path: Path) -> None:
    pack = PackLibrary(data_dir / "alfworld" / PACK_NAME)
    task_id = pack.ids[100]
    path = put_game(tmp_path, task_id, pack.document(task_id))
    assert cache.pack_game(read_game_file(path, task_id)) == cache.pack_game(pack.game(task_id))


# -- the compiled cache ------------------------------------------------------------------------------------------------


def test_the_cache_holds_the_same_games_and_notices_changed_data(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "data"
    make_pack(folder)
    plain = {i: cache.pack_game(open_library(folder).game(i)) for i in open_library(folder).ids}
    assert main(["import", str(folder)]) == 0
    assert "4 games compiled" in capsys.readouterr().out
    open_library.cache_clear()
    library = open_library(folder)
    assert isinstance(library, cache.CacheLibrary)
    assert {i: cache.pack_game(library.game(i)) for i in library.ids} == plain
    assert wins(Engine(library.game("train/task-0/trial_1")))
    with pytest.raises(UnknownTask, match=re.escape(f"4 games of {folder.resolve()}.")):
        library.game("train/task-9/trial_1")
    make_pack(folder, 3)
    open_library.cache_clear()
    assert len(open_library(folder).ids) == 3


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda raw: raw.replace(b'"version": 2', b'"version": 9', 1), "version"),
        (lambda raw: raw[:-1] + bytes([raw[-1] ^ 1]), "hash"),
        (lambda raw: b"\x80\x04pickle" + raw, "not a compiled cache"),
        (lambda raw: b"[]\n", "not a compiled cache"),
        (lambda raw: raw.replace(b"\n", b"\n9", 1), "hash"),
    ],
)
def test_a_damaged_cache_is_refused(damage: Callable[[bytes], bytes], message: str, tmp_path: Path) -> None:
    make_pack(tmp_path / "data", 2)
    path = cache.build_cache(tmp_path / "data")
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(DataInvalid, match=message) as caught:
        cache.CacheLibrary(path)
    assert str(path) in str(caught.value) and "import" in str(caught.value)


@pytest.mark.parametrize(
    "places", [[1, 2], {"train/a/b": 3}, {"train/a/b": [0]}, {"train/a/b": [0, 9]}, {"train/a/b": {}}]
)
def test_a_forged_cache_with_a_fitting_hash_is_refused(places: Any, tmp_path: Path) -> None:
    contents = {"source": str(tmp_path), "skipped": {}, "places": places}
    page = zlib.compress(json.dumps(contents).encode())
    body = f"{len(page)}\n".encode() + page + zlib.compress(b"[]")
    header = {"format": cache.FORMAT, "version": cache.VERSION, "sha256": hashlib.sha256(body).hexdigest()}
    path = tmp_path / "forged.games"
    path.write_bytes(json.dumps(header).encode() + b"\n" + body)
    with pytest.raises(DataInvalid, match="rebuild it with"):
        cache.CacheLibrary(path).game("train/a/b")


def test_files_that_change_during_an_import_do_not_count_as_compiled(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    make_pack(folder, 3)

    def change(done: int, total: int) -> None:
        if done == total:
            make_pack(folder, 2)

    cache.build_cache(folder, progress=change)
    assert len(open_library(folder).ids) == 2


def test_an_interrupted_import_leaves_nothing_behind_and_can_be_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "data"
    make_pack(folder, 2)

    def interrupt(*arguments: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(os, "replace", interrupt)
        cache.build_cache(folder)
    assert list(cache.cache_path(folder).parent.iterdir()) == []
    assert not isinstance(open_library(folder), cache.CacheLibrary)
    cache.build_cache(folder)
    open_library.cache_clear()
    assert isinstance(open_library(folder), cache.CacheLibrary)


# -- hostile files -----------------------------------------------------------------------------------------------------

GOOD = write_problem(quirk_problem(SESSIONS["lamp"][0]), "x")
MUG = "(objectType mug_bar_010 mugtype)"

HOSTILE_PROBLEMS = {
    "no sections": ("(define (problem x))", r"expected a section '\(:init"),
    "no goal": (GOOD[: GOOD.index("(:goal")], r"\(:goal"),
    "another goal": (GOOD.replace("isToggled ?ot", "isOn ?ot"), "six known shapes"),
    "unknown predicate": (GOOD.replace(MUG, MUG + " (flies mug_bar_010 air)"), "'flies'"),
    "misspelt predicate": (GOOD.replace(MUG, "(objectTipe mug_bar_010 mugtype)"), "Did you mean 'objecttype'"),
    "wrong arity": (GOOD.replace(MUG, "(objectType mug_bar_010)"), "wrong number of arguments"),
    "nested fact": (GOOD.replace(MUG, "(objectType (mug) mugtype)"), "malformed fact near"),
    "three arguments": (GOOD.replace(MUG, "(objectType a b c)"), "malformed fact near"),
    "type without ending": (GOOD.replace(MUG, "(objectType mug_bar_010 mug)"), "end in 'Type'"),
    "two starts": (GOOD.replace(MUG, MUG + " (atLocation agent1 loc_bar_01)"), "exactly one"),
    "place twice": (GOOD.replace(MUG, MUG + " (receptacleAtLocation desk_bar_004 loc_bar_77)"), "two locations"),
    "lies nowhere": (GOOD.replace(MUG, MUG + " (inReceptacle mug_bar_010 moon_bar_1)"), "not a receptacle"),
    "lamp missing": (GOOD.replace("(toggleable desklamp_bar_005)", ""), "'desklamp'"),
    "target missing": (GOOD.replace("book_bar_002 booktype", "book_bar_002 bookletype"), "'book'"),
    "control character": (GOOD.replace("mug_bar_010", "mug\x1b[31m_bar_010"), "visible ASCII"),
    "lone surrogate": (GOOD.replace("mug_bar_010", "mug\ud800_bar_010"), "visible ASCII"),
    "too long": (GOOD + " " * MAX_PROBLEM_CHARS, "at most"),
    "too many things": (
        GOOD.replace(MUG, MUG + "".join(f"(objectType pen_bar_{n} pentype)" for n in range(3_000))),
        "at most",
    ),
}


@pytest.mark.parametrize("case", HOSTILE_PROBLEMS)
def test_malformed_problems_name_file_and_reason(case: str, tmp_path: Path) -> None:
    text, message = HOSTILE_PROBLEMS[case]
    path = put_game(tmp_path, "mine/task/trial_1", document("compact/train/0", pddl_problem=text))
    library = TreeLibrary(tmp_path)
    with pytest.raises(DataInvalid, match=message) as caught:
        library.game("mine/task/trial_1")
    assert str(path) in str(caught.value) or "mine/task/trial_1" in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("not json", "expected one JSON object"),
        ("[1, 2]", "found a list"),
        ("[" * 100_000, "not a game file"),
        ({"grammar": GRAMMAR}, "pddl_problem"),
        ({"pddl_problem": GOOD}, "goal sentence"),
        (document("compact/train/0", walkthrough="go north"), "walkthrough"),
        (document("compact/train/0", grammar=GRAMMAR.replace("@@TASK@@", "x" * 2_000)), "goal sentence of"),
        (document("compact/train/0", pddl_problem=7), "pddl_problem"),
        (document("compact/train/0", grammar=GRAMMAR.replace("@@TASK@@", r"put a mug\ud800")), "control characters"),
        (
            document("compact/train/0", grammar=GRAMMAR.replace("@@TASK@@", r"put a mug\u001b[31m")),
            "control characters",
        ),
    ],
)
def test_malformed_files_name_file_and_reason(content: Any, message: str, tmp_path: Path) -> None:
    path = put_game(tmp_path, "mine/task/trial_1", content)
    with pytest.raises(DataInvalid, match=message) as caught:
        TreeLibrary(tmp_path).game("mine/task/trial_1")
    assert str(path) in str(caught.value)


def test_huge_files_are_not_read(tmp_path: Path) -> None:
    path = put_game(tmp_path, "mine/task/trial_1", "")
    with path.open("wb") as file:
        file.truncate(9_000_000)
    with pytest.raises(DataInvalid, match="9,000,000 bytes"):
        TreeLibrary(tmp_path).game("mine/task/trial_1")


@pytest.mark.parametrize("kind", ["pipe", "folder", "device"])
def test_only_regular_files_are_read(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "mine" / "task" / "trial_1" / "game.tw-pddl"
    path.parent.mkdir(parents=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to("/dev/zero")
    with pytest.raises(DataInvalid, match=re.escape(str(path))):
        TreeLibrary(tmp_path).game("mine/task/trial_1")


def test_a_linked_game_file_is_a_game_file(tmp_path: Path) -> None:
    real = put_game(tmp_path / "elsewhere", "a/b/c", document("compact/train/0"))
    link = tmp_path / "tree" / "mine" / "task" / "trial_1" / "game.tw-pddl"
    link.parent.mkdir(parents=True)
    link.symlink_to(real)
    assert wins(Engine(TreeLibrary(tmp_path / "tree").game("mine/task/trial_1")))


def test_a_pack_lists_every_game_once(tmp_path: Path) -> None:
    make_pack(tmp_path, 2)
    lines = lzma.decompress((tmp_path / PACK_NAME).read_bytes()).splitlines()
    (tmp_path / PACK_NAME).write_bytes(lzma.compress(b"\n".join([*lines, lines[0]])))
    with pytest.raises(DataInvalid, match="'train/task-0/trial_1' occurs twice"):
        PackLibrary(tmp_path / PACK_NAME)


@pytest.mark.parametrize("damage", ["cut", "text", "line"])
def test_broken_packs_are_refused(damage: str, tmp_path: Path) -> None:
    make_pack(tmp_path, 2)
    path = tmp_path / PACK_NAME
    raw = path.read_bytes()
    broken = {"cut": raw[:-30], "text": b"hello", "line": lzma.compress(b'{"split": "a/b"}\n')}[damage]
    path.write_bytes(broken)
    with pytest.raises(DataInvalid, match=re.escape(str(path))):
        PackLibrary(path)


def test_python_in_a_game_file_is_never_run(tmp_path: Path) -> None:
    """The original evaluates expressions in braces of its grammars; here they stay text."""
    marker = tmp_path / "ran"
    attack = f"{{__import__('pathlib').Path({str(marker)!r}).touch() or 'x'}}"
    sentence = "Your task is to: put a mug in shelf." + attack.replace('"', "'")
    content = document("compact/train/0", grammar=GRAMMAR.replace("@@TASK@@", sentence))
    put_game(tmp_path / "tree", "mine/task/trial_1", content)
    engine = Engine(TreeLibrary(tmp_path / "tree").game("mine/task/trial_1"))
    assert attack in engine.reset()
    assert wins(engine)
    engine.act(attack)
    assert not marker.exists()


# -- commands ----------------------------------------------------------------------------------------------------------


def test_list_export_and_demos(tmp_path: Path, capsys: pytest.CaptureFixture[str], data_dir: Path) -> None:
    assert main(["list", "mini_valid_seen"]) == 0
    assert len(capsys.readouterr().out.split()) == 30
    target = tmp_path / "game.tw-pddl"
    official = str(data_dir / "alfworld")
    assert main(["export", "compact/train/4", "--data-dir", official, "--output", str(target)]) == 0
    assert wins(Engine(read_game_file(target, "compact/train/4")))
    out = tmp_path / "demos.jsonl"
    command = ["demos", "mini_train", "--expert", "oracle", "--limit", "5", "--output", str(out)]
    assert main(command) == 0
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(rows) == 5 and all(row["success"] for row in rows)
    assert "<action>" in rows[0]["steps"][0]["reply"] and rows[0]["steps"][0]["messages"][0]["role"] == "user"
    bad = put_game(tmp_path / "tree", "mine/task/trial_1", "no json")
    command = ["demos", "custom", "--data-dir", str(tmp_path / "tree"), "--output", str(out)]
    assert main(command) == 2
    error = capsys.readouterr().err
    assert f"holds none that can be played (left out: 1 broken or foreign (mine/task/trial_1: {bad}" in error.replace(
        f"{bad.parents[3]} (named by the argument) ", ""
    )
    assert len(out.read_text().splitlines()) == 5, "what was there stays"
    assert main(["import", str(tmp_path / "nowhere")]) == 2
    assert "download" in capsys.readouterr().err
    assert os.environ["SEED_CACHE_DIR"] == str(tmp_path / "cache")


def test_valid_unseen_is_played_in_the_same_format_and_must_be_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content, listed = document("compact/train/0"), manifest("valid_unseen")
    for task_id in listed:
        put_game(tmp_path / "json_2.1.1", task_id, content)
    put_game(tmp_path / "json_2.1.1", "valid_unseen/my-own-task/trial_1", content)
    source = TaskSource(tmp_path)
    source.require("valid_unseen")
    assert wins(Engine(source.game(listed[60])))
    assert source.ids("custom") == ("valid_unseen/my-own-task/trial_1",)
    assert wins(Engine(source.game("valid_unseen/my-own-task/trial_1")))
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path))
    named = TaskSource()
    assert [named.game(i).game_id for i in named.ids("custom")] == ["valid_unseen/my-own-task/trial_1"]
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(UnknownTask, match="not one of the 134 games"):
        TaskSource().game("valid_unseen/my-own-task/trial_1")
    (tmp_path / "json_2.1.1" / listed[3] / "game.tw-pddl").unlink()
    open_library.cache_clear()
    source = TaskSource(tmp_path)
    assert source.ids("valid_unseen") == listed
    with pytest.raises(DataMissing, match=f"134 official games, 1 of them are not in .*{listed[3]}.*download"):
        source.require("valid_unseen")
    with pytest.raises(DataMissing, match=f"{listed[3]}.*download"):
        source.game(listed[3])
    assert wins(Engine(source.game(listed[4])))
