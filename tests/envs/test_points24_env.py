"""``seed/Points24-v0``: solvable hands only, exact division, oracle, splits by hand."""

from __future__ import annotations

import random
import time
import warnings
from itertools import product

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from seed_envs.errors import NoTaskMatches, OracleUnavailable, UnknownOption, UnknownTask
from seed_envs.vision.ezpoints import oracle
from seed_envs.vision.ezpoints.formula import evaluate
from seed_envs.vision.ezpoints.hands import deal_four, values_of
from seed_envs.vision.ezpoints.points24 import Points24Env
from seed_envs.vision.ezpoints.rules import RULE_SETS, Game, points24
from seed_envs.vision.ezpoints.solver import solve
from seed_envs.vision.ezpoints.tasks import MANIFESTS, HandSource, hand_hash, split_of, value_sets


def test_the_checker_is_silent() -> None:
    env = gym.make("seed/Points24-v0")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped, skip_render_check=True)


def test_exactly_26_9_percent_of_all_hands_have_no_solution() -> None:
    solvable = set(value_sets(24))
    hands = product(range(1, 14), repeat=4)
    unsolvable = sum(tuple(sorted(min(rank, 10) for rank in hand)) not in solvable for hand in hands)
    assert unsolvable / 28_561 == pytest.approx(0.269, abs=0.0005)
    for values in solvable:
        tokens = solve(values, 24)
        assert evaluate(tokens) == 24
        assert sorted(int(token) for token in tokens if token.isdigit()) == list(values)
        assert len(tokens) < 20
    assert solve((1, 1, 1, 1), 24) == ()


def test_only_solvable_hands_are_dealt_and_splits_share_no_values() -> None:
    rng = np.random.default_rng(0)
    assert all(solve(values_of(deal_four(rng, 24)), 24) for _ in range(100))
    source = HandSource(points24(), "uniform")
    found = {split: {values_of(source.load(f"solvable-24/{split}/{n}")) for n in range(200)}
             for split in ("train", "validation", "test")}  # fmt: skip
    assert not found["train"] & found["test"]
    assert not found["train"] & found["validation"]
    assert not found["validation"] & found["test"]
    assert {split_of(values) for values in found["test"]} == {"test"}
    with pytest.raises(UnknownTask, match="no formula"):
        source.load("cards/HA-SA-DA-CA")


@pytest.mark.parametrize(("target", "empty"), [(10_000, ("validation", "test")), (3_600, ("validation",))])
def test_targets_of_few_hands_play_where_there_are_hands_and_say_where_not(target: int, empty: tuple[str, ...]) -> None:
    env = Points24Env(target=target, obs_mode="text")
    for split in ("train", "validation", "test", "all"):
        if split in empty:
            with pytest.raises(NoTaskMatches, match="train"):
                env.task_ids(split)
            for options in ({"split": split}, {"task_id": f"solvable-{target}/{split}/0"}):
                with pytest.raises(NoTaskMatches, match=f"'{split}' reaches {target}"):
                    env.reset(seed=0, options=options)
        else:
            _, info = env.reset(seed=0, options={"split": split})
            assert env.reset(options={"task_id": info["task_id"]})[1]["points24"] == info["points24"]
    with pytest.raises(UnknownOption, match="no four cards"):
        Points24Env(target=9_999)


def test_panels_are_checked_in_and_still_deal_the_same_hands() -> None:
    source = HandSource(points24(), "uniform")
    for split in ("validation", "test"):
        text = (MANIFESTS / f"solvable-24-{split}.txt").read_text()
        assert f"# hands: {hand_hash(source.load, source.task_ids(split))}\n" in text


@pytest.mark.parametrize("rules", ["classic", "strict"])
def test_the_oracle_wins_every_solvable_set_of_values(rules: str) -> None:
    for values in value_sets(24):
        game = Game(points24(), RULE_SETS[rules], values)
        steps = 0
        while not game.won:
            outcome = game.play(oracle.next_token(game))
            assert not outcome.refused
            steps += 1
        assert steps <= 12


def test_the_environment_is_won_within_its_limit() -> None:
    env = gym.make("seed/Points24-v0", obs_mode="image", rules="strict")
    for seed in range(10):
        env.reset(seed=seed)
        ended = False
        while not ended:
            observation, reward, terminated, truncated, _ = env.step(env.unwrapped.oracle_action())  # type: ignore[attr-defined]
            ended = terminated or truncated
        assert reward == 10.0
        assert observation["image"].shape == (308, 308, 3)


def test_the_oracle_completes_a_beginning_it_would_not_have_chosen() -> None:
    game = Game(points24(), RULE_SETS["strict"], (3, 3, 8, 8))
    assert " ".join(solve((3, 3, 8, 8), 24)) == "8 / ( 3 - 8 / 3 )"
    game = Game(points24(), RULE_SETS["strict"], (1, 2, 3, 4))
    for token in ("(", "4"):
        game.play(token)
    while not game.won:
        game.play(oracle.next_token(game))
    dead = Game(points24(), RULE_SETS["strict"], (3, 3, 8, 8))
    dead.play("3")
    with pytest.raises(OracleUnavailable):
        oracle.next_token(dead)


def test_strict_accepts_every_prefix_of_a_formula_and_refuses_the_rest() -> None:
    rng = random.Random(0)
    tokens = points24().tokens
    for _ in range(300):
        game = Game(points24(), RULE_SETS["strict"], (4, 6, 6, 10))
        for _ in range(12):
            token = rng.choice(tokens[:-1])
            fits = token in game.admissible()
            assert bool(game.play(token).refused) != fits
        opened, closed = game.formula.count("("), game.formula.count(")")
        assert closed <= opened


def test_hostile_formulas_are_judged_at_once() -> None:
    """Powers by repeated stars or joined digits would hang or pay in the original."""
    started = time.process_time()
    for formula in (["9", "*", "*", "9", "*", "*", "9"], ["2", "4"], ["9", "/", "/", "2"], ["("] * 20):
        env = Points24Env(obs_mode="text")
        env.reset(options={"task_id": "cards/H9-S9-D9-C6"} if solve((6, 9, 9, 9), 24) else {})
        for token in formula:
            env.step(token)
        _, reward, terminated, truncated, _ = env.step("=")
        assert reward == 0.0
        assert terminated or truncated
    assert time.process_time() - started < 20
