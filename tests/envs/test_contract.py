"""What holds for every registered id. New environments are tested by being in the table."""

from __future__ import annotations

import contextlib
import copy
import inspect
import json
import os
import pickle
import re
import subprocess
import sys
import warnings
from functools import partial
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import seed_envs
from seed_envs.base import INFO_KEYS, SeedEnv
from seed_envs.chat import split_observation
from seed_envs.errors import EpisodeEnded, InvalidState, SeedEnvsError, UnknownOption, UnknownTask
from seed_envs.registration import ENVIRONMENTS, load_attribute
from seed_envs.rollout import Reply, rollout
from seed_envs.tasks import TaskSpec
from seed_envs.trajectory import Trajectory
from seed_envs.vector import EnvPool

IDS = [row.id for row in ENVIRONMENTS if not row.needs_browser]
ROWS = {row.id: row for row in ENVIRONMENTS}


def act(env, info, rng):
    """A move that is usually admissible, sometimes nonsense, from the given generator."""
    actions = info["admissible_actions"]
    if actions and rng.random() < 0.8:
        return str(actions[int(rng.integers(len(actions)))])
    return ["", "nonsense", "go to nowhere 9", "\u202e中文"][int(rng.integers(4))]


def plain(value):
    """A value as comparable JSON text: lazy lists as lists, arrays as lists."""

    def convert(item):
        if isinstance(item, np.ndarray):
            return ["array", item.shape, int(item.astype(np.int64).sum())]
        if isinstance(item, np.generic):
            return item.item()
        return list(item)

    return json.dumps(value, default=convert, sort_keys=True)


def transcript(env_id, seed=3, steps=12):
    env = gym.make(env_id)
    rng = np.random.default_rng(seed)
    observation, info = env.reset(seed=seed)
    lines = [plain([observation, info])]
    for _ in range(steps):
        observation, reward, terminated, truncated, info = env.step(act(env, info, rng))
        lines.append(plain([observation, reward, terminated, truncated, info]))
        if terminated or truncated:
            observation, info = env.reset()
            lines.append(plain([observation, info]))
    env.close()
    return lines


@pytest.mark.parametrize("env_id", IDS)
def test_check_env_is_silent(env_id):
    env = gym.make(env_id).unwrapped
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # A render mode has to be chosen at construction; rendering is tested below for each mode.
        check_env(env, skip_render_check=True)


@pytest.mark.parametrize("env_id", IDS)
def test_info_keys_never_vary_and_have_their_types(env_id):
    env = gym.make(env_id)
    rng = np.random.default_rng(0)
    _, info = env.reset(seed=0)
    assert info.pop("data")["kind"] in ("real", "generated", "own"), "told by reset alone"
    name = env.unwrapped.name
    expected = [*INFO_KEYS, name]
    extras = set(info[name])
    for _ in range(15):
        assert list(info) == expected
        assert set(info[name]) == extras
        assert all(isinstance(info[key], str) for key in ("task_id", "task_type", "goal", "invalid_reason"))
        assert isinstance(info["success"], bool)
        assert isinstance(info["action_valid"], bool)
        assert isinstance(info["score"], float)
        assert 0.0 <= info["score"] <= 1.0
        _, _, terminated, truncated, info = env.step(act(env, info, rng))
        if terminated or truncated:
            assert truncated or info["stop_reason"]
            _, info = env.reset()
            del info["data"]


@pytest.mark.parametrize("env_id", IDS)
def test_two_copies_agree_in_everything(env_id):
    assert transcript(env_id) == transcript(env_id)


@pytest.mark.parametrize("env_id", IDS)
def test_another_process_with_another_hash_seed_agrees(env_id):
    code = (
        "import sys, hashlib; sys.path[:0] = sys.argv[2:]\n"
        "from test_contract import transcript\n"
        "print(hashlib.sha256('\\n'.join(transcript(sys.argv[1])).encode()).hexdigest())"
    )
    here = os.path.dirname(__file__)
    helpers = os.path.join(os.path.dirname(here), "helpers")
    digests = set()
    for hash_seed in ("1", "2"):
        run = subprocess.run(
            [sys.executable, "-c", code, env_id, here, helpers],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            check=True,
        )
        digests.add(run.stdout.strip())
    assert len(digests) == 1


@pytest.mark.parametrize("env_id", IDS)
def test_the_global_generators_are_left_alone(env_id):
    import random

    random.seed(1)
    np.random.seed(1)
    before = random.getstate(), np.random.get_state()[1].tolist()
    transcript(env_id, seed=5, steps=5)
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before


@pytest.mark.parametrize("player", ["oracle_action", "rule_action", "random_action"])
@pytest.mark.parametrize("env_id", IDS)
def test_players_need_a_reset(env_id, player):
    env = gym.make(env_id).unwrapped
    with pytest.raises((EpisodeEnded, InvalidState), match=r"call reset\(\) first"):
        getattr(env, player)()
    env.reset(seed=0)
    assert isinstance(getattr(env, player)(), str)


@pytest.mark.parametrize("env_id", IDS)
def test_the_oracle_solves_drawn_tasks(env_id):
    env = gym.make(env_id)
    for seed in range(5):
        _, info = env.reset(seed=seed)
        ended = False
        while not ended:
            _, _, terminated, truncated, info = env.step(env.unwrapped.oracle_action())
            assert info["action_valid"], info["invalid_reason"]
            ended = terminated or truncated
        assert info["success"], (seed, info["task_id"])
        assert info["score"] == 1.0
    env.close()


@pytest.mark.parametrize("env_id", IDS)
def test_a_state_can_be_taken_and_restored(env_id):
    env = gym.make(env_id)
    _, _info = env.reset(seed=4)
    state = env.unwrapped.get_state()
    actions = []
    while len(actions) < 3:
        action = env.unwrapped.oracle_action()
        actions.append(action)
        outcome = env.unwrapped.step(action)
        if outcome[2] or outcome[3]:
            break
    restored = gym.make(env_id).unwrapped
    restored.reset(seed=9)
    restored.set_state(pickle.loads(pickle.dumps(state)))
    for action in actions:
        again = restored.step(action)
    assert plain([*again]) == plain([*outcome])
    env.unwrapped.set_state(copy.deepcopy(state))
    for action in actions:
        again = env.unwrapped.step(action)
    assert plain([*again]) == plain([*outcome])


@pytest.mark.parametrize("env_id", IDS)
def test_many_branches_start_from_one_state_object(env_id):
    env = gym.make(env_id).unwrapped
    env.reset(seed=4)
    env.step("nonsense")
    state = env.get_state()
    action = env.oracle_action()
    branches = []
    for branch in (env, env, gym.make(env_id).unwrapped, env):
        branch.set_state(state)
        first = branch.step(action)
        ended = first[2] or first[3]
        branches.append(plain([*first, *([] if ended else branch.step("nonsense"))]))
    assert len(set(branches)) == 1


@pytest.mark.parametrize("env_id", IDS)
def test_task_ids_and_options_of_another_type_are_refused_by_name(env_id):
    env = gym.make(env_id).unwrapped
    for wrong in (5, True, 1.5, b"x", ["x"], {"x": 1}):
        with pytest.raises(UnknownTask, match=re.escape(repr(wrong))):
            env.reset(options={"task_id": wrong})
    for wrong in ("test", 5, ["task_id"]):
        with pytest.raises(UnknownOption, match=re.escape(repr(wrong))):
            env.reset(options=wrong)


@pytest.mark.parametrize("env_id", IDS)
def test_values_of_any_type_for_the_own_reset_options_are_played_or_refused_by_name(env_id):
    env = gym.make(env_id).unwrapped
    for key in ["split", *sorted(env.option_keys)]:
        for wrong in (-1, 2**70, 1.5, True, "nope", "\x00", b"x", [], ["x"], {}, {"x": 1}):
            with contextlib.suppress(SeedEnvsError):
                env.reset(seed=1, options={key: wrong})
                env.oracle_action()


@pytest.mark.parametrize("env_id", IDS)
def test_a_refused_first_reset_does_not_spoil_the_next_episode(env_id):
    env = gym.make(env_id)
    with pytest.raises(ValueError, match="no-such-task"):
        env.reset(options={"task_id": "no-such-task"})
    env.reset(seed=8)
    for _ in range(2):
        ended = env.step(env.unwrapped.oracle_action())[2]
        if ended:
            break


@pytest.mark.parametrize("env_id", IDS)
def test_a_named_task_is_played_and_an_unknown_one_is_refused(env_id):
    env = gym.make(env_id)
    _, info = env.reset(seed=8)
    again = gym.make(env_id)
    _observation, second = again.reset(options={"task_id": info["task_id"]})
    assert second["task_id"] == info["task_id"]
    assert second["goal"] == info["goal"]
    with pytest.raises(ValueError, match="no-such-task"):
        again.reset(options={"task_id": "no-such-task"})


@pytest.mark.parametrize("env_id", IDS)
def test_every_render_mode_renders_without_changing_the_state(env_id):
    for mode in gym.make(env_id).unwrapped.metadata["render_modes"]:
        env = gym.make(env_id, render_mode=mode)
        env.reset(seed=2)
        before = plain(env.unwrapped._info())
        frame = env.render()
        assert isinstance(frame, (str, np.ndarray))
        assert len(frame) > 0
        assert plain(env.unwrapped._info()) == before


@pytest.mark.parametrize("env_id", IDS)
@pytest.mark.parametrize("mode", ["sync", "async"])
def test_vector_modes_carry_the_text(env_id, mode):
    kwargs = {} if mode == "sync" else {"vector_kwargs": {"shared_memory": False}}
    envs = gym.make_vec(env_id, num_envs=2, vectorization_mode=mode, **kwargs)
    observations, _info = envs.reset(seed=[3, 4])
    singles = [gym.make(env_id).reset(seed=seed)[0] for seed in (3, 4)]
    texts = observations["text"] if isinstance(observations, dict) else observations
    assert list(texts) == [split_observation(single)[0] for single in singles]
    envs.step(("nonsense", "nonsense"))
    envs.close()


@pytest.mark.parametrize("env_id", IDS)
def test_the_spec_round_trips_through_json(env_id):
    env = gym.make(env_id)
    assert gym.make(gym.envs.registration.EnvSpec.from_json(env.spec.to_json())).spec.id == env_id


@pytest.mark.parametrize("env_id", IDS)
def test_every_profile_builds_prompts_and_its_oracle_replies_are_read(env_id):
    for name in load_attribute(ROWS[env_id].profiles):
        env = seed_envs.make_agent_env(env_id, profile=name)
        prompt, info = env.reset(seed=1)
        assert env.get_wrapper_attr("profile").name == name
        reply = env.get_wrapper_attr("profile").action_format.format(env.unwrapped.oracle_action(), "I see.")
        _, _, _, _, info = env.step(reply)
        assert info["action_valid"], (name, info["invalid_reason"])
        text, _ = split_observation(prompt)
        skilled = env.get_wrapper_attr("profile").template.render(env.reset(seed=1)[1]["turn"], skill="XYZZY")
        assert "XYZZY" in skilled
        assert "XYZZY" not in text


@pytest.mark.parametrize("env_id", IDS)
def test_an_episode_of_every_profile_survives_json(env_id):
    for name, profile in load_attribute(ROWS[env_id].profiles).items():

        def policy(requests):
            return [Reply("nonsense") for _ in requests]

        with EnvPool(partial(seed_envs.make_agent_env, env_id, profile=name, max_steps=2), 1) as pool:
            [played] = rollout(pool, policy, [TaskSpec(seed=1)], env_id=env_id, profile=profile)
        again = Trajectory.from_json(json.loads(json.dumps(played.to_json())))
        assert (again.task_id, again.stop_reason, len(again.steps)) == (played.task_id, played.stop_reason, 2)
        for before, after in zip(played.steps, again.steps, strict=True):
            assert [part["size"] for part in pictures(after)] == [
                [part["image"].shape[1], part["image"].shape[0]] for part in pictures(before)
            ]


def pictures(step):
    """The image parts of a step's messages."""
    contents = [message["content"] for message in step.messages if not isinstance(message["content"], str)]
    return [part for content in contents for part in content if part["type"] == "image"]


@pytest.mark.parametrize("env_id", [row.id for row in ENVIRONMENTS])
def test_every_environment_has_the_same_rooms(env_id):
    row = ROWS[env_id]
    env_class = load_attribute(row.entry_point)
    assert issubclass(env_class, SeedEnv)
    assert callable(load_attribute(row.annotator))
    assert "paper" in load_attribute(row.profiles)
    rooms = {path.name for path in Path(inspect.getfile(env_class)).parent.iterdir()}
    files = {"env.py", "tasks.py", "oracle.py", "prompts.py", "annotator.py", "__main__.py", "README.md", "manifests"}
    assert files <= rooms
    for heading in (
        "Description",
        "Task and data",
        "Action space",
        "Observation space",
        "Reward",
        "Termination and truncation",
        "Info",
        "Oracle",
        "Arguments",
        "Registered versions",
        "Differences from the original",
        "References",
    ):
        assert f"## {heading}" in env_class.__doc__ or f"{heading}:" in env_class.__doc__, heading
