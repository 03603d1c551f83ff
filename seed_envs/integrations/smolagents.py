"""smolagents: the tools of an episode, for ``ToolCallingAgent`` or ``CodeAgent``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seed_envs.errors import require
from seed_envs.integrations.episode import Episode
from seed_envs.tools import Tool

if TYPE_CHECKING:
    import smolagents


def smol_tools(episode: Episode) -> list[smolagents.Tool]:
    """The tools of an episode; they play the task it was last reset to.

    Args:
        episode: Started with ``episode.reset(...)``; ``episode.view()`` is what to tell the agent first.

    Raises:
        DependencyMissing: Without the package.
    """
    require("smolagents", "agents", "tools for smolagents")
    return [_smol_tool(episode, tool) for tool in episode.tools]


def _smol_tool(episode: Episode, tool: Tool) -> smolagents.Tool:
    import smolagents

    class SeedTool(smolagents.Tool):
        """One function of an environment."""

        name, description, output_type = tool.name, tool.about, "string"
        inputs: dict[str, Any] = {tool.argument: {"type": "string", "description": tool.meaning}}
        skip_forward_signature_validation = True

        def forward(self, **arguments: Any) -> str:
            """Play the call and return what is seen then."""
            return episode.act(tool.action_of(arguments))

    return SeedTool()
