"""Scripts that were written against alfworld's batch interface see the same texts on ours."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import alfworld_scripts
import pytest

from seed_envs.alfworld.original_api import AlfredTWEnv, get_environment
from seed_envs.alfworld.sources import TaskSource
from seed_envs.alfworld.tasks import manifest
from seed_envs.errors import DataMissing, UnknownOption

GAMES = 30


@pytest.fixture(scope="module")
def tree(data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Thirty official games, five of each family, written out as alfworld's own download has them."""
    source, root = TaskSource(data_dir / "alfworld"), tmp_path_factory.mktemp("alfworld")
    by_family: dict[str, list[str]] = {}
    for task_id in manifest("valid_seen").ids:
        by_family.setdefault(task_id.split("/")[1].split("-")[0], []).append(task_id)
    for task_id in [task for tasks in by_family.values() for task in tasks[:5]]:
        _, task, trial = task_id.split("/")
        folder = root / "json_2.1.1" / "valid_unseen" / task / trial  # as the split that the scripts evaluate on
        folder.mkdir(parents=True)
        document = source.document(task_id)
        (folder / "game.tw-pddl").write_text(json.dumps({"solvable": True, **document}))
        (folder / "traj_data.json").write_text(json.dumps({"task_type": task.split("-")[0]}))
    return root


def transcripts(which: str, root: Path, games: int) -> dict:
    command = [sys.executable, alfworld_scripts.__file__, which, str(root), str(games)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


@pytest.mark.slow
def test_scripts_of_the_field_read_the_same_on_thirty_games(tree):
    if importlib.util.find_spec("textworld") is None or importlib.util.find_spec("alfworld") is None:
        pytest.skip("TextWorld: textworld or alfworld is not installed")
    ours, original = transcripts("ours", tree, GAMES), transcripts("original", tree, GAMES)
    assert ours["games"] == GAMES and ours["files"] == original["files"]
    assert ours["react"] == original["react"]
    assert ours["batch"] == original["batch"]


def test_a_tree_is_played_by_the_loops_of_react_and_of_batches(tree):
    told = transcripts("ours", tree, 3)
    assert told["games"] == GAMES and sum(entry[-1] is True for entry in told["react"]) == 3
    assert told["batch"][0][1] == ["admissible_commands", "extra.gamefile", "won"]


def test_the_experts_plans_win(tree):
    for expert in ("handcoded", "planner"):
        settings = alfworld_scripts.config(str(tree), "dagger", 50)
        settings["env"]["expert_type"] = expert
        settings["dataset"]["data_path"] = settings["dataset"]["eval_ood_data_path"]
        games = AlfredTWEnv(settings, "train")
        env = games.init_env(2)
        _, infos = env.reset()
        dones = (False, False)
        while not all(dones):
            plans = infos["extra.expert_plan"]
            _, scores, dones, infos = env.step([plan[0] if plan else "look" for plan in plans])
        assert scores == (1, 1) and infos["won"] == [True, True] and infos["extra.expert_plan"] == [[], []]


def test_what_is_not_there_is_refused(tree):
    with pytest.raises(UnknownOption, match="AlfredTWEnv"):
        get_environment("AlfredThorEnv")
    with pytest.raises(UnknownOption, match="eval_in_distribution"):
        AlfredTWEnv(alfworld_scripts.config(str(tree)), "valid_seen")
    nothing = alfworld_scripts.config(str(tree))
    nothing["env"]["task_types"] = [7]
    with pytest.raises(DataMissing, match="has no game of the families"):
        AlfredTWEnv(nothing, "eval_out_of_distribution")
    env = AlfredTWEnv(alfworld_scripts.config(str(tree), "ppo"), "eval_out_of_distribution")
    with pytest.raises(UnknownOption, match="training_method='ppo'"):
        env.init_env(1)


@pytest.mark.parametrize("folder", ["", "/nowhere/valid_unseen"])
def test_without_a_folder_of_games_the_packs_are_played(data_dir, monkeypatch, folder):
    monkeypatch.setenv("ALFWORLD_DATA", str(data_dir / "alfworld"))
    settings = alfworld_scripts.config("unused")
    settings["dataset"]["eval_id_data_path"] = folder
    assert AlfredTWEnv(settings, "eval_in_distribution").num_games == 140


@pytest.mark.parametrize(
    ("place", "named"),
    [
        ("my_games", "my_games"),
        ("json_2.1.1/mine", "json_2.1.1/mine/"),
        ("deep/valid_seen", "."),
        ("deep/sub", "deep/./"),
    ],
)
def test_a_folder_of_games_may_have_any_name_and_lie_below_the_one_that_is_named(tree, tmp_path, place, named):
    shutil.copytree(tree / "json_2.1.1" / "valid_unseen", tmp_path / place)
    settings = alfworld_scripts.config("unused")
    settings["dataset"]["eval_ood_data_path"] = os.path.join(tmp_path, named)
    games = AlfredTWEnv(settings, "eval_out_of_distribution")
    assert games.num_games == GAMES
    texts, infos = games.init_env(1).reset()
    assert "Your task is to: " in texts[0] and infos["extra.gamefile"][0] in games.game_files
    assert all(Path(path).is_file() for path in games.game_files)


@pytest.mark.parametrize(
    "names", [["procedural"], ["eval_in_distribution"], ["json_mine"], ["one/train", "two/train"], []]
)
def test_a_folder_of_games_that_ids_cannot_name_is_refused_in_words(tree, tmp_path, names):
    for name in names:
        shutil.copytree(tree / "json_2.1.1" / "valid_unseen", tmp_path / name)
    settings = alfworld_scripts.config("unused")
    settings["dataset"]["eval_ood_data_path"] = str(tmp_path)
    cases = [(DataMissing, "has no game"), (UnknownOption, "cannot be called"), (UnknownOption, "name one of these")]
    error, message = cases[len(names)]
    with pytest.raises(error, match=message):
        AlfredTWEnv(settings, "eval_out_of_distribution")
