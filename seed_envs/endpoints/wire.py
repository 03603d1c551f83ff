"""The wire format of OpenAI-compatible chat endpoints: messages out, texts, token counts and refusals in.

Sends nothing.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from seed_envs.chat import Message
from seed_envs.errors import ContextOverflow, EndpointError, EndpointPassing, EndpointRefused


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
    return {"model": model, "messages": [_message(message) for message in messages], **parameters}


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
        text, reasoning = message.get("content"), message.get("reasoning_content") or message.get("reasoning")
        finish_reason = str(choice.get("finish_reason") or "")
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise ValueError(f"no chat completion: {type(error).__name__}: {error}") from error
    for part in (text, reasoning):
        if not isinstance(part, (str, type(None))):
            raise ValueError(f"no chat completion: the content is {type(part).__name__}, not text")
    return Answer(_writable(text), finish_reason, *read_tokens(record), _writable(reasoning))


#: Statuses that may pass: time-outs, conflicts, rate limits, and everything that is the server's own trouble.
PASSING_STATUS = frozenset({408, 409, 425, 429, *range(500, 600)})
#: Refusals that no other request of the same run would escape: key, account, address or model name are wrong.
HOPELESS_STATUS = frozenset({401, 402, 403, 404})
#: Statuses and (lower case) phrases by which servers say that a prompt is too long.
OVERFLOW_STATUS = frozenset({400, 413, 422})
OVERFLOW_PHRASES = ("context_length_exceeded", "maximum context length", "context length", "prompt is too long")


def read_refusal(status: int, text: str, where: str, wait: float | None = None) -> EndpointError:
    """The error that a status other than 200 stands for.

    Args:
        status: HTTP status.
        text: Body of the response.
        where: Address, for the message.
        wait: Seconds that the endpoint asks to wait.

    Returns:
        :class:`ContextOverflow`, :class:`EndpointPassing` (try again) or :class:`EndpointRefused` (do not).
    """
    said = f"{where}: HTTP {status}: {text[:300]}"
    if status in OVERFLOW_STATUS and any(phrase in text.lower() for phrase in OVERFLOW_PHRASES):
        return ContextOverflow(f"the endpoint says that the prompt is too long: {said}")
    if status in PASSING_STATUS:
        return EndpointPassing(said, wait)
    return EndpointRefused(said, hopeless=status in HOPELESS_STATUS)


def _writable(text: str | None) -> str:
    """Without lone surrogates, which are legal in JSON but cannot be written to a file."""
    return (text or "").encode("utf-8", "replace").decode()


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
