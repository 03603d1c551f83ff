"""What an environment says to a caller's mistakes: arguments, states, wrappers that cannot work, and the step limit."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers import FlattenObservation, TimeAwareObservation

import seed_envs  # noqa: F401 - registers the environments
from seed_envs.arguments import argument_hints
from seed_envs.errors import InvalidState, UnknownOption
from seed_envs.registration import ENVIRONMENTS
from seed_envs.vision.sokoban.env import SokobanEnv

HERE = [row.id for row in ENVIRONMENTS if not row.needs_browser]


@pytest.mark.parametrize("env_id", [row.id for row in ENVIRONMENTS])
def test_every_environment_checks_names_and_types_alike(env_id):
    hints = argument_hints(gym.envs.registration.load_env_creator(gym.spec(env_id).entry_point))
    assert {"split", "render_mode"} <= hints.keys()
    with pytest.raises(UnknownOption, match=r"has no argument 'splt'; it takes \[.*\]. Did you mean 'split'"):
        gym.make(env_id, splt="test")
    checked = [name for name, kinds in hints.items() if kinds]
    assert checked
    for name in checked:
        with pytest.raises(UnknownOption, match=rf"^{name}=<object .*>: expected .*, got object"):
            gym.make(env_id, disable_env_checker=True, **{name: object()}) if name != "render_mode" else _made(env_id)


def _made(env_id):
    gym.envs.registration.load_env_creator(gym.spec(env_id).entry_point)(render_mode=object())


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"boxes": "two"}, "boxes='two': expected a whole number, got str"),
        ({"boxes": True}, "boxes=True: expected a whole number, got bool"),
        ({"boxes": 1.0}, "boxes=1.0: expected a whole number, got float"),
        ({"size": "6"}, "size='6': expected a whole number or a list, got str"),
        ({"shaping": "1"}, "shaping='1': expected a number, got str"),
        ({"boxes": 99}, "boxes=99: generated rooms have 1 to 4 boxes"),
        ({"levels": 7}, "levels=7: expected text or a path, got int"),
    ],
    ids=str,
)
def test_a_wrong_type_is_named(arguments, expected):
    with pytest.raises(UnknownOption) as caught:
        gym.make("seed/Sokoban-v0", **arguments)
    assert str(caught.value).startswith(expected)


def test_numbers_of_numpy_and_lists_from_json_are_welcome():
    env = SokobanEnv(boxes=np.int64(1), size=[6, 7], shaping=np.float32(0))
    env.reset(seed=0)


@pytest.mark.parametrize("env_id", HERE)
def test_a_foreign_state_is_refused(env_id):
    env = gym.make(env_id).unwrapped
    env.reset(seed=0)
    good = env.get_state()
    others = [gym.make(other).unwrapped for other in HERE if other.split("-")[0] != env_id.split("-")[0]]
    for other in others:
        other.reset(seed=0)
    foreign = [other.get_state() for other in others]
    for bad in (None, 3, "x", {}, (), [], (1, 2, 3), (0,) * 6, (None,) * 6, {"a": 1}, object(), *foreign):
        with pytest.raises(InvalidState):
            env.set_state(bad)
    env.set_state(good)


@pytest.mark.parametrize("env_id", HERE)
@pytest.mark.parametrize("wrapper", [FlattenObservation, TimeAwareObservation])
def test_text_has_no_flat_form(env_id, wrapper):
    with pytest.raises(gym.error.CustomSpaceError, match="no flat form"):
        wrapper(gym.make(env_id, max_episode_steps=5))


def test_time_beside_text_works():
    env = TimeAwareObservation(gym.make("seed/ALFWorld-v0"), flatten=False, dict_time_key="step")
    observation, _ = env.reset(seed=0)
    assert isinstance(observation["obs"], str)


@pytest.mark.parametrize("env_id", HERE)
@pytest.mark.parametrize("limit", [1, 2])
def test_the_step_limit_is_a_stop_reason(env_id, limit):
    env = gym.make(env_id, max_episode_steps=limit)
    env.reset(seed=0)
    for step in range(1, limit + 1):
        _, _, terminated, truncated, info = env.step("nonsense")
        assert (terminated, truncated, info["stop_reason"]) == (False, step == limit, "max_steps" * (step == limit))
    again = gym.make(env.spec)
    again.reset(seed=0)
    assert str(again) == str(env)
