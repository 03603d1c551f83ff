"""The environment: episodes, info, states, rendering, determinism."""

from __future__ import annotations

import copy
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
from alfworld_quirk_room import quirk_game

import seed_envs
from seed_envs.alfworld.actions import Rules
from seed_envs.alfworld.engine import Engine
from seed_envs.alfworld.env import ALFWorldEnv
from seed_envs.alfworld.goals import Goal
from seed_envs.alfworld.quirks import Quirks
from seed_envs.alfworld.rendering import room_page
from seed_envs.base import MAX_ACTION_LENGTH
from seed_envs.errors import (
    EpisodeEnded,
    InvalidState,
)

gym.register_envs(seed_envs)


@pytest.fixture
def env() -> Iterator[ALFWorldEnv]:
    made = ALFWorldEnv()
    yield made
    made.close()


def win(env: ALFWorldEnv) -> tuple[int, dict[str, Any]]:
    """Play the oracle to the end; returns commands used and the last info."""
    for number in range(1, 60):
        observation, reward, terminated, truncated, info = env.step(env.oracle_action())
        assert info["action_valid"], (observation, info["invalid_reason"])
        assert reward == (1.0 if terminated else 0.0) and not truncated
        if terminated:
            return number, info
    raise AssertionError("the oracle did not win in 59 commands")


# -- episodes ----------------------------------------------------------------------------------------------------------


def test_the_oracle_wins_every_mini_task() -> None:
    env = ALFWorldEnv()
    for split in ("mini_train", "mini_valid_seen", "mini_valid_unseen"):
        for task_id in env.task_ids(split):
            env.reset(options={"task_id": task_id})
            used, info = win(env)
            assert used == len(env.game.walkthrough)
            assert info["success"] and info["score"] == 1.0 and info["alfworld"]["goal_condition_rate"] == 1.0


def test_refused_commands_change_nothing_and_say_why(env: ALFWorldEnv) -> None:
    env.reset(options={"task_id": "compact/train/0"})
    before = env.get_state().state
    for action in ("open fridge 1", "xyzzy", "take mug 1 from desk 1", "", "go to", "x" * (MAX_ACTION_LENGTH + 1)):
        observation, reward, terminated, truncated, info = env.step(action)
        assert (observation, reward, terminated, truncated) == ("Nothing happens.", 0.0, False, False)
        assert not info["action_valid"] and info["invalid_reason"].endswith((".", "?"))
        assert env.get_state().state is before
    with pytest.raises(gym.error.InvalidAction):
        env.step(3)  # type: ignore[arg-type]


def test_no_step_after_the_end(env: ALFWorldEnv) -> None:
    env.reset(seed=0)
    win(env)
    with pytest.raises(EpisodeEnded):
        env.step("look")


def test_verbose_feedback_explains() -> None:
    env = ALFWorldEnv(feedback="verbose")
    env.reset(options={"task_id": "compact/train/0"})
    assert env.step("open fridge 1")[0] == "The fridge 1 is not here; go to it first."
    env.step("go to fridge 1")
    env.step("open fridge 1")
    assert env.step("open fridge 1")[0] == "The fridge 1 is already open."
    assert "Did you mean 'open'" in env.step("opne fridge 1")[0]


def test_tolerant_parser_reports_the_command_it_understood() -> None:
    env = ALFWorldEnv(parser="tolerant")
    env.reset(options={"task_id": "compact/train/0"})
    info = env.step("Go to the Fridge.")[4]
    assert info["action_valid"] and info["alfworld"]["command"] == "go to fridge 1"
    assert env.step("OPEN FRIDGE")[4]["alfworld"]["command"] == "open fridge 1"
    strict = ALFWorldEnv()
    strict.reset(options={"task_id": "compact/train/0"})
    assert not strict.step("Go to the Fridge.")[4]["action_valid"]


def test_lists_are_those_of_their_own_step(env: ALFWorldEnv) -> None:
    info = env.reset(options={"task_id": "compact/train/0"})[1]
    env.step("go to desk 1")
    assert "go to desk 1" in info["admissible_actions"], "read late, still the list at reset"


def test_privileged_facts_appear_only_on_request(env: ALFWorldEnv) -> None:
    options = {"task_id": "compact/train/6"}
    assert env.reset(options=options)[1]["alfworld"]["privileged"] is None
    secret = ALFWorldEnv(privileged=True).reset(options=options)[1]["alfworld"]["privileged"]
    assert secret["plan"] == list(env.game.walkthrough) and secret["dead_end"] is False
    assert sorted(secret["contents"]) == sorted(env.game.receptacles)


def test_openings_are_parts_of_the_full_text() -> None:
    texts = {
        opening: ALFWorldEnv(opening=opening).reset(options={"task_id": "compact/train/6"})[0]
        for opening in ("full", "room", "start")
    }
    assert texts["full"].startswith("-= Welcome") and texts["room"] in texts["full"]
    assert texts["start"] == "You are in the middle of a room."


def test_the_older_wording_is_played_by_both_experts() -> None:
    env = ALFWorldEnv(wording="put")
    env.reset(options={"task_id": "procedural/train/3"})
    assert "help" not in env.step("look")[4]["admissible_actions"]
    win(env)
    env.reset(options={"task_id": "procedural/train/3"})
    for _ in range(100):
        observation, _, terminated, _, info = env.step(env.rule_action())
        assert info["action_valid"]
        if terminated:
            break
    assert terminated and observation.startswith(
        ("You put the", "You turn on", "You clean", "You heat", "You cool", "You")
    )


@pytest.mark.parametrize("number", range(12))
def test_repaired_games_are_won_by_both_experts(number: int) -> None:
    env = ALFWorldEnv(quirks="fixed")
    env.reset(options={"task_id": f"compact/validation/{number}"})
    win(env)
    env.reset(options={"task_id": f"compact/validation/{number}"})
    assert any(env.step(env.rule_action())[2] for _ in range(60))


# -- states ------------------------------------------------------------------------------------------------------------


def test_states_are_saved_branched_and_carried_to_another_copy(env: ALFWorldEnv) -> None:
    env.reset(options={"task_id": "procedural/train/9"})
    for _ in range(2):
        env.step(env.oracle_action())
    saved, plan = env.get_state(), env.oracle_action()
    other = ALFWorldEnv()
    other.set_state(pickle.loads(pickle.dumps(saved)))
    assert other.oracle_action() == plan and other.task_id == "procedural/train/9"
    assert win(env)[0] == win(other)[0]
    env.set_state(saved)
    assert env.oracle_action() == plan
    assert win(env)[1]["success"]
    with pytest.raises(InvalidState):
        env.set_state("somewhere")  # type: ignore[arg-type]


def test_a_pickled_environment_plays_on_and_carries_no_library(data_dir: Path) -> None:
    env = ALFWorldEnv(data_dir=data_dir / "alfworld", split="valid_seen")
    env.reset(seed=1)
    env.step(env.rule_action())
    pickled = pickle.dumps(env)
    assert len(pickled) < 300_000
    twin = pickle.loads(pickled)
    assert twin.get_state() == env.get_state() and twin.rule_action() == env.rule_action()
    assert win(twin)[1]["task_id"] == win(env)[1]["task_id"]
    assert twin.reset(seed=2)[0] == env.reset(seed=2)[0] and twin.game is env.game, "one library per process"


def test_a_deep_copy_goes_its_own_way_and_shares_the_game(env: ALFWorldEnv) -> None:
    env.reset(seed=5, options={"task_id": "procedural/train/9"})
    twin = copy.deepcopy(env)
    assert twin.game is env.game
    before = env.get_state()
    win(twin)
    assert env.get_state() == before
    assert env.np_random.integers(1 << 30) == copy.deepcopy(twin).np_random.integers(1 << 30), (
        "same stream, own position"
    )
    env.action_space.seed(3)
    assert copy.deepcopy(env).action_space.sample() == env.action_space.sample()


def test_a_group_of_resets_shares_one_game() -> None:
    group = [ALFWorldEnv() for _ in range(4)]
    openings = {member.reset(options={"task_id": "procedural/train/2"})[0] for member in group}
    assert len(openings) == 1 and len({id(member.game) for member in group}) == 1


def test_the_explorer_goes_on_from_a_restored_state(env: ALFWorldEnv) -> None:
    env.reset(options={"task_id": "procedural/train/9"})
    for _ in range(4):
        env.step(env.rule_action())
    saved = env.get_state()
    following = [env.rule_action()]
    env.step(following[0])
    env.set_state(saved)
    assert env.rule_action() == following[0]


# -- pictures and determinism ------------------------------------------------------------------------------------------


def test_rendering_is_pure_and_self_contained() -> None:
    env = ALFWorldEnv(render_mode="html", split="compact_train")
    env.reset(options={"task_id": "compact/train/0"})
    env.step("go to fridge 1")
    env.step("<script>alert(1)</script>")
    page = env.render()
    assert page == env.render()
    assert "<script" not in page and "&lt;script&gt;" in page and "http" not in page
    assert page.count('class="place') == 12 and "fridge 1" in page
    text = ALFWorldEnv(render_mode="ansi")
    text.reset(options={"task_id": "compact/train/0"})
    text.step("go to fridge 1")
    assert text.render().endswith("> go to fridge 1\nYou arrive at fridge 1. The fridge 1 is closed.")
    assert ALFWorldEnv().render() is None


def test_the_map_marks_what_is_in_hand_but_still_listed() -> None:
    for ghosts in (True, False):
        engine = Engine(quirk_game(Goal("heat", "mug", "coffeemachine")), Rules(Quirks(ghosts=ghosts)))
        for command in ("go to countertop 1", "take mug 2 from countertop 1"):
            assert engine.act(command).valid
        page = room_page(engine.game, engine.state, [("", engine.game.sentence)])
        assert page.count('<li class="want ghost">mug 2</li>') == int(ghosts)
        assert page.count('<li class="want">mug 2</li>') == 1, "in hand"


@pytest.mark.parametrize("mode", ["ansi", "html"])
def test_pictures_hold_no_control_characters_that_an_agent_wrote(mode: str) -> None:
    env = ALFWorldEnv(render_mode=mode)
    env.reset(options={"task_id": "compact/train/0"})
    env.step("\x1b[31m\ud800\u202e")
    shown = env.render()
    assert shown.encode() and "\x1b" not in shown and r"\x1b[31m\ud800\u202e" in shown


SCRIPT = """
import hashlib, json
from seed_envs.alfworld.env import ALFWorldEnv
env = ALFWorldEnv(privileged=True)
lines = []
for split in ("mini_train", "procedural_valid_unseen", "compact_test"):
    for seed in range(6):
        lines.append(env.reset(seed=seed, options={"split": split}))
        for turn in range(12):
            action = env.rule_action() if turn % 2 else env.random_action()
            lines.append([action, *env.step(action)])
            if lines[-1][3]:
                break
print(hashlib.sha256(json.dumps(lines, default=list).encode()).hexdigest())
"""


def test_processes_with_different_hash_seeds_play_identically(repo: Path) -> None:
    digests = {
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=repo,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "4242")
    }
    assert len(digests) == 1


def test_info_is_json_apart_from_the_lazy_list(env: ALFWorldEnv) -> None:
    info = env.reset(seed=0)[1]
    assert json.loads(json.dumps({**info, "admissible_actions": list(info["admissible_actions"])}))


def test_an_endless_episode_does_not_grow(env: ALFWorldEnv) -> None:
    env.reset(options={"task_id": "compact/train/0"})
    for _ in range(5_000):
        env.step("examine nothing")
    assert len(env.get_state().transcript) <= 2_000
    win(env)
