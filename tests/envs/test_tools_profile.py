"""The profile ``tools``: every environment played by tool calls, read as models and their chat templates write them."""

from __future__ import annotations

import json

import gymnasium as gym
import pytest
from played import played

from seed_envs import get_profile, make_agent_env
from seed_envs.chat import build_messages, offered_tools
from seed_envs.endpoints.wire import read_answer, request_body
from seed_envs.errors import PreflightFailed, UnknownOption
from seed_envs.integrations.episode import Episode
from seed_envs.integrations.managers import EnvironmentManager
from seed_envs.profiles import TurnContext
from seed_envs.registration import ENVIRONMENTS
from seed_envs.serving.session import Session
from seed_envs.tool_templates import own_call, render_chats
from seed_envs.tools import Tool, tools_of

SHOP = get_profile("seed/WebShop-v0", "tools")
TURN = TurnContext("Buy a cup.", "A shop.", admissible=["click[cup]"])


@pytest.mark.parametrize("row", [row for row in ENVIRONMENTS if not row.needs_browser], ids=lambda row: row.id)
def test_the_oracle_wins_by_tool_calls(row):
    (episode,) = played(row.id, "tools", None, seed=1)
    assert episode.success and episode.steps
    names = {tool.name for tool in tools_of(row.id)}
    for step in episode.steps:
        call = json.loads(step.reply.removeprefix("<tool_call>").removesuffix("</tool_call>"))
        assert call["name"] in names and step.format_valid and step.action_valid
        messages, tools = offered_tools(step.messages)
        assert {tool["function"]["name"] for tool in tools} == names
        assert [sorted(message) for message in messages] == [["content", "role"]] * 2
        assert all(isinstance(message["content"], str) for message in messages)


def test_the_stack_is_made_again_from_its_spec():
    env = make_agent_env("seed/SearchQA-v0", "tools")
    again = gym.make(env.spec)
    assert again.get_wrapper_attr("profile").action_format == env.get_wrapper_attr("profile").action_format
    _, info = again.reset(seed=1)
    *_, info = again.step('<tool_call>{"name": "search", "arguments": {"query": "Rome"}}</tool_call>')
    assert (info["action"], info["format_valid"]) == ("<search>Rome</search>", True)


CALL = '<tool_call>{"name": "click", "arguments": {"element": "Cup"}}</tool_call>'


@pytest.mark.parametrize(
    "reply",
    [
        CALL,
        f"<think>Not <tool_call> yet.</think>I click.\n{CALL}",
        CALL.removesuffix("</tool_call>"),
        '{"name": "click", "parameters": {"element": "Cup"}}',
        '<tool_call>{"name": "click", "arguments": "{\\"element\\": \\"Cup\\"}"}</tool_call>',
    ],
)
def test_readable_calls(reply):
    assert SHOP.action_format.parse(reply) == ("click[cup]", True, "")


@pytest.mark.parametrize(
    ("reply", "action", "reason"),
    [
        ("click[cup]", "", "no tool call found in the reply"),
        ("", "", "no tool call found"),
        ("<tool_call>" + "[" * 100_000, "", "no tool call found"),
        ('<tool_call>["click"]</tool_call>', "", "no tool call found"),
        ('{"name": "buy", "arguments": {}}', "", "there is no tool 'buy'; there are: search, click"),
        ('{"name": ["click"], "arguments": {}}', "", "there is no tool"),
        ('{"name": "click", "arguments": {"button": "Cup"}}', "", "the tool 'click' needs the argument 'element'"),
        ('{"name": "click", "arguments": [1]}', "", "the tool 'click' needs the argument 'element'"),
        (CALL * 2, "click[cup]", "more than one tool call"),
    ],
    ids=range(9),
)
def test_unreadable_calls_say_why(reply, action, reason):
    parsed = SHOP.action_format.parse(reply)
    assert (parsed.action, parsed.valid) == (action, False) and reason in parsed.reason
    env = make_agent_env("seed/WebShop-v0", "tools")
    env.reset(seed=0)
    *_, info = env.step(reply)
    assert not info["format_valid"] and reason in info["invalid_reason"]


def test_an_action_that_no_tool_makes_is_not_dressed_up():
    assert SHOP.action_format.format("think[hard]") == "think[hard]"
    assert Tool(action="<a>{action}</a>").arguments_of("<a>") is None
    episode = Episode("seed/WebShop-v0", "tools")
    episode.reset(seed=0)
    assert "Back to Search" in episode.call("search", {"keywords": 'a "cup"'})
    assert episode.actions == ['search[a "cup"]']


def test_endpoints_are_offered_the_tools_and_answer_by_calls():
    body = request_body("m", build_messages(SHOP, [TURN], []), {"seed": 1})
    assert [tool["function"]["name"] for tool in body["tools"]] == ["search", "click"]
    assert all(set(message) == {"role", "content"} for message in body["messages"])
    assert "tools" not in request_body("m", [{"role": "user", "content": "x"}], {})
    function = {"name": "click", "arguments": '{"element": "Cup"}'}
    message = {"content": "I take it.", "tool_calls": [{"type": "function", "function": function}]}
    answer = read_answer({"choices": [{"message": message}]})
    assert answer.text.startswith("I take it.\n<tool_call>")
    assert SHOP.action_format.parse(answer.whole) == ("click[cup]", True, "")


def test_who_hands_on_texts_alone_refuses():
    with pytest.raises(UnknownOption, match="EnvironmentManager hands on texts, and profile 'tools' offers tools"):
        EnvironmentManager("seed/Sokoban-v0", 1, profile="tools")
    with pytest.raises(UnknownOption, match="seed-serve hands on texts"):
        Session("seed/Sokoban-v0", "tools").reset(seed=0)


@pytest.fixture(scope="module", params=["qwen2.5", "qwen3"])
def tokenizer(request, data_dir):
    transformers = pytest.importorskip("transformers", reason="packages: tokenizers need transformers")
    folder = data_dir / "tokenizers" / request.param
    if not folder.is_dir():
        pytest.skip(f"real data: {folder} is missing")
    return transformers.AutoTokenizer.from_pretrained(folder)


def test_real_chat_templates_show_the_tools_and_are_read_back(tokenizer):
    messages = build_messages(SHOP, [TURN], [])
    plain = [{"role": "user", "content": "Hello"}]
    shown, bare = render_chats(tokenizer, [messages, plain], True)
    for tool in SHOP.action_format.tools:
        assert tool.about in shown and tool.about not in bare
        reply = own_call(tokenizer, tool, 'a "cup" ] \u00e9')
        assert SHOP.action_format.parse(reply) == (tool.action_of({tool.argument: 'a "cup" ] \u00e9'}), True, "")


def test_templates_that_know_no_tools_or_write_calls_otherwise_are_refused(tokenizer):
    messages = build_messages(SHOP, [TURN], [])
    with pytest.raises(PreflightFailed, match=r"does not show the tools \['search', 'click'\]"):
        render_chats(tokenizer, [messages], True, chat_template="{% for m in messages %}{{ m.content }}{% endfor %}")
    other = "{{ tools }}{% for m in messages %}{{ m.content }}{% if m.tool_calls %}<function=x>{% endif %}{% endfor %}"
    with pytest.raises(PreflightFailed, match="writes tool calls as '<function=x>', unread here"):
        render_chats(tokenizer, [messages], True, chat_template=other)
