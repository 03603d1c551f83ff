"""Folders as people have them: packs beside trees, several versions, and games that the original leaves out."""

from __future__ import annotations

import json
import multiprocessing
import re
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from alfworld_files import document, make_pack, put_game, wins

from seed_envs.alfworld import cache, receipt
from seed_envs.alfworld.__main__ import main
from seed_envs.alfworld.cache import open_library
from seed_envs.alfworld.engine import Engine
from seed_envs.alfworld.env import ALFWorldEnv
from seed_envs.alfworld.library import PACK_NAME, PackLibrary, open_source
from seed_envs.alfworld.sources import TaskSource, generated_game
from seed_envs.alfworld.tasks import OFFICIAL_SPLITS, manifest, plain_id
from seed_envs.errors import DataInvalid, DataMissing, UnknownTask

JUNK: dict[str, tuple[str, dict[str, Any]]] = {
    "movable receptacle": ("pick_and_place_with_movable_recep-Mug-Bowl-Shelf-1", {}),
    "sliced object": ("pick_and_place_simple-AppleSliced-None-Fridge-2", {}),
    "unsolvable": ("pick_and_place_simple-Mug-None-Shelf-3", {"solvable": False}),
    "broken or foreign": ("pick_and_place_simple-Mug-None-Shelf-4", {"pddl_problem": "(define (problem x))"}),
}
"""Reason -> task name and what is wrong with the file."""


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("SEED_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("SEED_DATA_DIR", "ALFWORLD_DATA"):
        monkeypatch.delenv(name, raising=False)
    open_library.cache_clear()
    yield
    open_library.cache_clear()


def add_junk(root: Path, each: int) -> int:
    """Put ``each`` games of every kind that is left out into a tree; returns how many."""
    for task, changes in JUNK.values():
        text = json.dumps(document("compact/train/0", **changes))
        for number in range(each):
            put_game(root, f"train/{task}/trial_T{number}", text)
    unchecked = document("compact/train/0")
    del unchecked["solvable"]
    put_game(root, "train/look_at_obj_in_light-Mug-None-DeskLamp-301/trial_T0", unchecked)
    put_game(root, "train/pick_and_place_simple-Mug-None-Shelf-5/trial_T0", "no json")
    return len(JUNK) * each + 2


def test_an_import_takes_what_the_original_would_play_and_says_what_it_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "data"
    for number in range(3):
        put_game(folder / "json_2.1.2", f"mine/task-{number}/trial_1", document(f"compact/train/{number}"))
    put_game(folder / "json_2.1.1", "mine/task-0/trial_1", document("compact/train/5"))
    junk = add_junk(folder / "json_2.1.1", 2)
    make_pack(folder, 2)
    assert main(["import", str(folder)]) == 0
    out = capsys.readouterr().out
    assert "5 games compiled" in out
    assert (
        f"found {6 + junk:,} games; official: train 0, valid_seen 0, valid_unseen 0; own: 5; left out: {junk + 1}"
        in out
    )
    assert "left out, unsolvable: 2, such as train/pick_and_place_simple-Mug-None-Shelf-3/trial_T0" in out
    assert "left out, never checked for a solution: 1" in out and "left out, the same id again: 1" in out
    assert "left out, broken or foreign: 3, such as train/pick_and_place_simple-Mug-None-Shelf-4/trial_T0: " in out
    assert "missing of valid_seen: 140 of 140" in out
    library = open_library(folder)
    assert isinstance(library, cache.CacheLibrary)
    assert all(wins(Engine(library.game(task_id))) for task_id in library.ids)
    assert {reason: len(names) for reason, names in library.skipped.items()} == {
        "movable receptacle": 2,
        "sliced object": 2,
        "unsolvable": 2,
        "broken or foreign": 3,
        "never checked for a solution": 1,
        "the same id again": 1,
    }


def test_own_games_that_cannot_be_played_are_never_offered(tmp_path: Path) -> None:
    add_junk(tmp_path, 1)
    source = TaskSource(tmp_path)
    with pytest.raises(DataMissing, match=r"none that can be played \(left out: .*unsolvable"):
        source.ids("custom")
    put_game(tmp_path, "mine/task/trial_1", document("compact/train/1"))
    open_library.cache_clear()
    assert TaskSource(tmp_path).ids("custom") == ("mine/task/trial_1",)
    env = ALFWorldEnv(split="custom", data_dir=tmp_path)
    for seed in range(5):
        assert env.reset(seed=seed)[1]["task_id"] == "mine/task/trial_1"
    with pytest.raises(DataInvalid, match="unsolvable; the original leaves such games out"):
        env.reset(options={"task_id": "train/pick_and_place_simple-Mug-None-Shelf-3/trial_T0", "split": None})


def test_a_folder_of_nothing_but_junk_is_imported_as_empty(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    junk = add_junk(tmp_path, 1)
    assert main(["import", str(tmp_path)]) == 0
    assert f"found {junk} games" in capsys.readouterr().out


def test_a_pack_does_not_hide_the_tree_beside_it(tmp_path: Path) -> None:
    make_pack(tmp_path, 2)
    put_game(tmp_path, "mine/task/trial_1", document("compact/train/9"))
    put_game(tmp_path, "train/task-0/trial_1", document("compact/train/7"))
    library = open_source(tmp_path)
    assert library.ids == ("mine/task/trial_1", "train/task-0/trial_1", "train/task-1/trial_1")
    tree_game = generated_game("compact/train/7")
    assert cache.pack_game(library.game("train/task-0/trial_1")) == cache.pack_game(tree_game)
    before = cache.fingerprint(tmp_path)
    put_game(tmp_path, "mine/task/trial_2", document("compact/train/8"))
    assert cache.fingerprint(tmp_path) != before, "a game beside a pack makes the compiled cache stale"


def test_the_official_games_are_found_exactly_among_2500_others(
    tmp_path: Path, data_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    for path in (data_dir / "alfworld").iterdir():
        (folder / path.name).symlink_to(path)
    unseen = json.dumps(document("compact/train/0"))
    for task_id in manifest("valid_unseen"):
        put_game(folder / "json_2.1.3", task_id, unseen)
    junk = add_junk(folder / "json_2.1.1", 624) + 2
    put_game(folder / "json_2.1.1", "train/pick_and_place_simple-Mug-None-Shelf-6/trial_T0", "[]")
    put_game(folder / "json_2.1.1", "train/pick_and_place_simple-Mug-None-Shelf-7/trial_T0", "{}")
    assert main(["import", str(folder)]) == 0
    library = open_library(folder)
    assert junk == 2_500 and len(library.ids) == 3_827
    found = receipt.make(library)
    assert (found.found, found.own) == (3_827 + junk, 0)
    assert found.listed == {"train": 3_553, "valid_seen": 140, "valid_unseen": 134}
    source = TaskSource(folder)
    for split in OFFICIAL_SPLITS:
        source.require(split)
    assert "missing" not in capsys.readouterr().out


# -- advice ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("variable", ["ALFWORLD_DATA", "SEED_DATA_DIR", "", "argument"])
def test_the_advice_names_the_folder_that_was_looked_at(
    variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "some where" / "alfworld"
    if variable in ("ALFWORLD_DATA", "SEED_DATA_DIR"):
        monkeypatch.setenv(variable, str(folder if variable == "ALFWORLD_DATA" else folder.parent))
    elif not variable:
        folder = tmp_path / "cache" / "alfworld"
    source = TaskSource(folder if variable == "argument" else None)
    named = {"": "the download cache", "argument": "the argument"}.get(variable, f"${variable}")
    cure = re.escape(f"download --output {folder if ' ' not in str(folder) else repr(str(folder))}")
    with pytest.raises(DataMissing, match=f"{re.escape(named)} points at .*{cure}"):
        source.require("valid_seen")
    make_pack(folder, 2)
    with pytest.raises(DataMissing, match=rf"named by {re.escape(named)}\).*{cure}"):
        source.require("valid_seen")
    with pytest.raises(DataMissing, match=f"named by .*{cure}"):
        source.game(manifest("valid_seen")[0])
    # The cure works, also beside the pack that is already there.
    for task_id in manifest("valid_seen"):
        put_game(folder, task_id, document("compact/train/0"))
    open_library.cache_clear()
    TaskSource(folder if variable == "argument" else None).require("valid_seen")


def test_the_folder_of_alfworlds_own_download_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put_game(tmp_path / "home/.cache/alfworld/json_2.1.1", "mine/task/trial_1", document("compact/train/0"))
    assert TaskSource().ids("custom") == ("mine/task/trial_1",)
    assert main(["import"]) == 0
    assert "1 games compiled" in capsys.readouterr().out


# -- packs without walkthroughs ----------------------------------------------------------------------------------------


def test_a_pack_without_walkthroughs_is_played_and_exported(tmp_path: Path, data_dir: Path) -> None:
    folder = tmp_path / "data"
    make_pack(folder, 1, walkthrough=None)
    for name in ("alfred_domain.pddl", "grammar_template.twl2"):
        shutil.copy(data_dir / "alfworld" / name, folder / name)
    target = tmp_path / "game.tw-pddl"
    assert main(["export", "train/task-0/trial_1", "--data-dir", str(folder), "--output", str(target)]) == 0
    assert json.loads(target.read_text())["walkthrough"] == []
    assert open_library(folder.resolve()).game("train/task-0/trial_1").walkthrough == ()


def test_the_original_engine_plays_a_pack_without_walkthroughs(tmp_path: Path, data_dir: Path) -> None:
    pytest.importorskip("textworld", reason="TextWorld: the original engine is not installed")
    folder = tmp_path / "data"
    make_pack(folder, 1, walkthrough=None)
    for name in ("alfred_domain.pddl", "grammar_template.twl2"):
        shutil.copy(data_dir / "alfworld" / name, folder / name)
    env = ALFWorldEnv(engine="textworld", data_dir=folder)
    try:
        env.reset(options={"task_id": "train/task-0/trial_1"})
        while True:
            _, _, terminated, _, info = env.step(env.oracle_action())
            assert info["action_valid"]
            if terminated:
                break
        assert info["success"]
    finally:
        env.close()


def test_the_compiled_cache_reads_its_pack_once(
    tmp_path: Path, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "data"
    make_pack(folder, 3)
    for name in ("alfred_domain.pddl", "grammar_template.twl2"):
        shutil.copy(data_dir / "alfworld" / name, folder / name)
    cache.build_cache(folder)
    library = open_library(folder)
    opened: list[Path] = []
    init = PackLibrary.__init__

    def counted(self: PackLibrary, path: Path) -> None:
        opened.append(path)
        init(self, path)

    monkeypatch.setattr(PackLibrary, "__init__", counted)
    for task_id in library.ids:
        assert library.document(task_id)["walkthrough"]
    assert opened == [folder / PACK_NAME]


# -- several builders --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_builders_do_not_disturb_each_other(kind: str, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    make_pack(folder, 3)
    make = threading.Thread if kind == "threads" else multiprocessing.get_context("fork").Process
    builders = [make(target=cache.build_cache, args=(folder,)) for _ in range(4)]
    for builder in builders:
        builder.start()
    for builder in builders:
        builder.join()
    path = cache.cache_path(folder)
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]
    assert len(cache.CacheLibrary(path).ids) == 3


def test_every_byte_of_a_compiled_cache_is_hashed(tmp_path: Path) -> None:
    make_pack(tmp_path / "data", 1)
    path = cache.build_cache(tmp_path / "data")
    raw = path.read_bytes()
    for at in range(0, len(raw), 7):
        path.write_bytes(raw[:at] + bytes([raw[at] ^ 4]) + raw[at + 1 :])
        with pytest.raises(DataInvalid):
            cache.CacheLibrary(path)


# -- names that people have --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "{id}",
        "/data/json_2.1.1/{id}/game.tw-pddl",
        "~/.cache/alfworld/json_2.1.1/{id}/traj_data.json",
        "json_2.1.1/{id}",
        "{short}",
        "eval_out_of_distribution/{short}",
        "/data/{id}/",
    ],
)
def test_a_game_is_found_by_the_names_people_have(name: str) -> None:
    for task_id in (manifest("valid_unseen")[0], manifest("valid_unseen")[77]):
        assert plain_id(name.format(id=task_id, short=task_id.partition("/")[2])) == task_id


@pytest.mark.parametrize("name", ["compact/test/5", "procedural/train/17;scene=301", "nonsense", "a/b", "a/b/c", ""])
def test_other_texts_are_left_alone(name: str) -> None:
    assert plain_id(name) == name


def test_the_originals_names_work_in_the_environment(tmp_path: Path) -> None:
    listed = manifest("valid_seen")
    for task_id in listed:
        put_game(tmp_path, task_id, document("compact/train/0"))
    env = ALFWorldEnv(split="eval_in_distribution", data_dir=tmp_path)
    assert env.split == "valid_seen" and tuple(env.task_ids("eval_in_distribution")) == tuple(listed)
    _, info = env.reset(seed=0, options={"split": "eval_in_distribution"})
    assert info["task_id"] in listed
    _, info = env.reset(options={"task_id": f"/somewhere/{listed[5]}/game.tw-pddl", "split": "eval_in_distribution"})
    assert info["task_id"] == listed[5]
    with pytest.raises(UnknownTask):
        env.reset(options={"task_id": "/somewhere/valid_seen/x/y/game.tw-pddl"})


def test_the_map_lists_places_in_name_order() -> None:
    env = ALFWorldEnv(render_mode="html", split="procedural_train")
    env.reset(seed=3)
    page = env.render()
    names = re.findall(r'<div class="place[^"]*"><div class="r[^"]*"><b>([a-z]+) (\d+)</b>', str(page))
    keys = [(kind, int(number)) for kind, number in names]
    assert len(keys) > 8 and keys == sorted(keys)


def test_demos_keep_what_was_there_and_what_was_played(tmp_path: Path) -> None:
    out = tmp_path / "demos.jsonl"
    out.write_text("precious\n")
    assert main(["demos", "mini_train", "--output", str(out), "--profile", "nope"]) == 2
    assert out.read_text() == "precious\n"
    put_game(tmp_path / "tree", "mine/a/trial_1", document("compact/train/0"))
    assert main(["demos", "custom", "--data-dir", str(tmp_path / "tree"), "--output", str(out)]) == 0
    assert len(out.read_text().splitlines()) == 1
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith("demos")) == ["demos.jsonl"]
