"""Which game is played: splits, ids, reset options, arguments, and what is said when they do not fit."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

import seed_envs
from seed_envs.alfworld.env import ALFWorldEnv
from seed_envs.alfworld.generator import rooms
from seed_envs.alfworld.goals import TASK_TYPES
from seed_envs.alfworld.tasks import manifest, scene_of, type_of
from seed_envs.errors import (
    DataMissing,
    NoTaskMatches,
    UnboundedSplit,
    UnknownOption,
    UnknownTask,
)

gym.register_envs(seed_envs)

HEAT = "pick_heat_then_place_in_recep"


@pytest.fixture
def env() -> Iterator[ALFWorldEnv]:
    made = ALFWorldEnv()
    yield made
    made.close()


def official(data_dir: Path, **kwargs: Any) -> ALFWorldEnv:
    return ALFWorldEnv(data_dir=data_dir / "alfworld", **kwargs)


def test_the_default_needs_no_data_and_seeds_choose_tasks(env: ALFWorldEnv, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SEED_DATA_DIR", raising=False)
    monkeypatch.setenv("SEED_CACHE_DIR", "/nonexistent")
    ids = [env.reset(seed=seed)[1]["task_id"] for seed in range(40)]
    assert ids == [env.reset(seed=seed)[1]["task_id"] for seed in range(40)]
    assert len(set(ids)) > 20
    assert set(ids) <= set(manifest("mini_train"))


def test_a_task_id_is_one_game(env: ALFWorldEnv) -> None:
    first = env.reset(seed=1, options={"task_id": "procedural/train/5"})
    second = ALFWorldEnv().reset(seed=2, options={"task_id": "procedural/train/5"})
    assert first[0] == second[0] and list(first[1]["admissible_actions"]) == list(second[1]["admissible_actions"])


def test_listed_splits_have_their_sizes_and_hashes_and_no_repeats(env: ALFWorldEnv, data_dir: Path) -> None:
    sizes = {"mini_train": 60, "mini_valid_seen": 30, "mini_valid_unseen": 30}
    sizes |= {"train": 3_553, "valid_seen": 140, "valid_unseen": 134}
    for split, size in sizes.items():
        listed = official(data_dir).task_ids(split)
        assert len(listed) == len(set(listed)) == size
        assert manifest(split).sha256 == hashlib.sha256("".join(f"{i}\n" for i in listed).encode()).hexdigest()
    assert [len(env.task_ids(f"compact_{part}")) for part in ("train", "validation", "test")] == [600, 192, 240]


def test_official_splits_are_played_by_id_type_and_scene(data_dir: Path) -> None:
    env = official(data_dir, split="valid_seen")
    task_id = env.task_ids("valid_seen")[7]
    assert env.reset(options={"task_id": task_id})[1]["task_id"] == task_id
    for family in TASK_TYPES.values():
        info = env.reset(seed=0, options={"task_type": family})[1]
        assert info["task_type"] == family and info["task_id"].startswith(f"valid_seen/{family}-")
    info = env.reset(seed=0, options={"scene": 302, "split": "train"})[1]
    assert "-302/" in info["task_id"]
    filtered = official(data_dir, split="train", task_types=["pick_and_place_simple"], scenes=[201, 202])
    assert all("-201/" in i or "-202/" in i for i in filtered.task_ids("train"))


def test_procedural_splits_obey_options_and_knobs() -> None:
    env = ALFWorldEnv(split="procedural_train", generator={"receptacles": 9, "kinds": 3, "copies": 1})
    for family in TASK_TYPES.values():
        info = env.reset(seed=3, options={"task_type": family})[1]
        assert info["task_type"] == family
        assert len(env.game.receptacles) <= 11
    info = env.reset(seed=3, options={"scene": 301})[1]
    assert "scene=301" in info["task_id"]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"task_id": "procedural/train/x"}, UnknownTask, "procedural/<part>"),
        ({"task_id": "procedural/train/5;kinds=-1"}, UnknownTask, "procedural/<part>"),
        ({"task_id": "procedural/train/5;pets=2"}, UnknownTask, "pets"),
        ({"task_id": "compact/train/05"}, UnknownTask, "compact/<part>"),
        ({"task_id": "somewhere"}, UnknownTask, "split/task/trial"),
        ({"task_type": "pick_and_place"}, UnknownOption, "pick_and_place_simple"),
        ({"tasktype": "x"}, UnknownOption, "task_type"),
        ({"scene": 11, "split": "procedural_train"}, NoTaskMatches, "11"),
        ({"scene": 3}, NoTaskMatches, "'mini_train' has scene in .3."),
        ({"scene": 3, "split": "compact_train"}, NoTaskMatches, "compact_train"),
        (
            {"scene": 401, "task_type": HEAT, "split": "procedural_train"},
            NoTaskMatches,
            "pick_heat.* and scene in .401.",
        ),
        ({"task_id": "compact/train/0", "split": "compact_test"}, UnknownOption, "no task of split 'compact_test'"),
        ({"task_id": "compact/train/0", "split": "train"}, UnknownOption, "no task of split 'train'"),
        ({"task_id": "procedural/train/0", "split": "mini_valid_seen"}, UnknownOption, "mini_valid_seen"),
        ({"task_id": "procedural/train/0", "split": "custom"}, UnknownOption, "custom"),
        ({"task_id": "compact/train/0", "task_type": HEAT}, UnknownOption, "has task_type 'pick_and_place_simple'"),
        ({"task_id": "compact/train/0", "task_type": "dance"}, UnknownOption, "'dance' is unknown"),
        ({"task_id": "procedural/train/0;scene=301", "scene": 302}, UnknownOption, "scene 301, not 302"),
        ({"task_id": "compact/train/0", "scene": 302}, UnknownOption, "without a number"),
        ({"scene": "kitchen"}, UnknownOption, "room number"),
    ],
)
def test_wrong_choices_are_explained(
    env: ALFWorldEnv, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        env.reset(seed=0, options=options)


def test_a_task_id_may_be_described_rightly(env: ALFWorldEnv) -> None:
    for options in (
        {"task_id": "procedural/train/0;scene=301", "scene": 301, "split": "procedural_train"},
        {"task_id": "procedural/train/0", "split": "mini_train"},
        {"task_id": "compact/train/0", "split": "compact_train", "task_type": "pick_and_place_simple"},
    ):
        assert env.reset(options=options)[1]["task_id"] == options["task_id"]


def test_listed_generated_tasks_are_drawn_by_room(env: ALFWorldEnv) -> None:
    scenes = {task_id: rooms.scene_of(task_id) for task_id in env.task_ids("mini_valid_unseen")}
    assert set(scenes.values()) <= set(rooms.scenes_of("valid_unseen"))
    wanted = sorted(scenes.values())[0]
    for seed in range(3):
        info = env.reset(seed=seed, options={"scene": wanted, "split": "mini_valid_unseen"})[1]
        assert scenes[info["task_id"]] == wanted
    limited = ALFWorldEnv(split="mini_valid_unseen", scenes=[wanted])
    assert list(limited.task_ids("mini_valid_unseen")) == [i for i, scene in scenes.items() if scene == wanted]


def test_families_and_rooms_that_do_not_go_together_are_never_drawn() -> None:
    """A bathroom heats nothing, and room 11 is held out: draws use what is left, whatever the seed."""
    env = ALFWorldEnv(split="procedural_train", task_types=[HEAT, "pick_and_place_simple"], scenes=[401, 11, 1])
    seen = set()
    for seed in range(40):
        task_id = env.reset(seed=seed)[1]["task_id"]
        seen.add((rooms.parse_id(task_id)[2].task_type, rooms.parse_id(task_id)[2].scene))
    assert seen == {(HEAT, 1), ("pick_and_place_simple", 1), ("pick_and_place_simple", 401)}
    knobs = ALFWorldEnv(split="procedural_train", task_types=[HEAT, "pick_and_place_simple"], generator={"scene": 401})
    assert {knobs.reset(seed=seed)[1]["task_type"] for seed in range(20)} == {"pick_and_place_simple"}


def test_wrong_arguments_are_explained(data_dir: Path) -> None:
    with pytest.raises(UnknownOption, match="'move', 'put'"):
        ALFWorldEnv(wording="shove")  # type: ignore[arg-type]
    for wrong, message in (
        ({"generator": {"receptacle": 3}}, "receptacles"),
        ({"generator": [1]}, "expected a mapping"),
        ({"task_types": "pick_and_place_simple"}, "a collection such as"),
        ({"scenes": 301}, "a collection such as .301."),
        ({"quirks": None}, "faithful"),
        ({"privileged": "yes"}, "expected true or false"),
        ({"engine": ["native"]}, "textworld"),
    ):
        with pytest.raises(UnknownOption, match=message):
            ALFWorldEnv(**wrong)
    with pytest.raises(UnboundedSplit, match="mini_train"):
        ALFWorldEnv().task_ids("procedural_train")
    with pytest.raises(UnknownTask, match="Did you mean"):
        official(data_dir).reset(options={"task_id": official(data_dir).task_ids("train")[0][:-1]})
    with pytest.raises(DataMissing, match="seed_envs.alfworld download"):
        official(data_dir, split="valid_unseen").reset(seed=0)


@pytest.mark.parametrize("split", ["train", "valid_seen", "valid_unseen"])
def test_listing_needs_no_data_and_playing_without_it_names_the_command(
    split: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SEED_DATA_DIR", str(tmp_path))
    monkeypatch.delenv("ALFWORLD_DATA", raising=False)
    env = ALFWorldEnv(split=split)
    listed = env.task_ids(split)
    assert len(listed) == len(manifest(split))
    for options in ({}, {"task_id": listed[0]}):
        with pytest.raises(DataMissing, match="python -m seed_envs.alfworld download"):
            env.reset(seed=0, options=options)
    with pytest.raises(DataMissing, match="python -m seed_envs.alfworld download"):
        env.require_data(split)


def test_valid_unseen_lists_the_official_games() -> None:
    listed = manifest("valid_unseen")
    assert len(listed) == 134 and list(listed) == sorted(listed)
    assert Counter(type_of(task_id) for task_id in listed) == {
        "look_at_obj_in_light": 18,
        "pick_and_place_simple": 24,
        "pick_clean_then_place_in_recep": 31,
        "pick_heat_then_place_in_recep": 23,
        "pick_cool_then_place_in_recep": 21,
        "pick_two_obj_and_place": 17,
    }
    rooms = {split: {scene_of(task_id) for task_id in manifest(split)} for split in ("train", "valid_seen")}
    assert {scene_of(task_id) for task_id in listed} == {10, 219, 308, 424}
    assert all(not scenes & {10, 219, 308, 424} for scenes in rooms.values())
