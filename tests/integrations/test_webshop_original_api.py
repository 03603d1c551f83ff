"""Scripts that were written against WebShop's text environment play on ours."""

from __future__ import annotations

import random

import pytest

import seed_envs
from seed_envs.errors import UnknownOption
from seed_envs.registration import make
from seed_envs.webshop.original_api import WebAgentTextEnv

assert seed_envs


@pytest.fixture(scope="module")
def shop(data_dir):
    return WebAgentTextEnv(observation_mode="text", file_path=data_dir / "webshop" / "items_shuffle_1000.json.gz")


@pytest.mark.parametrize("mode", ["text", "text_rich", "url"])
def test_thirty_sessions_by_number_are_those_of_the_environment(shop, data_dir, mode):
    """Which equals the original's recorded pages (test_webshop_golden)."""
    twin = make("seed/WebShop-v0", catalogue="files", data_dir=str(data_dir / "webshop"), obs_mode=mode, split="all")
    env = WebAgentTextEnv(observation_mode=mode, server=shop.server)
    bought = 0
    for session in range(30):
        rng = random.Random(session)
        observation, nothing = env.reset(session=session)
        seen, info = twin.reset(options={"goal": session})
        assert (observation, nothing) == (seen, None)
        done, steps = False, 0
        while not done and steps < 14:
            listed = env.get_available_actions()
            clicks = [action[6:-1] for action in info["admissible_actions"] if action.startswith("click[")]
            assert sorted(click for click in listed["clickables"] if click != "search") == sorted(clicks)
            assert listed["has_search_bar"] == info["webshop"]["has_search_bar"]
            action = twin.unwrapped.oracle_action() if rng.random() < 0.8 else "click[no such button]"
            observation, reward, done, nothing = env.step(action)
            seen, paid, ended, _, info = twin.step(action)
            assert (observation, reward, done, nothing) == (seen, paid, ended, None)
            steps += 1
        bought += done
    assert bought > 20


def test_the_loop_of_eto_and_agentgym(shop):
    """``reset`` by index, ``step`` until done, the available actions of each page, and the goal in words."""
    env = WebAgentTextEnv(observation_mode="text", server=shop.server, human_goals=False)
    first = env.reset(7)[0]
    assert first.startswith("WebShop [SEP] Instruction: [SEP] ") and env.instruction_text.startswith("Instruction: ")
    assert env.get_available_actions() == {"has_search_bar": True, "clickables": ["search"]}
    state, reward, done, info = env.step(f"search[{env.server.goals[7]['name']}]")
    assert (reward, done, info) == (0.0, False, None) and "Back to Search" in state
    product = next(name for name in env.get_available_actions()["clickables"] if len(name) == 10)
    env.step(f"click[{product}]")
    state, reward, done, info = env.step("click[buy now]")
    assert done and 0 <= reward <= 1 and env.get_available_actions()["clickables"] == []
    state, reward, done, info = env.step("search[again]")  # the original goes on after the purchase
    assert not done and reward == 0.0 and "Back to Search" in state


def test_sessions_keep_their_first_goal_and_draws_follow_the_weights(shop):
    first = shop.reset("somebody")[0]
    assert shop.reset("somebody", "buy something")[0] == first and shop.instruction_text == "buy something"
    fresh = WebAgentTextEnv(server=shop.server, session_prefix="a-")
    assert fresh.session.startswith("a-") and len(fresh.session) == 12
    texts = {shop.reset()[0] for _ in range(20)}
    assert len(texts) > 15


def test_goals_are_filtered_limited_and_remembered(data_dir):
    path = data_dir / "webshop" / "items_shuffle_1000.json.gz"
    one = WebAgentTextEnv(file_path=path, filter_goals=lambda number, goal: number in (3, 5), num_prev_actions=1)
    assert len(one.server.goals) == 2 and one.reset(1)[0]
    observation = one.step("search[shoes]")[0]
    assert observation.startswith("search[shoes] [SEP] Instruction:")
    assert len(WebAgentTextEnv(file_path=path, limit_goals=4).server.goals) == 4


def test_what_is_not_offered_is_said(shop):
    with pytest.raises(UnknownOption, match="observation_mode='html'"):
        WebAgentTextEnv(observation_mode="html", server=shop.server)
    with pytest.raises(UnknownOption, match="get_image=1 is not offered"):
        WebAgentTextEnv(server=shop.server, get_image=1)
