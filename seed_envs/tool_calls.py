"""Tool calls as models write them in a reply, and the actions they stand for.

Read are ``<tool_call>{"name": ..., "arguments": {...}}</tool_call>`` (Qwen2.5, Qwen3, Hermes) and the bare JSON object
with ``arguments`` or ``parameters`` (Llama 3). Time is linear in the length of a reply.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from seed_envs.tools import Tool

OPENING, CLOSING = "<tool_call>", "</tool_call>"
_EXPECTED = f'{OPENING}{{"name": ..., "arguments": {{...}}}}{CLOSING}'


def write_call(action: str, tools: Sequence[Tool]) -> str:
    """The call that stands for an action; an action that no tool can make is left bare, which no reader takes."""
    found = ((tool.name, arguments) for tool in tools if (arguments := tool.arguments_of(action)) is not None)
    name, arguments = next(found, ("", {}))
    call = json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False)
    return f"{OPENING}\n{call}\n{CLOSING}" if name else action


def read_call(reply: str, tools: Sequence[Tool]) -> tuple[str | None, str]:
    """The action of the first call in a reply, thoughts left out.

    Args:
        reply: What the model wrote.
        tools: What it may call.

    Returns:
        The action, or None where there is no call that a tool answers, and what is wrong with the reply, or ``""``.
    """
    said = reply.rpartition("</think>")[2]
    first, *more = said.split(OPENING)[1:] or [said]
    try:
        call = json.loads(first.partition(CLOSING)[0].strip())
        name, arguments = call["name"], call.get("arguments", call.get("parameters"))
        arguments = json.loads(arguments) if isinstance(arguments, str) else arguments
    except (ValueError, RecursionError, TypeError, KeyError, AttributeError):
        return None, f"no tool call found in the reply (expected {_EXPECTED})"
    action, fault = _action(name, arguments, tools)
    return action, fault or ("more than one tool call in the reply; expected one" if more else "")


def _action(name: Any, arguments: Any, tools: Sequence[Tool]) -> tuple[str | None, str]:
    tool = next((tool for tool in tools if tool.name == name), None)
    if tool is None:
        return None, f"there is no tool {str(name)[:64]!r}; there are: {', '.join(tool.name for tool in tools)}"
    value = arguments.get(tool.argument) if isinstance(arguments, dict) else None
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        return None, f"the tool {tool.name!r} needs the argument {tool.argument!r}, a text"
    return tool.action_of({tool.argument: str(value)}), ""
