"""Discrete actions and pixels: spaces, refusals, masks, and the vector environments that trainers make of them."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import seed_envs
from seed_envs.errors import UnknownOption
from seed_envs.registration import ENVIRONMENTS
from seed_envs.wrappers import DiscreteActions, PixelObservation

assert seed_envs
PICTURES = {"obs_mode": "image", "tile": 16}


@pytest.fixture
def env():
    with DiscreteActions(PixelObservation(gym.make("seed/Sokoban-v0", **PICTURES))) as made:
        yield made


@pytest.mark.filterwarnings("ignore:.*render modes:UserWarning")
def test_the_stack_is_an_environment_of_numbers(env):
    assert env.action_space == gym.spaces.Discrete(4) and env.actions == ("up", "down", "left", "right")
    assert env.observation_space.shape == (96, 96, 3) and env.observation_space.dtype == np.uint8
    check_env(env, skip_render_check=True)
    remade = gym.make(env.spec)
    assert remade.action_space == env.action_space and remade.observation_space == env.observation_space


def test_numbers_play_what_the_words_play(env):
    twin = gym.make("seed/Sokoban-v0", obs_mode="both", tile=16)
    observation, info = env.reset(seed=3)
    seen, _ = twin.reset(seed=3)
    assert np.array_equal(observation, seen["image"])
    while True:
        word = env.unwrapped.oracle_action()
        observation, reward, done, _, info = env.step(env.actions.index(word))
        seen, paid, ended, _, _ = twin.step(word)
        assert np.array_equal(observation, seen["image"]) and (reward, done) == (paid, ended)
        if done:
            break
    assert info["success"] and reward > 10


def test_a_list_of_ones_own_is_masked_by_what_is_admissible():
    env = DiscreteActions(gym.make("seed/ALFWorld-v0"), ["look", "inventory", "fly"])
    assert env.action_masks().all()
    env.reset(seed=0)
    assert env.action_masks().tolist() == [True, True, False]
    assert env.step(2)[4]["action_valid"] is False and env.step(np.int64(1))[4]["action_valid"] is True


def test_what_has_no_list_or_no_picture_is_refused(env):
    with pytest.raises(UnknownOption, match="has no fixed list of actions; give one"):
        DiscreteActions(gym.make("seed/ALFWorld-v0"))
    with pytest.raises(UnknownOption, match="shows no pictures; make it with obs_mode='image'"):
        PixelObservation(gym.make("seed/Sokoban-v0", obs_mode="text"))
    env.reset(seed=0)
    with pytest.raises(gym.error.InvalidAction, match="a number from 0 to 3; got 4"):
        env.step(4)


@pytest.mark.parametrize("env_id", [row.id for row in ENVIRONMENTS if not row.needs_browser])
def test_infos_of_every_state_fit_into_a_vector_environment(env_id):
    """Gymnasium makes an array of the first info's type; a later state with another type must not break it."""
    envs = gym.make_vec(env_id, 3, vectorization_mode="sync")
    envs.reset(seed=1)
    rng = np.random.default_rng(0)
    for _ in range(60):
        moves = [
            env.unwrapped.random_action() if env.unwrapped._running and rng.random() < 0.9 else "nonsense"
            for env in envs.envs
        ]
        envs.step(tuple(moves))
    envs.close()


def test_a_deadlock_beside_a_living_level_keeps_both_distances():
    options = {"obs_mode": "text", "size": 5, "min_steps": 1, "max_steps": 3, "rules": "strict"}
    envs = gym.make_vec("seed/Sokoban-v0", 4, vectorization_mode="sync", wrappers=(DiscreteActions,), **options)
    envs.reset(seed=0)
    rng, seen = np.random.default_rng(0), set()
    for _ in range(200):
        distances = envs.step(rng.integers(0, 4, 4))[4]["sokoban"]["oracle"]["distance"]
        seen |= {type(distance) for distance in distances}
    assert type(None) in seen and len(seen) == 2 and distances.dtype == object
