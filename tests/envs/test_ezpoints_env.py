"""``seed/EZPoints-v0`` as an environment: interface, pictures, profiles, determinism."""

from __future__ import annotations

import json
import pickle
import re
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from played import played

import seed_envs
from seed_envs.chat import build_messages
from seed_envs.errors import EpisodeEnded, InvalidState, UnboundedSplit, UnknownOption, UnknownSplit, UnknownTask
from seed_envs.profiles import get_profile, profile_table
from seed_envs.trajectory import Step, Trajectory
from seed_envs.vision.ezpoints.__main__ import main
from seed_envs.vision.ezpoints.annotator import annotate
from seed_envs.vision.ezpoints.cards import TABLE, card_picture
from seed_envs.vision.ezpoints.env import EZPointsEnv
from seed_envs.vision.ezpoints.hands import Card
from seed_envs.vision.ezpoints.points24 import Points24Env
from seed_envs.vision.ezpoints.render import SIZES, Board, card_sheet
from seed_envs.vision.ezpoints.rules import ezpoints
from seed_envs.vision.ezpoints.tasks import MANIFESTS, HandSource, hand_hash


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"rules": "rl4vlm"},
        {"rules": "strict", "obs_mode": "text"},
        {"hands": "uniform", "target": 11, "obs_mode": "image", "size": 300},
    ],
)
def test_the_checker_is_silent(arguments: dict[str, Any]) -> None:
    env = gym.make("seed/EZPoints-v0", **arguments)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped, skip_render_check=True)
    assert env.spec is not None
    assert env.spec.max_episode_steps == 8


@pytest.mark.parametrize("rules", ["classic", "strict", "rl4vlm"])
def test_every_listed_hand_is_won_in_four_steps(rules: Any) -> None:
    env = EZPointsEnv(rules=rules, obs_mode="text")
    for split in ("all", "test"):
        for task_id in env.task_ids(split):
            env.reset(options={"task_id": task_id})
            for step in range(4):
                _, reward, terminated, truncated, info = env.step(env.oracle_action())
                assert (terminated, truncated) == (step == 3, False)
            assert reward == 10.0
            assert (info["success"], info["score"], info["stop_reason"]) == (True, 1.0, "success")


def test_a_long_formula_truncates_and_names_its_reason() -> None:
    env = EZPointsEnv(obs_mode="text")
    env.reset(options={"task_id": "cards/H5-S7"})
    for token in "++++++":
        _, _, terminated, truncated, info = env.step(token)
        assert not (terminated or truncated)
    _, _, terminated, truncated, info = env.step("=")
    assert (terminated, truncated, info["stop_reason"]) == (False, True, "turn_limit")


@pytest.mark.parametrize("feedback", ["verbose", "plain"])
def test_readable_and_accepted_are_two_facts_and_refusals_are_explained_where_asked(feedback: Any) -> None:
    for rules in ("classic", "strict"):
        env = EZPointsEnv(rules=rules, obs_mode="text", feedback=feedback)
        env.reset(options={"task_id": "cards/H5-S7"})
        observation, reward, _, _, info = env.step("9")
        assert reward == 0.0
        assert info["ezpoints"]["refused"] == "9 is not on the cards"
        assert (info["format_valid"], info["action_valid"]) == (True, False)
        assert ("9 is not on the cards" in observation) is (feedback == "verbose")
        observation, _, _, _, info = env.step("hello")
        assert (info["format_valid"], info["action_valid"]) == (False, False)
        assert "hello" in info["invalid_reason"]
        assert ("hello" in observation) is (feedback == "verbose")
        assert info["ezpoints"]["formula"] == ()


def test_unreadable_answers_play_a_random_token_under_rl4vlm() -> None:
    formulas = set()
    for seed in range(12):
        env = EZPointsEnv(rules="rl4vlm", obs_mode="text")
        env.reset(seed=seed, options={"task_id": "cards/H5-S7"})
        results = [env.step("???") for _ in range(1)]
        assert results[0][4]["action_valid"] is False
        formulas.add(results[0][4]["ezpoints"]["formula"])
    assert len(formulas) > 2


def test_text_and_picture_modes() -> None:
    options = {"task_id": "cards/HQ-S2"}
    text = EZPointsEnv(obs_mode="text")
    both = EZPointsEnv(obs_mode="both")
    image = EZPointsEnv(obs_mode="image")
    for env in (text, both, image):
        env.reset(options=options)
        env.step("10")
    observations = [env.step("+")[0] for env in (text, both, image)]
    assert observations[0] == "Cards: queen of hearts, 2 of spades\nFormula: 10+"
    assert observations[1]["text"] == observations[0]  # type: ignore[index]
    assert observations[2]["text"] == "10+"  # type: ignore[index]
    picture = observations[2]["image"]  # type: ignore[index]
    assert picture.shape == (308, 308, 3)  # type: ignore[union-attr]
    assert np.array_equal(picture, observations[1]["image"])  # type: ignore[index]


@pytest.mark.parametrize("size", SIZES)
def test_only_the_formula_line_changes_and_old_pictures_stay(size: int) -> None:
    board = Board((Card(5, "H"), Card(7, "S")), size)
    before = board.pixels.copy()
    assert tuple(before[size // 20, size // 2]) == TABLE
    assert before[int(size * 0.42), size // 4].min() > 200
    board.update("5 + 7")
    changed = np.flatnonzero((board.pixels != before).any((1, 2)))
    assert changed.min() > size * 0.84
    assert changed.max() < size
    board.update("")
    assert np.array_equal(board.pixels, before)
    board.update("( 10 + 10 ) * ( 10 + 10 ) * ( 10 - 10 ) / 10 / 10")
    assert (board.pixels[:, -size // 30 :] == TABLE).all()


def test_all_52_cards_differ_and_have_their_colour() -> None:
    pictures = {}
    for suit in "HSDC":
        for rank in range(1, 14):
            picture = card_picture(Card(rank, suit), 68, 95)
            pictures[picture.tobytes()] = (rank, suit)
            red = (picture[..., 0].astype(int) - picture[..., 1] > 100).sum()
            dark = (picture.max(-1) < 80).sum()
            assert (red > 40) == (suit in "HD")
            assert (dark > 40) == (suit in "SC")
    assert len(pictures) == 52
    assert card_sheet(54, 75).shape == (4 * 75, 13 * 54, 3)


def test_more_pips_mean_more_ink() -> None:
    ink = [int((card_picture(Card(rank, "S"), 135, 189).max(-1) < 80).sum()) for rank in range(2, 11)]
    assert ink == sorted(ink)


def test_repeatable_by_seed_in_threads_and_apart_from_global_state() -> None:
    def hands(_: int) -> list[Any]:
        env = EZPointsEnv(obs_mode="text")
        return [env.reset(seed=seed)[1]["ezpoints"]["cards"] for seed in range(60)]

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(hands, range(4)))
    assert all(result == results[0] for result in results)
    assert len(set(results[0])) > 20


def test_snapshots_continue_identically() -> None:
    env, other = EZPointsEnv(), EZPointsEnv()
    env.reset(seed=0)
    env.step(env.oracle_action())
    other.reset(seed=5)
    other.set_state(pickle.loads(pickle.dumps(env.get_state())))
    for _ in range(3):
        one, two = env.step(env.oracle_action()), other.step(other.oracle_action())
        assert np.array_equal(one[0]["image"], two[0]["image"])  # type: ignore[index]
        assert one[1:] == two[1:]
    with pytest.raises(InvalidState):
        env.set_state(3)


def test_panels_are_checked_in_and_still_deal_the_same_hands() -> None:
    for hands, name in (("classic", "deal"), ("uniform", "uniform-12")):
        source = HandSource(ezpoints(), hands)
        for split in ("validation", "test"):
            ids = source.task_ids(split)
            assert len(ids) == 256
            assert f"# hands: {hand_hash(source.load, ids)}\n" in (MANIFESTS / f"{name}-{split}.txt").read_text()


@pytest.mark.parametrize("target", ["12", 12.0, True, -1, None])
def test_targets_are_whole_numbers(target: Any) -> None:
    for make in (EZPointsEnv, Points24Env):
        with pytest.raises(UnknownOption, match=re.escape(repr(target))):
            make(target=target)


def test_nothing_is_drawn_before_the_first_reset() -> None:
    for mode in ("ansi", "rgb_array"):
        with pytest.raises(EpisodeEnded, match="reset"):
            EZPointsEnv(render_mode=mode).render()


def test_unknown_names_are_refused() -> None:
    env = EZPointsEnv()
    with pytest.raises(UnboundedSplit):
        env.task_ids("train")
    with pytest.raises(UnknownSplit):
        env.task_ids("dev")
    for task_id in ("cards/H5-S8", "cards/H5", "deal/-1", "deal/4294967295", "uniform-11/test/0", "solvable-12/test/0"):
        with pytest.raises(UnknownTask):
            env.reset(options={"task_id": task_id})
    for arguments in (
        {"rules": "x"},
        {"target": 97},
        {"hands": "classic", "target": 11},
        {"hands": "odd"},
        {"size": 9},
    ):
        with pytest.raises(UnknownOption):
            EZPointsEnv(**arguments)


def test_paper_profile_reads_the_whole_answer_leniently() -> None:
    env = seed_envs.make_agent_env("seed/EZPoints-v0", "paper")
    observation, info = env.reset(options={"task_id": "cards/H5-S7"})
    assert observation["text"].count("Formula so far: ") == 1
    for reply, formula, valid, reward in (
        ('```json\n{"thoughts": "5 + 7", "action": "5"}\n```', ("5",), True, 0.0),
        ("I choose +", ("5", "+"), True, 0.0),
        ('{"action": 12}', ("5", "+"), False, -0.1),
        ('{"action": 3}', ("5", "+"), True, 0.0),  # not on the cards: read, refused, not penalised
        ('{"action": "7"}', ("5", "+", "7"), True, 0.0),
        ('{"action": "="}', ("5", "+", "7", "="), True, 10.0),
    ):
        _, paid, terminated, _, info = env.step(reply)
        assert (info["ezpoints"]["formula"], info["format_valid"]) == (formula, valid)
        assert paid == pytest.approx(reward)
    assert terminated


@pytest.mark.parametrize(
    ("env_id", "name"),
    [
        (env_id, name)
        for env_id in ("seed/EZPoints-v0", "seed/Points24-v0")
        for name in profile_table(env_id)
        if name != "tools"
    ],
)
def test_the_oracle_wins_through_every_profile_with_one_image_per_turn(env_id: str, name: str) -> None:
    profile = get_profile(env_id, name)
    env = seed_envs.make_agent_env(env_id, name)
    for seed in range(4):
        _, info = env.reset(seed=seed)
        ended = False
        first = info["turn"]
        while not ended:
            # Advice stands in the first message: of this turn, or of the whole conversation.
            turns = [first] if profile.style == "growing" else [info["turn"]]
            messages = build_messages(profile, turns, [], skill="<image> count the pips")
            parts = messages[0]["content"]
            text = parts if isinstance(parts, str) else parts[1]["text"]
            assert isinstance(parts, str) == name.endswith("-text")
            assert isinstance(parts, str) or [part["type"] for part in parts] == ["image", "text"]
            assert "<image>" not in text
            before, skill, _ = text.partition("count the pips")
            assert skill and "# Answer" not in before
            reply = profile.action_format.format(env.unwrapped.oracle_action(), "plan")  # type: ignore[attr-defined]
            _, reward, terminated, truncated, info = env.step(reply)
            ended = terminated or truncated
        assert (reward, info["success"]) == (10.0, True)


def test_knowledge_stays_out_of_observations() -> None:
    env = seed_envs.make_agent_env("seed/EZPoints-v0", "strict-text")
    observation, info = env.reset(options={"task_id": "cards/H5-S7"})
    assert info["ezpoints"]["oracle"]["best_actions"] == ("5",)
    assert "best" not in observation
    assert "oracle" not in observation


def test_skills_are_written_from_the_trajectory_alone() -> None:
    def trajectory(valid: list[bool], success: bool = False, **extras: Any) -> Trajectory:
        table = {"numbers": (5, 7), **extras}
        steps = [Step("", [], "r", "5", ok, "" if ok else "two tokens", 0.0) for ok in valid]
        return Trajectory("seed/EZPoints-v0", "t", success=success, steps=steps, extras={"ezpoints": table})

    texts = [
        annotate(trajectory([True] * 4, True, formula=("5", "+", "7", "="))),
        annotate(trajectory([False] * 8, formula=())),
        annotate(trajectory([True] * 2, formula=("5", "="), result="1 of 2 numbers used")),
        annotate(trajectory([True] * 8, formula=("5",), refused="9 is not on the cards")),
    ]
    for text, part in zip(texts, ("5 + 7 =", "two tokens", "1 of 2", "9 is not on"), strict=True):
        assert part in text
        assert 8 <= len(text.split()) <= 90


@pytest.mark.parametrize(("env_id", "cards"), [("seed/EZPoints-v0", 2), ("seed/Points24-v0", 4)])
def test_skills_of_played_episodes_name_cards_and_formula(env_id: str, cards: int) -> None:
    ended, won = played(env_id, "strict-text", "=", None, seed=3)
    (table,) = won.extras.values()
    assert " ".join(table["formula"]) in annotate(won)
    assert " and ".join(map(str, table["numbers"])) in annotate(won)
    assert f"0 of {cards} numbers used" in annotate(ended)
    assert annotate(Trajectory.from_json(json.loads(json.dumps(won.to_json())))) == annotate(won)


def test_commands_draw_pictures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gif", "--count", "1", "--output", str(tmp_path / "a.gif")]) == 0
    assert main(["sheet", "--output", str(tmp_path / "b.png")]) == 0
    assert (tmp_path / "a.gif").stat().st_size > 2_000
    assert (tmp_path / "b.png").stat().st_size > 10_000
    assert "bytes" in capsys.readouterr().out
