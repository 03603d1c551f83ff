"""LangGraph and LangChain: the tools of an episode, for ``ToolNode`` and ``bind_tools``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seed_envs.errors import require
from seed_envs.integrations.episode import Episode

if TYPE_CHECKING:
    from langchain_core.tools import StructuredTool


def langchain_tools(episode: Episode) -> list[StructuredTool]:
    """The tools of an episode; they play the task it was last reset to.

    Args:
        episode: Started with ``episode.reset(...)``; ``episode.view()`` is what to tell the agent first.

    Raises:
        DependencyMissing: Without the package.
    """
    require("langchain_core", "agents", "tools for LangGraph")
    from langchain_core.tools import StructuredTool

    functions = [tool.as_function(episode.act) for tool in episode.tools]
    return [StructuredTool.from_function(function, parse_docstring=True) for function in functions]
