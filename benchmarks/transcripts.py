"""The transcript of an episode as JSON: of a conversation what each turn added, pictures as files by their hash."""

from __future__ import annotations

import hashlib
import io
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from seed_envs.chat import Message
from seed_envs.markers import defuse
from seed_envs.trajectory import Step

#: Levels of nesting that are kept of a value that is not plain JSON.
_DEEPEST = 60


@dataclass
class Pictures:
    """PNG files of one episode by name; a picture that is shown again is encoded once."""

    files: dict[str, bytes] = field(default_factory=dict)
    known: dict[int, dict[str, Any]] = field(default_factory=dict)

    def part(self, image: Any) -> dict[str, Any]:
        """The message part that stands for an image."""
        if id(image) not in self.known:
            from PIL import Image

            picture = image if isinstance(image, Image.Image) else Image.fromarray(image)
            buffer = io.BytesIO()
            picture.save(buffer, format="PNG")
            name = hashlib.sha256(buffer.getvalue()).hexdigest()[:24] + ".png"
            self.files[name] = buffer.getvalue()
            self.known[id(image)] = {"type": "image", "file": f"images/{name}", "size": list(picture.size)}
        return self.known[id(image)]


def expand_messages(steps: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Undo the storage of conversations: every step gets its full message list again."""
    before: list[Message] = []
    for step in steps:
        messages = before[: step["kept"]] + step["messages"]
        yield {**{key: value for key, value in step.items() if key != "kept"}, "messages": messages}
        before = [*messages, _assistant(step["reply"])]


def steps_to_json(steps: Iterable[Step], images: Pictures) -> Iterator[dict[str, Any]]:
    """Every step with the messages that it added; ``kept`` is how many of the last one's it begins with."""
    before: list[Message] = []
    for step in steps:
        messages = [_message_to_json(message, images) for message in step.messages]
        kept = 0
        while kept < min(len(before), len(messages)) and before[kept] == messages[kept]:
            kept += 1
        yield {
            "observation": step.observation,
            "kept": kept,
            "messages": messages[kept:],
            "reply": step.reply,
            "action": step.action,
            "format_valid": step.format_valid,
            "action_valid": step.action_valid,
            "invalid_reason": step.invalid_reason,
            "reward": step.reward,
            "seconds": {key: round(value, 6) for key, value in step.seconds.items()},
            "meta": step.meta,
        }
        before = [*messages, _assistant(step.reply)]


def _assistant(reply: str) -> Message:
    return {"role": "assistant", "content": defuse(reply)}


def _message_to_json(message: Message, images: Pictures) -> Message:
    content = message["content"]
    if isinstance(content, str):
        return message
    parts = [images.part(part["image"]) if part["type"] == "image" else part for part in content]
    return {**message, "content": parts}


def plain_json(value: Any, room: int = _DEEPEST) -> Any:
    """Only what JSON holds: other objects and what lies too deep become a note, NaN and infinities become null."""
    if isinstance(value, (dict, list, tuple)) and room == 0:
        return f"<{type(value).__name__}, nested too deeply>"
    if isinstance(value, dict):
        return {str(key): plain_json(item, room - 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_json(item, room - 1) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, (str, int)):
        return value
    if hasattr(value, "item") and getattr(value, "ndim", None) == 0:
        return plain_json(value.item())
    return f"<{type(value).__name__}>"
