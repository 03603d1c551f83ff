"""The wire format of OpenAI-compatible chat endpoints: messages out, texts and token counts in.

Sends nothing.
"""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from seed_envs.chat import Message, offered_tools


@dataclass(frozen=True)
class Answer:
    """A usable answer.

    Attributes:
        text: What the model said; empty when it said nothing.
        finish_reason: ``stop``, ``length``, ...; empty when the endpoint does not say.
        prompt_tokens: As the endpoint counts, 0 where it does not.
        completion_tokens: Likewise.
        reasoning: What the model thought, where the endpoint sends it apart.
    """

    text: str
    finish_reason: str
    prompt_tokens: int
    completion_tokens: int
    reasoning: str = ""

    @property
    def whole(self) -> str:
        """Reasoning in ``<think>`` tags, unless it is in the text already, then the text."""
        if not self.reasoning or "<think>" in self.text:
            return self.text
        return f"<think>{self.reasoning}</think>{self.text}"


def request_body(model: str, messages: Sequence[Message], parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON of one request; images become PNG data addresses.

    Args:
        model: Model name.
        messages: The conversation.
        parameters: Further fields: temperature, length limit, seed, ...
    """
    messages, tools = offered_tools(messages)
    offered = {"tools": tools} if tools else {}
    return {"model": model, "messages": [_message(message) for message in messages], **offered, **parameters}


def read_tokens(record: Any) -> tuple[int, int]:
    """Prompt and completion tokens of a response's JSON, 0 where it names none.

    Raises:
        ValueError: When they are no counts.
    """
    usage = (record.get("usage") if isinstance(record, dict) else None) or {}
    try:
        counts = int(usage.get("prompt_tokens") or 0), int(usage.get("completion_tokens") or 0)
    except (TypeError, AttributeError, OverflowError) as error:
        raise ValueError(f"no chat completion: {type(error).__name__}: {error}") from error
    if min(counts) < 0:
        raise ValueError(f"no chat completion: token counts below 0: {counts}")
    return counts


def read_answer(record: Any) -> Answer:
    """The answer in a response's JSON.

    Raises:
        ValueError: When it is not a chat completion.
    """
    try:
        choice = record["choices"][0]
        message = choice["message"]
        text, thoughts = _read_content(message.get("content"))
        reasoning = (
            message.get("reasoning_content")
            or message.get("reasoning")
            or _texts(message.get("reasoning_details") or [])
        )
        text = text or _text(message.get("refusal"))
        text = "\n".join(filter(None, [text, _tool_calls(message.get("tool_calls") or [])]))
        thoughts = thoughts or _text(reasoning)
        finish_reason = str(choice.get("finish_reason") or "")
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise ValueError(f"no chat completion: {type(error).__name__}: {error}") from error
    return Answer(_writable(text), finish_reason, *read_tokens(record), _writable(thoughts))


def _read_content(content: Any) -> tuple[str, str]:
    """What was said and what was thought, from a text or a list of parts."""
    if not isinstance(content, list):
        return _text(content), ""
    thoughts = [part for part in content if part.get("type") in ("thinking", "reasoning")]
    return _texts([part for part in content if part not in thoughts]), _texts(thoughts)


def _texts(parts: Sequence[Any]) -> str:
    """The texts of parts, whatever the key that holds them; a part may hold parts."""
    texts = []
    for part in parts:
        held = next((part[key] for key in ("text", "thinking", "refusal") if part.get(key) is not None), "")
        texts.append(_texts(held) if isinstance(held, list) else _text(held))
    return "".join(texts)


def _tool_calls(calls: Sequence[Any]) -> str:
    """Calls of tools, as models write them in a text: the reader of the reply decides what they mean."""
    functions = [call["function"] for call in calls]
    return "\n".join(
        f"<tool_call>{json.dumps({'name': each.get('name'), 'arguments': each.get('arguments')})}</tool_call>"
        for each in functions
    )


def _text(value: Any) -> str:
    """A text, or nothing for nothing.

    Raises:
        TypeError: For anything else.
    """
    if value is None:
        return ""
    if not isinstance(value, str):
        raise TypeError(f"the content is {type(value).__name__}, not text")
    return value


def _writable(text: str) -> str:
    """Without lone surrogates, which are legal in JSON but cannot be written to a file."""
    return text.encode("utf-8", "replace").decode()


def _message(message: Message) -> dict[str, Any]:
    content = message["content"]
    if isinstance(content, str):
        return dict(message)
    return {**message, "content": [_part(part) for part in content]}


def _part(part: Mapping[str, Any]) -> dict[str, Any]:
    if part["type"] != "image":
        return dict(part)
    return {"type": "image_url", "image_url": {"url": image_url(part["image"])}}


def image_url(image: Any, effort: int = 6) -> str:
    """A picture, or an array of height x width x 3 bytes, as a ``data:`` URL of its PNG; effort is zlib's, 0 to 9."""
    from PIL import Image

    picture = image if isinstance(image, Image.Image) else Image.fromarray(image)
    buffer = io.BytesIO()
    picture.save(buffer, format="PNG", compress_level=effort)
    return f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}"
