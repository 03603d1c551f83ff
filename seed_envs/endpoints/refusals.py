"""What an answer that is no completion means: try again, the prompt is too long, or give up, and what helps then.

Servers word the same refusal differently. What is structured counts first: error types and codes, then token counts
beside a window, then phrases. ``tests/envs/endpoint_refusals.json`` holds real answers of many servers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from seed_envs.errors import ContextOverflow, EndpointError, EndpointPassing, EndpointRefused

#: Statuses that may pass: time-outs, conflicts, rate limits, and everything that is the server's own trouble.
PASSING_STATUS = frozenset({408, 409, 425, 429, *range(500, 600)})
#: Refusals that no other request of the same run would escape, and what helps.
HOPELESS_STATUS: Mapping[int, str] = {
    401: "check the key",
    402: "the account has no credit left",
    403: "check the key and what it may use",
    404: "check the model's name and the address up to /v1",
}
#: The same, told by an error code, whatever the status.
HOPELESS_CODES: Mapping[str, str] = {
    "insufficient_quota": "the account has no credit left",
    "billing_hard_limit_reached": "the account has no credit left",
    "invalid_api_key": "check the key",
    "model_not_found": "check the model's name",
}
#: The same, told by a phrase alone.
HOPELESS_PHRASES: Mapping[str, str] = {
    "image input is not supported": "the model reads no pictures; play a text suite or serve it with its vision part"
}
#: Error types and codes that say that a prompt is too long.
OVERFLOW_CODES = frozenset(
    {
        "context_length_exceeded",  # OpenAI, Azure, Groq
        "exceed_context_size_error",  # llama.cpp
        "context_window_exceeded",
        "model_context_window_exceeded",  # Z.ai
        "contextwindowexceedederror",  # LiteLLM
    }
)
#: What a message about tokens is about when it is about the length of a conversation.
_LENGTH = re.compile(r"context|prompt|input|messages|model length")
_EXCESS = re.compile(
    r"exceed|too (?:long|large|many)|longer than|less than|greater than|must be <|maximum|limit|reduce the length"
)
#: Wordings without two numbers to compare.
_PHRASES = re.compile(
    r"(?:context|prompt)[ _](?:length|size|window)[ _](?:has been )?exceed|exceeds? (?:[\w']+ ){0,4}context"
    r"|context window exceeds|(?:prompt|input) (?:is )?too long|maximum (?:context|prompt) length"
    r"|reduce the length of the (?:messages|prompt)|exceeded model token limit|range of input length should be"
    r"|greater than the context length|input token count exceeds|context length is only"
)
_NUMBER = re.compile(r"\d[\d,]*")


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
    fields = _fields(text)
    if is_overflow(status, fields):
        return ContextOverflow(f"the endpoint says that the prompt is too long: {said}")
    if remedy := _remedy(status, fields):
        return EndpointRefused(f"{said} ({remedy})", hopeless=True, body=text)
    if status in PASSING_STATUS:
        return EndpointPassing(said, wait)
    return EndpointRefused(said, body=text)


def is_overflow(status: int, fields: Mapping[str, Any]) -> bool:
    """Whether an error says that the prompt does not fit the model.

    Args:
        status: HTTP status.
        fields: The fields of the error object.
    """
    if _codes(fields) & OVERFLOW_CODES:
        return True
    prompt, window = fields.get("n_prompt_tokens"), fields.get("n_ctx")
    if isinstance(prompt, int) and isinstance(window, int):
        return prompt >= window
    if status not in (400, 413, 422):
        return False
    message = str(fields.get("message", "")).lower()
    return bool(_PHRASES.search(message)) or _compares_counts(message)


def refused_field(text: str, sent: Mapping[str, Any]) -> str:
    """The field of a request that an error complains about, or ``""``.

    Args:
        text: Body of the response.
        sent: The fields that were sent.
    """
    fields = _fields(text)
    named = str(fields.get("param") or "")
    if named in sent:
        return named
    message = str(fields.get("message") or text)
    found = [name for name in sent if re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", message)]
    return min(found, key=message.index) if found else ""


def _compares_counts(message: str) -> bool:
    """Two different counts of tokens, one of them beyond the other, in a sentence about a conversation's length."""
    if "token" not in message or not _LENGTH.search(message) or not _EXCESS.search(message):
        return False
    counts = {int(found.replace(",", "")) for found in _NUMBER.findall(message)}
    return len({count for count in counts if count >= 16}) > 1


def _remedy(status: int, fields: Mapping[str, Any]) -> str:
    for code in sorted(_codes(fields)):
        if code in HOPELESS_CODES:
            return HOPELESS_CODES[code]
    message = str(fields.get("message", "")).lower()
    return next((remedy for phrase, remedy in HOPELESS_PHRASES.items() if phrase in message), "") or (
        HOPELESS_STATUS.get(status, "")
    )


def _codes(fields: Mapping[str, Any]) -> set[str]:
    return {str(fields[key]).lower() for key in ("type", "code", "error_type", "status") if fields.get(key)}


def _fields(text: str) -> dict[str, Any]:
    """The fields of an error in the shapes that servers use; text that is no JSON is the message."""
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        return {"message": text}
    if isinstance(record, list) and record:
        record = record[0]
    if not isinstance(record, dict):
        return {"message": text}
    inner = next((record[key] for key in ("error", "detail") if record.get(key)), None)
    outer = {key: value for key, value in record.items() if key not in ("error", "detail")}
    if isinstance(inner, dict):
        return {**outer, **inner}
    return {"message": text if inner is None else str(inner), **outer}
