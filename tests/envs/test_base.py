"""The skeleton: info keys, task choice, errors for the caller, no errors for the agent."""

from __future__ import annotations

import copy
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor

import gymnasium as gym
import pytest
from corridor import Corridor

from seed_envs.base import INFO_KEYS
from seed_envs.errors import EpisodeEnded, UnknownOption, UnknownSplit, UnknownTask
from seed_envs.outcomes import LazyActions


def test_info_has_the_same_keys_after_reset_and_step():
    env = Corridor()
    _, first = env.reset(seed=1)
    *_, second = env.step("right")
    assert list(first) == [*INFO_KEYS, "corridor", "data"]
    assert list(second) == [*INFO_KEYS, "corridor"]


def test_the_seed_decides_the_task_and_later_resets_go_on():
    def ids(seed):
        env = Corridor()
        env.reset(seed=seed)
        return [env.task_id, *(env.reset()[1]["task_id"] for _ in range(20))]

    assert ids(5) == ids(5)
    assert len(set(ids(5))) == 3


def test_a_task_and_a_split_that_contradict_each_other_are_refused():
    env = Corridor()
    train = env.task_ids("train")[0]
    assert env.reset(options={"task_id": train, "split": "train"})[1]["task_id"] == train
    with pytest.raises(UnknownOption, match="'length-5' is no task of split 'train'; leave 'split' out"):
        env.reset(options={"task_id": "length-5", "split": "train"})
    assert env.reset(options={"task_id": "length-5"})[1]["task_id"] == "length-5"


def test_every_reset_says_what_the_task_is_made_of():
    env = Corridor()
    card = {"kind": "generated", "files": {}, "split": "test", "split_size": 1, "goals": "", "skipped": {}}
    size = len(env.task_ids("test"))
    assert env.reset(options={"split": "test"})[1]["data"] == {**card, "split_size": size}
    assert env.reset(options={"task_id": "length-5"})[1]["data"] == {**card, "split": "", "split_size": None}
    assert "data" not in env.step("right")[4]


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"task_id": "length-9"}, UnknownTask, "length-9"),
        ({"split": "tests"}, UnknownSplit, "'test'"),
        ({"task": "length-1"}, UnknownOption, "'task_id'"),
    ],
)
def test_wrong_options_name_the_value_and_a_remedy(options, error, words):
    with pytest.raises(error, match=words) as caught:
        Corridor().reset(options=options)
    assert isinstance(caught.value, ValueError)


def test_wrong_split_and_render_mode_are_refused_at_construction():
    with pytest.raises(UnknownSplit):
        Corridor(split="nope")
    with pytest.raises(ValueError, match="ansi"):
        Corridor(render_mode="human")


def test_a_bad_action_changes_nothing_and_says_why():
    env = Corridor()
    env.reset(seed=1)
    before = env.get_state()
    observation, reward, terminated, truncated, info = env.step("fly")
    assert env.get_state() == before
    assert (reward, terminated, truncated, info["action_valid"]) == (0.0, False, False, False)
    assert "fly" in info["invalid_reason"]
    assert isinstance(observation, str)
    *_, info = env.step("left")
    assert info["action_valid"]
    assert info["invalid_reason"] == ""


@pytest.mark.parametrize("action", [None, 3, b"right", ["right"]])
def test_an_action_that_is_no_string_is_a_callers_bug(action):
    env = Corridor()
    env.reset(seed=1)
    with pytest.raises(gym.error.InvalidAction, match="str"):
        env.step(action)


def test_stepping_before_reset_or_after_the_end_raises():
    env = Corridor()
    with pytest.raises(EpisodeEnded):
        env.step("right")
    env.reset(options={"task_id": "length-1"})
    *_, info = env.step("right")
    assert info["stop_reason"] == "success"
    with pytest.raises(EpisodeEnded, match="reset"):
        env.step("right")


def test_lazy_actions_compute_once_when_read_and_travel_as_a_tuple():
    calls = []
    lazy = LazyActions(lambda: calls.append(1) or ("b", "a"))
    assert not calls
    assert lazy == ("b", "a")
    assert (len(lazy), lazy[0], "a" in lazy, list(lazy)) == (2, "b", True, ["b", "a"])
    assert calls == [1]
    assert pickle.loads(pickle.dumps(lazy)) == ("b", "a")
    assert copy.deepcopy(lazy) == ("b", "a")
    assert lazy == LazyActions(lambda: ["b", "a"])
    assert lazy != ("a", "b")


def test_after_a_task_that_cannot_start_there_is_nothing_to_step():
    env = Corridor()
    env.reset(options={"task_id": "length-2"})
    with pytest.raises(UnknownTask):
        env.reset(options={"task_id": "length-99"})
    with pytest.raises(EpisodeEnded):
        env.step("right")


def test_a_lazy_list_may_be_read_by_several_threads_at_once():
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as threads:
            for _ in range(300):
                actions = LazyActions(lambda: ("left", "right"))
                assert set(threads.map(tuple, [actions] * 8)) == {("left", "right")}
    finally:
        sys.setswitchinterval(interval)
