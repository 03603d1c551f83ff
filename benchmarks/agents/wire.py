"""The wire format of OpenAI-compatible chat endpoints: messages out, texts and token counts in. Sends nothing."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from seed_envs.chat import Message

from ..config import AgentSettings


@dataclass(frozen=True)
class Completion:
    """A usable answer.

    Attributes:
        text: What the model said, its reasoning (if sent apart) in ``<think>`` tags before it.
        prompt_tokens: As the endpoint counts.
        completion_tokens: As the endpoint counts.
        finish_reason: ``stop``, ``length``, ...
    """

    text: str
    prompt_tokens: int
    completion_tokens: int
    finish_reason: str


def request_body(model: str, messages: Sequence[Message], settings: AgentSettings, seed: int) -> dict[str, Any]:
    """The JSON of one request."""
    body: dict[str, Any] = {
        "model": model,
        "messages": [_message(message) for message in messages],
        "temperature": settings.temperature,
        "top_p": settings.top_p,
        "max_tokens": settings.max_new_tokens,
        "seed": seed,
    }
    if settings.thinking is not None:
        body["chat_template_kwargs"] = {"enable_thinking": settings.thinking}
    return body


def read_completion(record: Any) -> Completion:
    """The answer in a response's JSON.

    Raises:
        ValueError: When it is not a chat completion.
    """
    try:
        choice = record["choices"][0]
        message = choice["message"]
        text, reasoning = message.get("content"), message.get("reasoning_content") or message.get("reasoning")
        usage = record.get("usage") or {}
        finish_reason = str(choice.get("finish_reason") or "")
        counts = int(usage.get("prompt_tokens") or 0), int(usage.get("completion_tokens") or 0)
    except (KeyError, IndexError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError(f"no chat completion: {type(error).__name__}: {error}") from error
    if min(counts) < 0:
        raise ValueError(f"no chat completion: token counts below 0: {counts}")
    if text is None and not reasoning:
        text = ""
    if not isinstance(text, (str, type(None))) or not isinstance(reasoning, (str, type(None))):
        raise ValueError("no chat completion: the content is not text")
    if reasoning and "<think>" not in (text or ""):
        text = f"<think>{reasoning}</think>{text or ''}"
    return Completion(text or "", *counts, finish_reason)


def is_context_overflow(status: int, body: str) -> bool:
    """Whether an error response says that the prompt is too long (servers word it differently)."""
    lowered = body.lower()
    phrases = ("context_length_exceeded", "maximum context length", "context length", "prompt is too long")
    return status in (400, 413, 422) and any(phrase in lowered for phrase in phrases)


def _message(message: Message) -> dict[str, Any]:
    content = message["content"]
    if isinstance(content, str):
        return dict(message)
    return {**message, "content": [_part(part) for part in content]}


def _part(part: Mapping[str, Any]) -> dict[str, Any]:
    if part["type"] != "image":
        return dict(part)
    from PIL import Image

    image = part["image"]
    picture = image if isinstance(image, Image.Image) else Image.fromarray(image)
    buffer = io.BytesIO()
    picture.save(buffer, format="PNG")
    data = base64.b64encode(buffer.getvalue()).decode()
    return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}
