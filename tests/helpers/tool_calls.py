"""An action as the tool call that stands for it."""

from __future__ import annotations

import re


def as_call(tools, action):
    """Name and arguments of the tool whose call gives this action."""
    for tool in tools:
        before, after = (re.escape(part) for part in tool.action.split("{" + tool.argument + "}"))
        if found := re.fullmatch(f"{before}(.*){after}", action, re.DOTALL):
            return tool.name, {tool.argument: found[1]}
    raise AssertionError(f"no tool gives {action!r}")
