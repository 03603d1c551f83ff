"""No argument of an environment is ignored: alone or beside any other one it shows in what is played, or is refused."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from alfworld_files import document, put_game

import seed_envs  # noqa: F401
from seed_envs.errors import OracleUnavailable, SeedEnvsError
from seed_envs.webshop.__main__ import main as webshop

BASE: dict[str, dict[str, Any]] = {"seed/WebShop-v0": {"num_products": 200, "split": "all"}}
"""Small where the default would be slow to build."""

SAMPLES: dict[str, dict[str, Any]] = {
    "seed/ALFWorld-v0": {
        "split": "procedural_train",
        "task_types": ["pick_clean_then_place_in_recep"],
        "scenes": [1, 2, 3, 4, 5, 301],
        "generator": {"copies": 2},
        "data_dir": "{alfworld}",
        "wording": "put",
        "quirks": "fixed",
        "feedback": "verbose",
        "parser": "tolerant",
        "opening": "start",
        "privileged": True,
        "render_mode": "ansi",
    },
    "seed/WebShop-v0": {
        "mode": "fixed",
        "rules": {"feedback": True},
        "catalogue": "files",
        "data_dir": "{webshop}",
        "num_products": 190,
        "catalogue_seed": 1,
        "price_seed": 1,
        "human_goals": True,
        "hostile": True,
        "show_attrs": True,
        "reviews": True,
        "nouns": "words",
        "obs_mode": "json",
        "reward_type": "success",
        "num_prev_obs": 1,
        "num_prev_actions": 1,
        "split": "product-train",
        "render_mode": "ansi",
    },
    "seed/Sokoban-v0": {
        "rules": "strict",
        "levels": "pack-6x6-b1",
        "size": 7,
        "boxes": 2,
        "min_steps": 6,
        "max_steps": 9,
        "obs_mode": "text",
        "text_format": "coordinates",
        "tile": 32,
        "action_set": "9",
        "max_actions": 3,
        "parsing": "substring",
        "shaping": 0.5,
        "split": "test",
        "render_mode": "ansi",
    },
    "seed/EZPoints-v0": {
        "rules": "strict",
        "hands": "uniform",
        "target": 10,
        "obs_mode": "text",
        "size": 300,
        "parsing": "substring",
        "split": "test",
        "render_mode": "ansi",
    },
    "seed/Points24-v0": {
        "rules": "rl4vlm",
        "target": 20,
        "obs_mode": "text",
        "size": 300,
        "parsing": "substring",
        "split": "test",
        "render_mode": "ansi",
    },
    "seed/SearchQA-v0": {
        "split": "test",
        "collection": "tiny",
        "topk": 2,
        "max_turns": 6,
        "protocol": "verl-agent",
        # "mode" shows only where a gold answer is nothing but an article; see the tests of answers.
        "reward": "f1",
        "observation_budget": 150,
        "seed": 1,
        "render_mode": "ansi",
    },
}
"""Environment -> argument -> a value that is not the default."""


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("data")
    put_game(root / "alfworld", "mine/task/trial_1", document("compact/train/0"))
    assert webshop(["generate", str(root / "webshop"), "--num-products", "200", "--seed", "3"]) == 0
    return {"alfworld": root / "alfworld", "webshop": root / "webshop"}


def played(env_id: str, arguments: dict[str, Any], folders: dict[str, Path]) -> str:
    """A hash of all that can be seen of an environment, or the name of the error that refuses the arguments."""
    filled = {
        name: value.format(**folders) if isinstance(value, str) and "{" in value else value
        for name, value in arguments.items()
    }
    try:
        env = gym.make(env_id, disable_env_checker=True, **{**BASE.get(env_id, {}), **filled})
        seen: list[Any] = [repr(env.observation_space), repr(env.action_space), env.render_mode]
        for seed in range(3):
            seen.append(env.reset(seed=seed))
            seen.append(env.render())
            for action in script(env):
                result = env.step(action)
                seen.append(result)
                if result[2] or result[3]:
                    break
        env.close()
    except (SeedEnvsError, ValueError) as error:
        return f"refused: {error}"
    return hashlib.sha256(json.dumps(seen, default=plain, sort_keys=True).encode()).hexdigest()


def script(env: gym.Env[Any, str]) -> Iterator[str]:
    """Actions that touch what arguments change: sloppy, odd, repeated and right ones."""
    base: Any = env.unwrapped
    actions = {
        "alfworld": ["GO TO the drawer 1", "look", "help", "open x", "inventory", *["oracle"] * 12],
        "webshop": ["Search[Red Shoes]", "search[a]", *["click[next >]"] * 2, "oracle", "oracle", "click[reviews]"],
        "sokoban": ["UP", "push up", "up, up, left", "stay", "I go up", *["oracle"] * 15],
        "ezpoints": ['"11"', "x 3", "10", *["oracle"] * 5],
        "points24": ['"11"', "x 3", "10", *["oracle"] * 9],
        "search_qa": ["nonsense", *["oracle"] * 6],
    }[base.name]
    players = {"oracle": base.oracle_action, "rule": base.rule_action}
    for action in actions:
        try:
            chosen = players[action]() if action in players else action
            yield chosen.replace("<answer>", "<answer>surely ")  # half right, so that scores differ
        except OracleUnavailable:
            return
    while base.name == "webshop":
        yield base.rule_action()


def plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return hashlib.sha256(value.tobytes()).hexdigest()
    return value.tolist() if isinstance(value, np.generic) else list(value)


AGREE: dict[frozenset[str], str] = {
    frozenset({"catalogue", "data_dir"}): "a folder of files says catalogue='files' too",
    frozenset({"hands", "target"}): "cards for another target than 12 are dealt uniformly anyway",
}
"""Pairs of which one implies the other."""


@pytest.mark.parametrize("env_id", SAMPLES)
def test_no_argument_is_ignored(env_id: str, folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEBSHOP_DATA", str(folders["webshop"]))
    samples = SAMPLES[env_id]
    default = played(env_id, {}, folders)
    alone = {name: played(env_id, {name: value}, folders) for name, value in samples.items()}
    assert not default.startswith("refused")
    ignored = [name for name, seen in alone.items() if seen == default]
    for first, second in itertools.combinations(samples, 2):
        if frozenset((first, second)) in AGREE:
            continue
        if alone[first].startswith("refused") or alone[second].startswith("refused"):
            continue
        both = played(env_id, {first: samples[first], second: samples[second]}, folders)
        if both == alone[first]:
            ignored.append(f"{second} beside {first}")
        if both == alone[second]:
            ignored.append(f"{first} beside {second}")
    assert ignored == []
