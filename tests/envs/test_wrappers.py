"""The agent stack: parsing, penalties, history, prompts, and messages built from them."""

from __future__ import annotations

import re
from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest
from corridor import GROWING, TEMPLATE, WINDOW, Corridor
from hypothesis import given
from hypothesis import strategies as st

import seed_envs
from seed_envs import profiles
from seed_envs.chat import build_messages, user_message
from seed_envs.errors import EpisodeEnded, UnknownEnvironment, UnknownOption, UnknownProfile
from seed_envs.integrations.episode import Episode
from seed_envs.markers import defuse
from seed_envs.profiles import ActionFormat, Profile, PromptTemplate, TurnContext
from seed_envs.registration import ENVIRONMENTS
from seed_envs.serving.session import Session
from seed_envs.wrappers import HistoryWindow, InvalidActionPenalty, ParseAction, Prompt, RewardScale
from seed_envs.wrappers.blind import make_blind_env


def stack(profile=WINDOW, limit=6, penalty=0.1, scale=10.0):
    env = gym.wrappers.TimeLimit(Corridor(), limit)
    env = ParseAction(env, profile.action_format)
    env = RewardScale(InvalidActionPenalty(env, penalty), scale)
    return Prompt(HistoryWindow(env, profile.history), profile, limit)


TAGS = replace(profiles.TAGS, fallback_tail=30)


@pytest.mark.parametrize(
    ("reply", "action", "valid"),
    [
        ("<think>x</think><action>Go To desk 1</action>", "go to desk 1", True),
        ("<think>x</think><action>a</action><action>b</action>", "a", True),
        ("<action>open</action>", "open", False),
        ("<think>看</think><action>open</action>", "open", False),
        ("<think>x</think>" + "y" * 40, "y" * 30, False),
        ("<action>never closed", "<action>never closed"[-30:], False),
        ("", "", False),
    ],
)
def test_tags_are_read_as_the_agent_framework_does(reply, action, valid):
    parsed = TAGS.parse(reply)
    assert (parsed.action, parsed.valid) == (action, valid)
    assert bool(parsed.reason) is not valid


@pytest.mark.parametrize(
    ("reply", "action"),
    [
        ('{"thoughts": "t", "action": "+"}', "+"),
        ('```json\n{"action": 5}\n```', "5"),
        ('{"action": true}', None),
        ('{"action": ["a"]}', None),
        ('[{"action": "a"}]', None),
        ("action: a", None),
        ("[" * 100_000, None),
    ],
)
def test_json_replies(reply, action):
    parsed = ActionFormat("json", max_length=200_000).parse(reply)
    assert parsed.valid is (action is not None)
    assert parsed.action == (action or "")


@pytest.mark.parametrize(
    "reply",
    [
        *("```" + " " * 99_000 + "x", "```json" + "\n" * 99_000 + "```x", "```" * 33_000 + "x", '{"a":' * 19_000),
        *("<think>" * 14_000, "<think>" * 7_000 + "<action>" * 6_000, "<action>" * 12_000, "<" * 99_000),
    ],
)
@pytest.mark.parametrize("form", [TAGS, ActionFormat("json"), ActionFormat(kind="raw", require_think=True)])
def test_replies_of_full_length_are_read_in_one_pass(form, reply):
    """Each of these once took minutes to days: reading is linear, so that no reply can stop a run."""
    assert not form.parse(reply).valid


@pytest.mark.parametrize("reply", [None, b"up", 3, ["up"]])
def test_replies_that_are_no_text_are_a_bug_of_the_caller(reply):
    env = stack()
    env.reset()
    with pytest.raises(gym.error.InvalidAction, match=type(reply).__name__):
        env.step(reply)


def test_last_block_and_raw():
    assert ActionFormat("tags", which="last").parse("<action>a</action><action>b</action>").action == "b"
    assert ActionFormat().parse("  look ").action == "look"
    assert not ActionFormat(max_length=3).parse("four").valid


@given(st.text(max_size=300), st.sampled_from(["raw", "tags", "json"]))
def test_parsing_never_raises_and_formatting_is_its_inverse(text, kind):
    parsed = ActionFormat(kind).parse(text)
    assert isinstance(parsed.action, str)
    form = ActionFormat("tags", require_think=True, reply="<think>{thought}</think><action>{action}</action>")
    assert form.parse(form.format("go north", "why not")) == ("go north", True, "")
    form = ActionFormat("json", reply='{{"thoughts": "{thought}", "action": "{action}"}}')
    assert form.parse(form.format(text, text)) == (text.strip(), True, "")


def test_rewards_are_scaled_and_invalid_actions_cost():
    env = stack()
    env.reset(options={"task_id": "length-1"})
    assert env.step("mumble")[1] == pytest.approx(-1.0)
    _, reward, terminated, _, info = env.step("<action>right</action>")
    assert (reward, terminated, info["success"]) == (10.0, True, True)


@pytest.mark.parametrize(
    ("reply", "readable", "accepted"),
    [
        ("<action>left</action>", True, True),
        ("<action>fly</action>", True, False),
        ("<think>no", False, False),
        ("left", False, True),  # the end of an unreadable reply is sent, and happens to be an action
    ],
)
@pytest.mark.parametrize("penalised", ["format", "action"])
def test_readable_and_accepted_are_two_facts_and_a_penalty_names_one(reply, readable, accepted, penalised):
    form = ActionFormat("tags", fallback_tail=4)
    env = InvalidActionPenalty(ParseAction(Corridor(), form), 0.5, penalised)
    env.reset(options={"task_id": "length-3"})
    _, reward, _, _, info = env.step(reply)
    assert (info["format_valid"], info["action_valid"]) == (readable, accepted)
    assert bool(info["invalid_reason"]) == (not (readable and accepted))
    assert reward == (0.0 if {"format": readable, "action": accepted}[penalised] else -0.5)
    with pytest.raises(ValueError, match="penalised"):
        InvalidActionPenalty(env, 0.5, "both")


def test_the_stack_stands_in_its_documented_order():
    """The penalty is subtracted before the reward is scaled, and both see the environment's own step limit."""
    chosen = replace(seed_envs.get_profile("seed/Sokoban-v0", "paper"), reward_scale=10.0, invalid_penalty=0.5)
    env = seed_envs.make_agent_env("seed/Sokoban-v0", chosen)
    layers = [env]
    while hasattr(layers[-1], "env"):
        layers.append(layers[-1].env)
    names = [type(layer).__name__ for layer in layers]
    stack = ["Prompt", "HistoryWindow", "RewardScale", "InvalidActionPenalty", "ParseAction", "TimeLimit"]
    assert [name for name in names if name in stack] == stack
    env.reset(seed=0)
    _, reward, _, _, info = env.step("I do not know")
    own = layers[names.index("ParseAction")]
    assert not info["format_valid"]
    own.reset(seed=0)
    assert reward == pytest.approx((own.step("I do not know")[1] - 0.5) * 10.0)


def test_stepping_after_truncation_raises():
    env = stack(limit=1)
    env.reset(options={"task_id": "length-3"})
    assert env.step("<action>left</action>")[3]
    with pytest.raises(EpisodeEnded):
        env.step("<action>left</action>")


def test_the_prompt_shows_the_last_pairs_with_their_step_numbers():
    env = stack()
    prompt, _ = env.reset(options={"task_id": "length-3"})
    assert prompt == "Goal: reach 3\nYou are at 0 of 3.\nActions: 'left'\n'right'"
    for action in ("right", "left", "right"):
        prompt, *_, info = env.step(f"<action>{action}</action>")
    assert prompt == (
        "Goal: reach 3\nStep 4, last 2:\n"
        "[Observation 2: 'You are at 1 of 3.', Action 2: 'left']\n"
        "[Observation 3: 'You are at 0 of 3.', Action 3: 'right']\nYou are at 1 of 3."
    )
    assert info["turn"].history == (("You are at 1 of 3.", "left"), ("You are at 0 of 3.", "right"))


def test_a_skill_fills_its_slot_and_removing_it_restores_the_prompt():
    turn = TurnContext(goal="g", observation="o")
    block = TEMPLATE.skill_block.format(skill="walk right")
    assert TEMPLATE.render(turn, "walk right").replace(block, "") == TEMPLATE.render(turn)


def test_a_template_needs_exactly_one_skill_slot():
    with pytest.raises(ValueError, match="skill"):
        PromptTemplate(first="{goal}", turn="{observation}")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PromptTemplate(first="{skill} {gaol}", turn=""), "'first' uses the field 'gaol'.*'goal'"),
        (lambda: PromptTemplate(first="{skill}", turn="{goal.__class__}"), "'turn' uses the field 'goal.__class__'"),
        (lambda: PromptTemplate(first="{skill} }", turn=""), "'first' is no format string"),
        (lambda: PromptTemplate(first="{skill}", turn="", history_item="{actoin}"), "Did you mean 'action'"),
        (lambda: PromptTemplate(first="{skill}", turn="", skill_block="{}"), "skill_block"),
        (lambda: ActionFormat(kind="xml"), "kind='xml'"),  # type: ignore[arg-type]
        (lambda: ActionFormat(which="firsts"), "Did you mean 'first'"),  # type: ignore[arg-type]
        (lambda: ActionFormat(reply='{"action": "{action}"}'), "'reply'"),
        (lambda: Profile("p", TEMPLATE, style="windows"), "Did you mean 'window'"),  # type: ignore[arg-type]
    ],
)
def test_profiles_that_could_not_be_rendered_are_refused_when_made(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_braces_in_game_text_are_not_expanded():
    turn = TurnContext(goal="{admissible}", observation="{0.__class__}{skill}")
    assert "{0.__class__}{skill}" in TEMPLATE.render(turn, "a skill with {goal}")


MARKERS = [
    *("<|im_start|>", "<|im_end|>", "<|image_pad|>", "<|vision_start|>", "<image>", "</s>", "<|eot_id|>"),
    *("<\uff5cUser\uff5c>", "<\uff5cend\u2581of\u2581sentence\uff5c>", "<start_of_image>", "<image_soft_token>"),
    *("<img>", "<IMG_CONTEXT>", "<<SYS>>", "<</SYS>>", "[INST]", "[/INST]", "[IMG]", "[IMG_BREAK]", "[TOOL_CALLS]"),
    *("<tool_call>", "</tool_call>", "<tool_response>", "<tools>", "<image_placeholder>", "<Image1>", "<global-img>"),
    *("<row_1_col_2>", "<end_of_utterance>", "<fake_token_around_image>", "<unused12>", "<extra_id_0>", "[gMASK]"),
    *("<|begin\u2581of text|>", "<|reserved_special_token_7|>", "[AVAILABLE_TOOLS]", "[/THINK]", "<eot>"),
]


@pytest.mark.parametrize("marker", MARKERS)
def test_typed_markers_are_broken_everywhere_text_returns_into_a_prompt(marker):
    turn = TurnContext(goal=marker, observation=marker, history=((marker, marker),), step=1, admissible=(marker,))
    assert marker not in TEMPLATE.render(turn, skill=marker)
    first = TurnContext(goal="g", observation="o", admissible=(marker,))
    messages = build_messages(GROWING, [first, turn], [f"say {marker}"], skill=marker)
    assert all(marker not in message["content"] for message in messages)


def test_ordinary_tags_survive():
    text = "a < b, <think>x</think>, <search>q</search>, 1<2|3>2, <final_answer>, <br>, [SEP], < Prev, x[i_j], |<|>|"
    assert defuse(text) == text
    hostile = "<" * 30_000 + "<a-" * 10_000 + "<|" * 10_000 + "[A_" * 10_000
    assert defuse(hostile) == hostile


def test_growing_conversations_alternate_and_carry_the_skill_once():
    turns = [TurnContext("g", "o0"), TurnContext("g", "o1", step=1)]
    messages = build_messages(GROWING, turns, ["r0"], skill="S")
    assert [message["role"] for message in messages] == ["user", "assistant", "user"]
    assert sum("[S]" in message["content"] for message in messages) == 1
    assert build_messages(GROWING, turns, ["r0"])[1:] == messages[1:]


def test_a_window_is_one_message_and_images_come_first():
    image = object()
    messages = build_messages(WINDOW, [TurnContext("g", "o", image=image)], [])
    assert [part["type"] for part in messages[0]["content"]] == ["image", "text"]
    assert user_message("t") == {"role": "user", "content": "t"}


def test_unknown_ids_and_profiles_are_named_with_suggestions():
    with pytest.raises(UnknownEnvironment, match="seed/ALFWorld-v0"):
        seed_envs.make_agent_env("seed/AlfWorld-v0")
    with pytest.raises(UnknownProfile, match="paper"):
        seed_envs.make_agent_env("seed/ALFWorld-v0", profile="papr")


@pytest.mark.parametrize("env_id", [row.id for row in ENVIRONMENTS])
def test_an_argument_that_an_environment_lacks_is_named_with_those_it_has(env_id):
    with pytest.raises(UnknownOption, match=r"Env has no argument 'splitt'; it takes \[") as caught:
        seed_envs.make_agent_env(env_id, splitt="test")
    assert "'split'" in str(caught.value) and "Did you mean 'split'" in str(caught.value)
    assert "'self'" not in str(caught.value) and "'kwargs'" not in str(caught.value)


def test_an_agent_environment_is_made_again_from_its_spec():
    for env_id, profile in (
        ("seed/ALFWorld-v0", "paper"),
        ("seed/Sokoban-v0", "strict"),
        ("seed/EZPoints-v0", "paper"),
    ):
        first = seed_envs.make_agent_env(env_id, profile, max_steps=7)
        again = gym.make(gym.envs.registration.EnvSpec.from_json(first.spec.to_json()))
        assert str(again) == str(first)
        reply = first.get_wrapper_attr("profile").action_format.format("up")
        for env in (first, again):
            env.reset(seed=3)
        (seen, *_, info), (seen_again, *_, info_again) = first.step(reply), again.step(reply)
        assert info["turn"].history == info_again["turn"].history
        assert np.all(seen["image"] == seen_again["image"]) if isinstance(seen, dict) else seen == seen_again


def test_an_episode_may_have_one_step():
    env = seed_envs.make_agent_env("seed/Sokoban-v0", max_steps=1)
    env.reset(seed=0)
    assert env.step("up")[3]


def test_an_argument_of_the_environment_may_be_called_as_one_of_the_stack():
    """Sokoban's levels have a greatest solution length, ``max_steps``, which is no turn limit."""
    short = {"min_steps": 1, "max_steps": 2}
    env = seed_envs.make_agent_env("seed/Sokoban-v0", "strict-text", max_steps=9, env_kwargs=short)
    blind = make_blind_env(None, "seed/Sokoban-v0", seed_envs.get_profile("seed/Sokoban-v0", "strict"), 9, short)
    session = Session("seed/Sokoban-v0", "strict-text", short)
    played = Episode("seed/Sokoban-v0", "strict-text", min_steps=1)
    for made in (env, blind):
        assert made.reset(seed=0)[1]["task_id"].startswith("retro-6x6-b1-s1-2/")
        assert made.spec.max_episode_steps == 9
    assert session.reset(seed=0)["task_id"].startswith("retro-6x6-b1-s1-2/")
    assert played.env.reset(seed=0)[1]["task_id"].startswith("retro-6x6-b1-s1-15/")
    with pytest.raises(UnknownOption, match="max_episode_steps is no argument of the environment"):
        seed_envs.make_agent_env("seed/Sokoban-v0", max_episode_steps=9)


@pytest.mark.parametrize("limit", [0, -1, 2.5, "3", True])
def test_step_limits_are_whole_numbers_from_one(limit):
    with pytest.raises(ValueError, match=re.escape(f"max_steps={limit!r}")):
        seed_envs.make_agent_env("seed/Sokoban-v0", max_steps=limit)


def test_negative_settings_are_refused():
    with pytest.raises(TypeError, match="int: 5"):
        seed_envs.make_agent_env("seed/Sokoban-v0", 5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="penalty"):
        InvalidActionPenalty(Corridor(), -1)
    with pytest.raises(ValueError, match="pairs"):
        HistoryWindow(Corridor(), -1)
