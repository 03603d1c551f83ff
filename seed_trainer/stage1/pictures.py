"""The pictures of a collection: one PNG file per content, named by its hash, beside the lines that show them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from seed_envs.chat import Message, picture_parts
from seed_trainer.errors import UserError

FOLDER = "pictures"
_NAME = re.compile(rf"{FOLDER}/[0-9a-f]{{64}}\.png")


class PictureFiles:
    """Keeps pictures as files; a line of JSON names them as ``{"type": "image", "file": "pictures/HASH.png"}``.

    Args:
        folder: Folder of the lines; pictures go into ``pictures/`` below it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._known: dict[str, Any] = {}

    def packed(self, messages: Sequence[Message]) -> list[Message]:
        """Return messages with names in place of pictures, every one of them on disk."""
        return _mapped(messages, lambda part: {"type": "image", "file": self._keep(part["image"])})

    def unpacked(self, messages: Sequence[Message]) -> list[Message]:
        """Return messages with pictures, (H, W, 3) bytes, in place of names; equal pictures are one object.

        Raises:
            UserError: If a file is missing or is not the picture it is named after.
        """
        return _mapped(messages, lambda part: {"type": "image", "image": self._load(part.get("file", ""))})

    def path(self, name: str) -> Path:
        """Return where a picture lies.

        Raises:
            UserError: If the name is not one that :meth:`packed` gives, or there is no such file.
        """
        path = self.folder / name
        if not _NAME.fullmatch(name) or not path.is_file():
            raise UserError(f"no picture {name!r} in {self.folder}; copy the whole folder that `seed-train data` wrote")
        return path

    def _keep(self, picture: Any) -> str:
        from PIL import Image

        pixels = np.ascontiguousarray(picture, dtype=np.uint8)
        name = f"{FOLDER}/{_hash(pixels)}.png"
        if name not in self._known:
            path = self.folder / name
            if not path.is_file():
                path.parent.mkdir(parents=True, exist_ok=True)
                fresh = path.with_suffix(".new")
                Image.fromarray(pixels).save(fresh, format="png")
                fresh.replace(path)
            self._known[name] = pixels
        return name

    def _load(self, name: str) -> Any:
        from PIL import Image

        if name not in self._known:
            path = self.path(name)
            try:
                with Image.open(path, formats=["png"]) as opened:
                    pixels = np.asarray(opened.convert("RGB"))
            except (OSError, SyntaxError, Image.DecompressionBombError) as error:
                raise UserError(f"{path} cannot be read ({error}); copy the folder again") from None
            if path.stem != _hash(pixels):
                raise UserError(f"{path} is not the picture that it is named after; copy the folder again")
            self._known[name] = pixels
        return self._known[name]


def names_of(messages: Sequence[Message]) -> list[str]:
    """Return the names of the pictures of packed messages, in order."""
    return [part["file"] for part in picture_parts(messages)]


def _mapped(messages: Sequence[Message], change: Callable[[dict[str, Any]], dict[str, Any]]) -> list[Message]:
    return [
        message
        if isinstance(message["content"], str)
        else {**message, "content": [change(part) if part["type"] == "image" else part for part in message["content"]]}
        for message in messages
    ]


def _hash(pixels: Any) -> str:
    return hashlib.sha256(f"{pixels.shape}".encode() + pixels.tobytes()).hexdigest()
