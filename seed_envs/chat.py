"""From turns to chat messages.

The only place that builds message lists, for training, evaluation and play alike. It knows no tokenizer and no
environment; what the words are is decided by the profile's template.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from seed_envs.markers import defuse
from seed_envs.profiles import Profile, TurnContext

Message = dict[str, Any]


def split_observation(observation: Any) -> tuple[str, Any]:
    """Text and image (or None) of an observation."""
    if isinstance(observation, dict):
        return observation.get("text", ""), observation.get("image")
    return observation, None


def user_message(text: str, image: Any = None) -> Message:
    """A user message; with an image it has one image part followed by one text part."""
    if image is None:
        return {"role": "user", "content": text}
    return {"role": "user", "content": [{"type": "image", "image": image}, {"type": "text", "text": text}]}


def picture_parts(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """The picture parts of a conversation in order."""
    contents = [message["content"] for message in messages if isinstance(message["content"], list)]
    return [part for content in contents for part in content if part["type"] == "image"]


def offered_tools(messages: Sequence[Message]) -> tuple[list[Message], list[dict[str, Any]] | None]:
    """A conversation as chat templates and endpoints take it, and beside it the schemas of its tools, or None."""
    tools = next((message["tools"] for message in messages if message.get("tools")), None)
    return [{name: value for name, value in message.items() if name != "tools"} for message in messages], tools


def build_messages(
    profile: Profile, turns: Sequence[TurnContext], replies: Sequence[str], skill: str = ""
) -> list[Message]:
    """The messages a policy sees before its next reply.

    Args:
        profile: Its ``style`` decides: ``"window"`` gives one fresh user message made from the last turn,
            ``"growing"`` one conversation over all turns.
        turns: All turns of the episode up to now, the current one last.
        replies: The policy's earlier replies, one fewer than turns.
        skill: Hindsight skill to splice into the template's slot; empty at inference.

    Returns:
        Messages, optionally headed by the profile's system message, which holds the tools under ``"tools"``.
    """
    messages: list[Message] = [{"role": "system", "content": profile.system}] if profile.system else []
    if profile.action_format.tools:
        head = messages or [{"role": "system", "content": ""}]
        messages = [{**head[0], "tools": [tool.schema() for tool in profile.action_format.tools]}]
    if profile.style == "window":
        turn = turns[-1]
        return [*messages, user_message(profile.template.render(turn, skill), turn.image)]
    for index, turn in enumerate(turns):
        messages.append(user_message(profile.template.render(turn, skill), turn.image))
        if index < len(replies):
            messages.append({"role": "assistant", "content": defuse(replies[index])})
    return messages
