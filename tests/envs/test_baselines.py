"""Rule-based and random players of every environment: they play whole episodes, deterministically, and not too well."""

from __future__ import annotations

import gymnasium as gym
import pytest

import seed_envs
from seed_envs.vision.sokoban.baseline import greedy_direction
from seed_envs.vision.sokoban.rules import Game
from seed_envs.vision.sokoban.xsb import parse_levels

gym.register_envs(seed_envs)

PANELS = [
    ("seed/ALFWorld-v0", "mini_valid_seen", {}, 8),
    ("seed/WebShop-v0", "test", {}, 12),
    ("seed/SearchQA-v0", "test", {"collection": "tiny"}, 14),
    ("seed/Sokoban-v0", "test", {"obs_mode": "text"}, 40),
    ("seed/EZPoints-v0", "test", {"obs_mode": "text"}, 40),
    ("seed/Points24-v0", "test", {"obs_mode": "text"}, 10),
]


def play(env, task_id, player, seed=5):
    _, info = env.reset(seed=seed, options={"task_id": task_id})
    actions, ended = [], False
    while not ended:
        actions.append(getattr(env.unwrapped, player)())
        _, _, terminated, truncated, info = env.step(actions[-1])
        ended = terminated or truncated
    return actions, info["success"]


@pytest.mark.parametrize("player", ["rule_action", "random_action"])
@pytest.mark.parametrize(("env_id", "split", "options", "count"), PANELS, ids=[panel[0] for panel in PANELS])
def test_players_finish_episodes_and_repeat_themselves(env_id, split, options, count, player):
    env = gym.make(env_id, split=split, **options)
    ids = list(env.unwrapped.task_ids(split))[:count]
    played = {task_id: play(env, task_id, player) for task_id in ids}
    assert all(isinstance(action, str) and action for actions, _ in played.values() for action in actions)
    assert {task_id: play(env, task_id, player) for task_id in ids} == played
    if player == "random_action" and env_id != "seed/SearchQA-v0":
        assert any(play(env, task_id, player, seed=6)[0] != played[task_id][0] for task_id in ids)
    env.close()


@pytest.mark.parametrize(
    ("room", "direction"),
    [
        ("#######\n#@ $. #\n#######", "right"),
        ("#######\n# .$ @#\n#######", "left"),
        ("#####\n# . #\n# $ #\n#  @#\n#####", "left"),
    ],
)
def test_the_greedy_sokoban_player_pushes_towards_the_target(room, direction):
    game = Game(parse_levels(room, "test")[0])
    assert greedy_direction(game) == direction
    for _ in range(6):
        if not game.solved:
            game.step({"up": 1, "down": 2, "left": 3, "right": 4}[greedy_direction(game)])
    assert game.solved
