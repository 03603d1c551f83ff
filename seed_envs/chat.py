"""From turns to chat messages.

The only place that builds message lists, for training, evaluation and play alike. It knows no tokenizer and no
environment; what the words are is decided by the profile's template.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seed_envs.profiles import Profile, TurnContext

Message = dict[str, Any]

#: Words that mark a tag as a chat-template, tool or picture marker, whatever stands around them: ``<image>``,
#: ``<tool_call>``, ``</tool_response>``, ``<start_of_turn>``, ``<IMG_CONTEXT>``, ``<unused12>``.
_MARKER_WORDS = (
    "s|bos|eos|eot|pad|unk|mask|sep|cls|sys|system|turn|start|end|begin|token|tool|function"
    "|image|img|video|audio|vision|fim|unused|reserved|extra|row"
)
#: Markers of the open model families by their shape: ``<|...|>`` (Qwen, Llama 3, Phi, GLM), wide bars (DeepSeek), tags
#: with one of the words above (Llama 2, LLaVA, Gemma, InternVL, Qwen tools), and capitals in square brackets (Mistral,
#: Pixtral, GLM). Tags of the environments' own protocols, such as ``<action>``, are not among them.
_MARKERS = re.compile(
    r"<\|(?=[^<>|\n]{1,64}\|>)|<(?=\uff5c)|<(?=</?SYS>>)"
    rf"|<(?=(?i:/?(?:[a-z0-9]{{1,32}}[_-]){{0,4}}(?:{_MARKER_WORDS})s?[0-9]{{0,6}}(?:[_-][a-z0-9]{{1,32}}){{0,4}}>))"
    r"|\[(?=/?(?:INST|IMG|THINK|ARGS|AUDIO|[gs]MASK|[A-Z]{2,16}(?:_[A-Z]{2,16}){1,4})\])"
)


def defuse(text: str) -> str:
    """Break chat-template and image markers inside text that a model or a data file wrote.

    ``<|im_start|>`` becomes ``< |im_start|>``: readable, but no longer a special token, so typed text can neither
    open a new role nor stand for an image.
    """
    if "<" not in text and "[" not in text:
        return text
    return _MARKERS.sub(lambda match: f"{match.group()[0]} {match.group()[1:]}", text)


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
        Messages, optionally headed by the profile's system message.
    """
    messages: list[Message] = [{"role": "system", "content": profile.system}] if profile.system else []
    if profile.style == "window":
        turn = turns[-1]
        return [*messages, user_message(profile.template.render(turn, skill), turn.image)]
    for index, turn in enumerate(turns):
        messages.append(user_message(profile.template.render(turn, skill), turn.image))
        if index < len(replies):
            messages.append({"role": "assistant", "content": defuse(replies[index])})
    return messages
