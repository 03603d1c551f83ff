"""Pictures as a vision-language model reads them: every picture of a round goes through the processor once.

A processor turns a picture into two things: the text that stands for it in a conversation (a run of placeholder tokens)
and tensors. Both are kept under the picture's content, so that rollout, scoring, teacher and reference share them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from seed_trainer.errors import UserError

IMAGE_KEYS = (
    "pixel_values",
    "image_grid_thw",
    "num_images",
    "pixel_attention_mask",
    "spatial_shapes",
    "num_tiles",
    "image_sizes",
    "image_position_ids",
)
"""Image inputs that TRL's scoring takes; they depend on the pictures alone, so student and teacher share them."""
COUNTS = ("num_images", "num_tiles")
"""Those of them that tell TRL how to cut the others; no model takes them."""
TYPE_KEYS = ("mm_token_type_ids", "token_type_ids")
MAX_KNOWN_BYTES = 4 * 2**30
"""What read pictures may take up before all are dropped; 256 episodes of 15 different 168x168 pictures take 2.6 GB."""


@dataclass(frozen=True)
class Picture:
    """One picture, read.

    Attributes:
        text: What stands for it in a rendered conversation.
        fields: The model's inputs for this picture alone; the first axis counts patches, tiles or pictures.
    """

    text: str
    fields: dict[str, Tensor]


class PictureReader:
    """Reads pictures with a model's processor.

    Args:
        processor: Processor of a vision-language model.

    Attributes:
        timed: Opened around the processor's work.
    """

    def __init__(self, processor: Any) -> None:
        self.processor = processor
        self.placeholder = str(processor.image_token)
        self.token_ids = [token for token in processor.image_token_ids if token is not None]
        self.types: tuple[str, ...] = ()
        self._known: dict[bytes, Picture] = {}
        self._size = 0
        self.timed: Callable[[], AbstractContextManager[None]] = nullcontext
        self._alike = False

    def read(self, pictures: Sequence[Any]) -> list[Picture]:
        """Return every picture as the model reads it; those not seen before go through the processor at once."""
        keys = [_content(picture) for picture in pictures]
        fresh = {key: picture for key, picture in zip(keys, pictures, strict=True) if key not in self._known}
        if fresh and self._size > MAX_KNOWN_BYTES:
            self._known, self._size = {}, 0
            fresh = dict(zip(keys, pictures, strict=True))
        if fresh:
            with self.timed():
                read = self._process(list(fresh.values()))
            self._known.update(zip(fresh, read, strict=True))
            self._size += sum(tensor.nbytes for picture in read for tensor in picture.fields.values())
        return [self._known[key] for key in keys]

    def texts(self, rows: Sequence[Sequence[Any]]) -> list[tuple[str, ...]]:
        """Return what stands for the pictures of every conversation.

        Raises:
            UserError: If the processor reads pictures otherwise where a conversation holds several.
        """
        self.read([picture for row in rows for picture in row])
        several = next((row for row in rows if len(row) > 1), None)
        if several is not None and not self._alike:
            self._check_several(several[:2])
        return [tuple(picture.text for picture in self.read(row)) for row in rows]

    def fill(self, rendered: str, shown: Sequence[str]) -> str:
        """Put the texts of pictures into a rendered conversation.

        Raises:
            UserError: If the chat template left pictures out.
        """
        parts = rendered.split(self.placeholder)
        if len(parts) != len(shown) + 1:
            raise UserError(
                f"the conversation holds {len(shown)} pictures and the chat template shows {len(parts) - 1}; use the "
                "template of a model that reads pictures"
            )
        return "".join(text for pair in zip(parts, [*shown, ""], strict=True) for text in pair)

    def fields(self, rows: Sequence[Sequence[Any]]) -> dict[str, Any]:
        """Return the image inputs of a batch, laid out as TRL's scoring takes them; empty without any picture.

        Args:
            rows: The pictures of every row, in the order of their placeholders.
        """
        self.read([picture for row in rows for picture in row])
        read = [self.read(row) for row in rows]
        flat = [picture for row in read for picture in row]
        if not flat:
            return {}
        names = flat[0].fields
        # Idefics and its kin hold all pictures of a row along their second axis; all others count along the first.
        by_row = "pixel_attention_mask" in names and "spatial_shapes" not in names
        fields: dict[str, Any] = {
            name: _joined(
                [
                    torch.cat([picture.fields[name] for picture in row] or [names[name][:, :0]], dim=1)
                    for row in read
                ]
                if by_row
                else [picture.fields[name] for picture in flat]
            )
            for name in names
        }  # fmt: skip
        fields["num_images"] = [len(row) for row in rows]
        tiled = any(len(picture.fields["pixel_values"]) != 1 for picture in flat)
        if "spatial_shapes" in names or (tiled and not by_row and "image_grid_thw" not in names):
            fields["num_tiles"] = [sum(len(picture.fields["pixel_values"]) for picture in row) for row in read]
        return fields

    def token_types(self, ids: Tensor) -> dict[str, Tensor]:
        """Return which tokens stand for pictures, under the name the model takes it by; nothing for other models.

        Args:
            ids: Token ids, any shape.
        """
        stands_B = torch.isin(ids, torch.tensor(self.token_ids, device=ids.device)).long()
        return dict.fromkeys(self.types, stands_B)

    def _process(self, pictures: list[Any]) -> list[Picture]:
        encoded = self._encode([self.placeholder] * len(pictures), [[picture] for picture in pictures])
        names = [name for name in IMAGE_KEYS if name in encoded]
        if "image_grid_thw" in names:
            lengths = encoded["image_grid_thw"].prod(-1).tolist()
        elif len(pictures) > 1 and len(encoded["pixel_values"]) != len(pictures):
            return [read for picture in pictures for read in self._process([picture])]
        else:
            lengths = [1] * len(pictures) if len(pictures) > 1 else [len(encoded["pixel_values"])]
        cut = {name: encoded[name].split(lengths if len(encoded[name]) == sum(lengths) else 1) for name in names}
        self.types = tuple(key for key in TYPE_KEYS if key in encoded and bool(encoded[key].any()))
        offsets = encoded["text_replacement_offsets"]
        return [
            Picture(offsets[index][0]["replacement"], {name: cut[name][index] for name in names})
            for index in range(len(pictures))
        ]

    def _encode(self, texts: list[str], pictures: list[list[Any]]) -> Any:
        return self.processor(
            text=texts, images=pictures, padding=True, return_tensors="pt", return_text_replacement_offsets=True
        )

    def _check_several(self, pictures: Sequence[Any]) -> None:
        encoded = self._encode([self.placeholder * len(pictures)], [list(pictures)])
        together = [part["replacement"] for part in encoded["text_replacement_offsets"][0]]
        if together != [picture.text for picture in self.read(pictures)]:
            raise UserError(
                f"{type(self.processor).__name__} reads a picture otherwise where a conversation holds several: a "
                "model of this kind plays with rollout_layout=turn and skills that it does not write itself, and is "
                "not trained on whole episodes; take one like Qwen2.5-VL for that"
            )
        self._alike = True


def _content(picture: Any) -> bytes:
    pixels = np.ascontiguousarray(picture)
    return hashlib.sha256(f"{pixels.dtype}{pixels.shape}".encode() + pixels.tobytes()).digest()


def _joined(pieces: Sequence[Tensor]) -> Tensor:
    """Return tensors joined along their first axis, padded with zeros at the ends of the others."""
    sizes = [max(sizes) for sizes in zip(*(piece.shape[1:] for piece in pieces), strict=True)]
    padded = [
        torch.nn.functional.pad(
            piece,
            [
                amount
                for size, have in zip(reversed(sizes), reversed(piece.shape[1:]), strict=True)
                for amount in (0, size - have)
            ],
        )
        for piece in pieces
    ]
    return torch.cat(padded)
