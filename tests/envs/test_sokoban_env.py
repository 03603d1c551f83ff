"""``seed/Sokoban-v0`` as an environment: interface, observation modes, oracle, determinism, privacy of knowledge."""

from __future__ import annotations

import json
import os
import pickle
import re
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from played import played

import seed_envs
from seed_envs.chat import build_messages
from seed_envs.errors import (
    DataInvalid,
    EpisodeEnded,
    InvalidState,
    OracleUnavailable,
    UnknownOption,
    UnknownSplit,
    UnknownTask,
)
from seed_envs.profiles import get_profile
from seed_envs.trajectory import Step, Trajectory
from seed_envs.vision.gif import record_oracle, save_gif
from seed_envs.vision.sokoban.__main__ import main
from seed_envs.vision.sokoban.annotator import annotate
from seed_envs.vision.sokoban.env import SokobanEnv
from seed_envs.vision.sokoban.prompts import PROFILES

CONFIGURATIONS: list[dict[str, Any]] = [
    {},
    {"obs_mode": "text", "text_format": "tab"},
    {"obs_mode": "image", "tile": 16, "rules": "strict"},
    {"levels": "classic", "parsing": "substring"},
    {"boxes": 2, "size": (6, 7), "action_set": "9", "max_actions": 3},
    {"levels": "pack-8x8-b2", "shaping": 0.5, "action_set": "5"},
]


def play_oracle(env: gym.Env[Any, Any], **reset: Any) -> tuple[int, float, dict[str, Any]]:
    _, info = env.reset(**reset)
    total, steps, ended = 0.0, 0, False
    while not ended:
        _, reward, terminated, truncated, info = env.step(env.unwrapped.oracle_action())  # type: ignore[attr-defined]
        total, steps, ended = total + float(reward), steps + 1, terminated or truncated
    return steps, total, info


@pytest.mark.parametrize("arguments", CONFIGURATIONS, ids=[str(number) for number in range(len(CONFIGURATIONS))])
def test_the_checker_is_silent(arguments: dict[str, Any]) -> None:
    env = gym.make("seed/Sokoban-v0", **arguments)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped, skip_render_check=True)
    assert env.spec is not None
    assert env.spec.max_episode_steps == env.unwrapped.turn_limit  # type: ignore[attr-defined]
    assert gym.make(env.spec).spec == env.spec


@pytest.mark.parametrize(
    ("arguments", "limit"),
    [
        ({}, 20),
        ({"min_steps": 12, "max_steps": 30}, 40),
        ({"levels": "classic"}, 15),
        ({"levels": "classic", "boxes": 2}, 100),
        ({"levels": "pack-6x6-b2"}, 36),
        ({"levels": "pack-8x8-b2", "max_episode_steps": 7}, 7),
        ({"levels": "pack-8x8-b2", "max_episode_steps": 700}, 700),
    ],
)
def test_the_limit_belongs_to_the_levels_and_a_number_of_the_users_wins(arguments: dict[str, Any], limit: int) -> None:
    env = gym.make("seed/Sokoban-v0", obs_mode="text", **arguments)
    assert env.spec is not None and env.spec.max_episode_steps == limit
    env.reset(seed=0)
    turns, ended = 0, False
    while not ended:
        _, _, terminated, ended, _ = env.step("fly")
        turns += 1
    assert (turns, terminated) == (limit, False)
    assert seed_envs.make_agent_env("seed/Sokoban-v0", "paper").spec.max_episode_steps == 15  # type: ignore[union-attr]


@pytest.mark.parametrize("levels", ["retrograde", "classic", "pack-6x6-b2"])
def test_the_oracle_solves_every_level_at_the_stated_length(levels: str) -> None:
    env = gym.make("seed/Sokoban-v0", levels=levels, obs_mode="text", max_episode_steps=100, split="test")
    for task_id in list(env.unwrapped.task_ids("test"))[:120]:  # type: ignore[attr-defined]
        _, info = env.reset(options={"task_id": task_id})
        optimal = info["sokoban"]["oracle"]["optimal_steps"]
        steps, total, info = play_oracle(env, options={"task_id": task_id})
        assert info["success"]
        assert info["stop_reason"] == "success"
        assert info["score"] == 1.0
        assert steps == optimal == info["sokoban"]["steps"]
        if levels != "pack-6x6-b2":
            assert total == pytest.approx(-0.1 * steps + 11)


def test_the_oracle_plays_boxoban(data_dir: Path) -> None:
    env = SokobanEnv(levels=str(data_dir / "boxoban"), obs_mode="text")
    for number in (0, 400):
        _, info = env.reset(options={"task_id": f"boxoban/unfiltered_test/000/{number}"})
        oracle = info["sokoban"]["oracle"]
        assert (oracle["solver"], oracle["optimal_steps"], oracle["distance"]) == ("astar", None, None)
        terminated = False
        while not terminated:
            _, _, terminated, _, info = env.step(env.oracle_action())
        assert info["success"]


def test_steps_repeat_exactly_in_two_copies_and_across_processes() -> None:
    def trace() -> list[tuple[Any, ...]]:
        env = gym.make("seed/Sokoban-v0", boxes=2, rules="strict")
        env.action_space.seed(0)
        rng = np.random.default_rng(0)
        found: list[tuple[Any, ...]] = []
        for episode in range(4):
            observation, info = env.reset(seed=3 if episode == 0 else None)
            found.append((observation["text"], observation["image"].sum(), info))
            for word in rng.choice(["up", "down", "left", "right", "jump"], size=12):
                observation, reward, terminated, truncated, info = env.step(str(word))
                found.append((observation["text"], observation["image"].sum(), reward, terminated, truncated, info))
                if terminated or truncated:
                    break
        return found

    assert repr(trace()) == repr(trace())
    program = (
        "import gymnasium as gym, seed_envs\n"
        "env = gym.make('seed/Sokoban-v0', boxes=2, obs_mode='text')\n"
        "print([env.reset(seed=seed)[0] for seed in range(20)])"
    )
    outputs = {
        subprocess.run([sys.executable, "-c", program], env={**os.environ, "PYTHONHASHSEED": value},
                       capture_output=True, text=True, check=True).stdout
        for value in ("0", "77")
    }  # fmt: skip
    assert len(outputs) == 1


def test_threads_play_the_same_levels() -> None:
    def levels(_: int) -> list[str]:
        env = SokobanEnv(obs_mode="text", boxes=2)
        return [env.reset(seed=seed)[1]["sokoban"]["level_hash"] for seed in range(40)]

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(levels, range(4)))
    assert all(result == results[0] for result in results)
    assert len(set(results[0])) > 35


def test_the_global_generators_are_left_alone() -> None:
    import random

    random.seed(1)
    np.random.seed(1)
    before = random.getstate(), np.random.get_state()[1].tobytes()  # type: ignore[index]
    for levels in ("retrograde", "classic"):
        SokobanEnv(levels=levels).reset(seed=5)
    assert before == (random.getstate(), np.random.get_state()[1].tobytes())  # type: ignore[index]


def test_observation_modes_hold_what_they_say() -> None:
    text = SokobanEnv(obs_mode="text").reset(seed=0)[0]
    both = SokobanEnv(obs_mode="both").reset(seed=0)[0]
    image = SokobanEnv(obs_mode="image").reset(seed=0)[0]
    assert isinstance(text, str)
    assert isinstance(both, dict)
    assert isinstance(image, dict)
    assert both["text"] == text
    assert image["text"] == ""
    assert np.array_equal(both["image"], image["image"])
    assert image["image"].shape == (168, 168, 3)
    assert image["image"].dtype == np.uint8


def test_an_observed_picture_does_not_change_later() -> None:
    env = SokobanEnv(obs_mode="image")
    env.reset(seed=0)
    first = env.step(env.oracle_action())[0]
    assert isinstance(first, dict)
    kept = first["image"].copy()
    env.step(env.oracle_action())
    assert np.array_equal(first["image"], kept)


@pytest.mark.parametrize("rules", ["classic", "strict"])
@pytest.mark.parametrize("mode", ["text", "image"])
def test_a_refused_action_changes_nothing_and_says_why(rules: Any, mode: Any) -> None:
    env = SokobanEnv(rules=rules, obs_mode=mode)
    env.reset(seed=0)
    before = env.get_state().game.room
    observation, reward, terminated, truncated, info = env.step("fly to the box")
    assert (reward, terminated, truncated) == (pytest.approx(-0.1), False, False)
    assert env.get_state().game.room == before
    assert info["action_valid"] is False
    assert "fly to the box" in info["invalid_reason"]
    assert info["sokoban"]["steps"] == (rules == "strict")
    assert "Action refused" in (observation if isinstance(observation, str) else observation["text"])
    _, _, _, _, info = env.step("up")
    assert info["action_valid"]


def test_several_actions_in_one_turn_stop_at_the_solution() -> None:
    env = SokobanEnv(size=7, obs_mode="text", max_actions=3)
    env.reset(options={"level": "######\n#@ $.#\n######"})
    _, reward, terminated, _, info = env.step("right, right, left")
    assert terminated
    assert reward == pytest.approx(10.8)
    assert info["sokoban"]["steps"] == 2
    assert env.reset(options={"level": "######\n#@ $.#\n######"})[1]["task_id"] == "custom"
    _, _, _, _, info = env.step("right, right, right, right")
    assert not info["action_valid"]


def test_action_set_nine_moves_without_pushing() -> None:
    env = SokobanEnv(action_set="9", obs_mode="text")
    env.reset(options={"level": "#####\n#@$.#\n#####"})
    assert env.step("move right")[4]["sokoban"]["moved_player"] is False
    assert env.oracle_action() == "push right"
    assert env.step("push right")[2]


def test_shaping_adds_exactly_the_decrease_of_the_distance() -> None:
    plain, shaped = SokobanEnv(obs_mode="text"), SokobanEnv(obs_mode="text", shaping=0.25)
    rng = np.random.default_rng(0)
    for seed in range(20):
        plain.reset(seed=seed)
        shaped.reset(seed=seed)
        table = plain.get_state().oracle.table
        assert table is not None

        def distance(table: Any = table) -> int:
            known = plain.get_state().oracle.distance(plain._game)
            return len(table.layers) if known is None else known

        for word in rng.choice(["up", "down", "left", "right"], size=10):
            before = distance()
            reward, terminated = plain.step(str(word))[1:3]
            assert shaped.step(str(word))[1] == pytest.approx(reward + 0.25 * (before - distance()))
            if terminated:
                break


def test_deadlocks_are_flagged_and_the_oracle_says_so() -> None:
    env = SokobanEnv(obs_mode="text", size=7)
    _, info = env.reset(options={"level": "#######\n#     #\n# @$ .#\n#     #\n#######"})
    assert info["sokoban"]["oracle"]["deadlock"] is False
    for word in ("down", "right", "up"):
        _, _, _, _, info = env.step(word)
    assert info["sokoban"]["oracle"]["deadlock"] is True
    assert info["sokoban"]["oracle"]["distance"] is None
    with pytest.raises(OracleUnavailable, match="deadlock"):
        env.oracle_action()


def test_snapshots_restore_position_picture_and_pickle() -> None:
    env, other = SokobanEnv(boxes=2), SokobanEnv(boxes=2)
    env.reset(seed=2)
    other.reset(seed=9)
    env.step(env.oracle_action())
    state = pickle.loads(pickle.dumps(env.get_state()))
    other.set_state(state)
    ended = False
    while not ended:
        one, two = env.step(env.oracle_action()), other.step(other.oracle_action())
        assert np.array_equal(one[0]["image"], two[0]["image"])  # type: ignore[index]
        assert one[0]["text"] == two[0]["text"]  # type: ignore[index]
        assert one[1:] == two[1:]
        ended = one[2]
    with pytest.raises(InvalidState, match="SokobanState"):
        env.set_state(("x",))


def test_knowledge_never_reaches_observation_or_prompt() -> None:
    """Whatever the oracle knows, an observation is a function of the visible cells alone."""
    env = SokobanEnv(boxes=2)
    seen: dict[bytes, str] = {}
    for seed in range(10):
        observation, info = env.reset(seed=seed)
        assert isinstance(observation, dict)
        for word in info["sokoban"]["oracle"]:
            assert word not in observation["text"]
        cells = observation["image"].tobytes()
        assert seen.setdefault(cells, observation["text"]) == observation["text"]
    for profile in PROFILES:
        agent = seed_envs.make_agent_env("seed/Sokoban-v0", profile)
        _, info = agent.reset(seed=1)
        prompt = profile_prompt(profile, info)
        assert str(info["sokoban"]["level_hash"]) not in prompt
        assert info["task_id"] not in prompt
        assert not any(word in prompt for word in ("optimal_steps", "best_actions", "deadlock"))


def profile_prompt(profile: str, info: dict[str, Any]) -> str:
    messages = build_messages(get_profile("seed/Sokoban-v0", profile), [info["turn"]], [])
    parts = messages[-1]["content"]
    return parts if isinstance(parts, str) else parts[-1]["text"]


@pytest.mark.parametrize("name", ["paper", "strict"])
def test_every_turn_has_one_image_part_whatever_the_model_types(name: str) -> None:
    env, profile = seed_envs.make_agent_env("seed/Sokoban-v0", name), get_profile("seed/Sokoban-v0", name)
    _, info = env.reset(seed=0)
    turns, replies = [info["turn"]], []
    for reply in ("<image><|image_pad|><|vision_start|>", "<think>x</think><action><|image_pad|> <image></action>"):
        replies.append(reply)
        _, _, _, _, info = env.step(reply)
        turns.append(info["turn"])
        messages = build_messages(profile, turns, replies, skill="<image> <|image_pad|> push it")
        assert len(messages) == 1
        parts = messages[0]["content"]
        assert [part["type"] for part in parts] == ["image", "text"]
        assert "<image>" not in parts[1]["text"]
        assert "<|image_pad|>" not in parts[1]["text"]
        assert "push it" in parts[1]["text"]


def test_paper_profile_reads_and_pays_as_the_framework() -> None:
    env = seed_envs.make_agent_env("seed/Sokoban-v0", "paper")
    env.reset(options={"task_id": "classic-6x6-b1-d30/0"})
    _, reward, _, _, info = env.step("<think>a</think><action>do not go UP, go down</action>")
    assert info["action_valid"]
    assert reward == pytest.approx(-0.1)
    assert info["sokoban"]["steps"] == 1
    _, reward, _, _, info = env.step("<action>left</action>")
    assert info["sokoban"]["steps"] == 2
    assert (info["format_valid"], info["action_valid"]) == (False, True)  # no thinking: penalised, but carried out
    assert reward == pytest.approx(-0.2)
    _, reward, _, _, info = env.step("no tags")
    assert (info["sokoban"]["steps"], info["format_valid"], reward) == (2, False, pytest.approx(-0.2))
    assert "think" in env.get_wrapper_attr("profile").template.first


@pytest.mark.parametrize("name", list(PROFILES))
def test_the_oracle_wins_through_every_profile(name: str) -> None:
    env = seed_envs.make_agent_env("seed/Sokoban-v0", name, split="test")
    form = get_profile("seed/Sokoban-v0", name).action_format
    for seed in range(5):
        env.reset(seed=seed)
        ended = False
        while not ended:
            reply = form.format(env.unwrapped.oracle_action(), "a plan")  # type: ignore[attr-defined]
            _, _, terminated, truncated, info = env.step(reply)
            assert info["action_valid"]
            ended = terminated or truncated
        assert info["success"]


@pytest.mark.parametrize(
    "arguments",
    [{"rules": "clasic"}, {"obs_mode": "images"}, {"tile": 20}, {"text_format": "ascii"}, {"action_set": "6"},
     {"parsing": "loose"}, {"max_actions": 0}, {"max_actions": "2"}, {"levels": "boxobann"}, {"levels": None},
     {"size": (7,)}, {"shaping": float("nan")}],
)  # fmt: skip
def test_unknown_arguments_are_named(arguments: dict[str, Any]) -> None:
    with pytest.raises(UnknownOption, match=re.escape(str(next(iter(arguments.values()))))):
        SokobanEnv(**arguments)


@pytest.mark.parametrize(
    "arguments",
    [{"size": "6"}, {"size": 6.5}, {"size": 3}, {"size": 99}, {"boxes": True}, {"boxes": 0}, {"min_steps": 0},
     {"max_steps": 1000}, {"min_steps": 20}],
)  # fmt: skip
@pytest.mark.parametrize("levels", ["retrograde", "classic"])
def test_kinds_of_levels_that_cannot_be_are_refused_at_once(arguments: dict[str, Any], levels: str) -> None:
    with pytest.raises(ValueError, match=str(next(iter(arguments.values())))):
        SokobanEnv(levels=levels, **arguments)


@pytest.mark.parametrize("arguments", [{"max_steps": 999}, {"size": (4, 12)}, {"size": [5, 6], "boxes": 2}])
def test_every_kind_that_is_accepted_plays_its_own_tasks(arguments: dict[str, Any]) -> None:
    env = SokobanEnv(**arguments)
    observation, info = env.reset(seed=0)
    assert env.observation_space.contains(observation)
    assert env.reset(options={"task_id": info["task_id"]})[1]["sokoban"] == info["sokoban"]


def test_a_map_of_your_own_is_one_unsolved_map_and_no_task_id() -> None:
    env = SokobanEnv()
    one = "#####\n#@$.#\n#####"
    assert env.reset(options={"level": one})[1]["task_id"] == "custom"
    with pytest.raises(UnknownOption, match="exclude each other"):
        env.reset(options={"level": one, "task_id": "retro-6x6-b1-s4-15/test/0"})
    with pytest.raises(UnknownOption, match="2 maps"):
        env.reset(options={"level": f"{one}\n\n{one}"})
    with pytest.raises(DataInvalid, match="every box already"):
        env.reset(options={"level": "#####\n#@ *#\n#####"})


def test_states_of_rooms_of_another_size_are_refused() -> None:
    larger = SokobanEnv(size=8)
    larger.reset(seed=0)
    env = SokobanEnv()
    env.reset(seed=0)
    with pytest.raises(InvalidState, match="8x8"):
        env.set_state(larger.get_state())
    assert env.observation_space.contains(env.step("up")[0])


def test_nothing_is_drawn_before_the_first_reset() -> None:
    for mode in ("ansi", "rgb_array"):
        with pytest.raises(EpisodeEnded, match="reset"):
            SokobanEnv(render_mode=mode).render()


def test_unknown_tasks_splits_and_maps_are_named() -> None:
    env = SokobanEnv()
    with pytest.raises(UnknownTask, match="retro-6x6-b1-s4-15/test/0"):
        env.reset(options={"task_id": "levle 3"})
    with pytest.raises(UnknownSplit, match="validation"):
        env.reset(options={"split": "valid"})
    with pytest.raises(UnknownOption, match="8x8"):
        env.reset(options={"level": "########\n" + "#@$.   #\n" * 1 + "#      #\n" * 5 + "########"})
    with pytest.raises(UnknownOption, match="string"):
        env.reset(options={"level": 3})
    with pytest.raises(OracleUnavailable, match="shaping"):
        rows = ["##########", "#@ $ .   #", *["#  $  .  #"] * 3, *["#        #"] * 4, "##########"]
        SokobanEnv(size=10, shaping=1.0).reset(options={"level": "\n".join(rows)})


def test_rendering_is_pure_and_makes_gifs(tmp_path: Path) -> None:
    env = gym.make("seed/Sokoban-v0", render_mode="rgb_array", tile=16)
    env.reset(seed=0)
    picture = env.render()
    assert np.array_equal(picture, env.render())  # type: ignore[arg-type]
    frames = record_oracle(env, [0, 1])
    assert all(frame.shape == (96, 96, 3) for frame in frames)
    save_gif(frames, tmp_path / "deep" / "oracle.gif")
    from PIL import Image

    with Image.open(tmp_path / "deep" / "oracle.gif") as animation:
        assert getattr(animation, "n_frames", 1) > 8
        assert np.abs(np.asarray(animation.convert("RGB")).astype(int) - frames[0]).mean() < 12
    text = gym.make("seed/Sokoban-v0", render_mode="ansi")
    observation, _ = text.reset(seed=0)
    assert text.render() == observation["text"]


def test_skills_are_written_from_the_trajectory_alone() -> None:
    def trajectory(words: list[str], success: bool, **extras: Any) -> Trajectory:
        steps = [Step("", [], word, word, word in ("up", "down", "left", "right"), "odd word", -0.1) for word in words]
        return Trajectory("seed/Sokoban-v0", "t", success=success, steps=steps, extras={"sokoban": extras})

    texts = {
        "won": annotate(trajectory(["up", "up", "left"], True, pushes=1)),
        "refused": annotate(trajectory(["jump", "fly", "up"], False, pushes=0)),
        "idle": annotate(trajectory(["up", "left", "up"], False, pushes=0)),
        "back": annotate(trajectory(["up", "down", "up", "down"], False, pushes=1)),
        "short": annotate(trajectory(["up", "left", "up"], False, pushes=1)),
    }
    cornered = trajectory(["up"], False, pushes=1)
    cornered.final_observation = "# # # #\n# X _ #\n# P O #\n# # # #"
    texts["corner"] = annotate(cornered)
    assert "up 2 times, left" in texts["won"]
    assert "odd word" in texts["refused"]
    assert "No box was pushed" in texts["idle"]
    assert "undid" in texts["back"]
    assert "row 2, column 2" in texts["corner"]
    assert len(set(texts.values())) == 6
    assert all(8 <= len(text.split()) <= 90 for text in texts.values())


def test_skills_of_played_episodes_name_what_happened() -> None:
    still, won = played("seed/Sokoban-v0", "strict-text", "none", None)
    assert "unknown action 'none'" in annotate(still)
    assert won.extras["sokoban"]["pushes"] > 0
    assert f"Here {won.num_steps} moves solved it" in annotate(won)
    idle = replace(still, steps=[replace(step, format_valid=True, action_valid=True) for step in still.steps])
    assert "No box was pushed" in annotate(idle)
    assert annotate(Trajectory.from_json(json.loads(json.dumps(idle.to_json())))) == annotate(idle)


def test_commands_show_solve_pack_and_draw(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "--count", "2", "--boxes", "2"]) == 0
    shown = capsys.readouterr().out
    assert shown.count("optimal steps") == 2
    (tmp_path / "two.xsb").write_text(shown)
    assert main(["solve", str(tmp_path / "two.xsb")]) == 0
    assert capsys.readouterr().out.count("solved") == 2
    assert main(["pool", "--count", "5", "--output", str(tmp_path / "five.pool")]) == 0
    assert (
        main(["gif", "--levels", str(tmp_path / "five.pool"), "--count", "1", "--output", str(tmp_path / "a.gif")]) == 0
    )
    assert (tmp_path / "a.gif").stat().st_size > 500
    assert main(["show", "--levels", "nowhere.xsb"]) == 2
    assert "nowhere.xsb" in capsys.readouterr().err


def test_info_has_the_same_keys_everywhere_and_is_json_after_tuples(data_dir: Path) -> None:
    keys = None
    for levels in ("retrograde", str(data_dir / "boxoban")):
        env = SokobanEnv(obs_mode="text", levels=levels)
        for info in (env.reset(seed=0)[1], env.step("up")[4]):
            info.pop("data", None)
            found = (set(info), set(info["sokoban"]), set(info["sokoban"]["oracle"]))
            keys = keys or found
            assert found == keys
            json.dumps(info, default=tuple)
