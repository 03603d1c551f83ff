"""A model's chat template with tools: what the model is shown, and whether its way of calling can be read."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from seed_envs.chat import Message, offered_tools
from seed_envs.errors import PreflightFailed
from seed_envs.tool_calls import read_call
from seed_envs.tools import Tool

_ASKED: list[Message] = [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]
_ADVICE = "choose a model that calls tools by <tool_call> and JSON, such as Qwen2.5 or Qwen3, or another profile"
_CHECKED: WeakKeyDictionary[Any, set[str]] = WeakKeyDictionary()


def render_chats(
    processor: Any, conversations: Sequence[Sequence[Message]], generation_prompt: bool, **variables: Any
) -> list[str]:
    """Conversations as texts by a chat template, each with the tools that its system message offers.

    Args:
        processor: Tokenizer or processor.
        conversations: Messages; empty for none.
        generation_prompt: Whether the next reply is opened.
        **variables: For the template; ``chat_template`` replaces the processor's own.

    Raises:
        PreflightFailed: When tools are offered and the template does not show them, or writes calls in a way that
            ``seed_envs.tool_calls`` does not read.
    """
    split = [offered_tools(messages) for messages in conversations]

    def render(chats: list[list[Message]], tools: Any) -> list[str]:
        offered = {"tools": tools} if tools else {}
        options = {"add_generation_prompt": generation_prompt, "tokenize": False, **offered, **variables}
        return list(processor.apply_chat_template(chats, **options)) if chats else []

    known = [tools for _, tools in split]
    if any(tools != known[0] for tools in known):
        alone = (render_chats(processor, [messages], generation_prompt, **variables) for messages in conversations)
        return [text for texts in alone for text in texts]
    if known and known[0]:
        _check(processor, known[0], render, variables)
    return render([messages for messages, _ in split], known[0] if known else None)


def _check(processor: Any, tools: list[dict[str, Any]], render: Callable[..., list[str]], variables: Any) -> None:
    """Make sure, once per processor, that a template shows tools and that calls are read as it writes them."""
    key = json.dumps([tools, variables.get("chat_template")])
    if key in _CHECKED.setdefault(processor, set()):
        return
    (shown,) = render([_ASKED], tools)
    functions = [tool["function"] for tool in tools]
    if hidden := [each["name"] for each in functions if each["description"] not in shown]:
        raise PreflightFailed(f"this chat template does not show the tools {hidden}; {_ADVICE}")
    plain = [
        Tool(each["name"], argument=(a := each["parameters"]["required"][0]), action=f"{{{a}}}") for each in functions
    ]
    for tool in plain:
        written = own_call(processor, tool, "x", **variables)
        if read_call(written, plain) != ("x", ""):
            raise PreflightFailed(f"this chat template writes tool calls as {written[:200]!r}, unread here; {_ADVICE}")
    _CHECKED[processor].add(key)


def own_call(processor: Any, tool: Tool, value: str, **variables: Any) -> str:
    """A reply that calls a tool, as the chat template writes it, special tokens left out as in any reply."""
    call = {"type": "function", "function": {"name": tool.name, "arguments": {tool.argument: value}}}
    said: Message = {"role": "assistant", "content": "", "tool_calls": [call]}
    (before,) = render_chats(processor, [_ASKED], True, **variables)
    (after,) = render_chats(processor, [[*_ASKED, said]], False, **variables)
    tokenizer = getattr(processor, "tokenizer", processor)
    shared = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(before, after, strict=False))
    reply = after[sum(1 for _ in shared) :]
    return str(tokenizer.decode(tokenizer(reply, add_special_tokens=False)["input_ids"], skip_special_tokens=True))
