"""The messages of a WebSocket session: what a client may say, and the answer to one that says something else."""

from __future__ import annotations

import json
from typing import Any

EXPECTED = (
    'expected one JSON object a message: {"type": "reset", "data": {}} (seed, task_id, split and other options of the '
    'environment go into data), {"type": "step", "data": {"text": "ACTION"}}, {"type": "state"} or {"type": "close"}'
)
_NOT_READ = ("INVALID_JSON", "UNKNOWN_TYPE", "VALIDATION_ERROR")


def as_object(message: str | None) -> str:
    """Text that is an object or broken; anything else would end OpenEnv's session in words about Python.

    Args:
        message: What arrived; None for a message of bytes.
    """
    text = (message or "").lstrip()
    # An object without a type is answered as a message of a type that nobody knows.
    return message or "" if text.startswith("{") else "{}"


def explained(answer: str) -> str:
    """The answer, which says what was expected if it is the one to a message that could not be read.

    Args:
        answer: What OpenEnv sends.
    """
    if not answer.startswith('{"type":"error"'):
        return answer
    error: dict[str, Any] = json.loads(answer)
    data = error["data"]
    if data["code"] not in _NOT_READ:
        return answer
    wrong = [f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in data.get("errors", ())]
    said = f"{data['message']} ({'; '.join(wrong)})" if wrong else data["message"]
    return json.dumps({**error, "data": {**data, "message": f"{said}; {EXPECTED}"}})
