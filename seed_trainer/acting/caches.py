"""The key-value cache of a sampler: with spare room, kept from turn to turn, and for which models that works."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from torch import Tensor
from transformers.cache_utils import Cache, DynamicCache, DynamicLayer

from seed_trainer.acting.pictures import PictureReader


class GrowableLayer(DynamicLayer):
    """A cache layer with spare room, so that a new token does not copy all old ones."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)  # type: ignore[no-untyped-call]
        self.length = 0
        self.room: tuple[Tensor, Tensor] | None = None

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """Append states in place, growing the room by half when it is full."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        end = self.length + key_states.shape[-2]
        if self.room is None or end > self.room[0].shape[-2]:
            self.room = (
                self._grown(self.room and self.room[0], key_states, end),
                self._grown(self.room and self.room[1], value_states, end),
            )
        self.room[0][:, :, self.length : end] = key_states
        self.room[1][:, :, self.length : end] = value_states
        self.length = end
        self.keys, self.values = self.room[0][:, :, :end], self.room[1][:, :, :end]
        return self.keys, self.values

    def _grown(self, old: Tensor | None, like: Tensor, needed: int) -> Tensor:
        batch, heads, _, width = like.shape
        new = like.new_zeros((batch, heads, needed + max(64, needed // 2), width))
        if old is not None:
            new[:, :, : self.length] = old[:, :, : self.length]
        return new

    def batch_select_indices(self, indices: Tensor) -> None:
        """Keep some rows."""
        if self.room is not None:
            self.room = (self.room[0][indices], self.room[1][indices])
            self.keys, self.values = self.room[0][:, :, : self.length], self.room[1][:, :, : self.length]


def make_cache(config: Any) -> Cache:
    """Return a growable cache where every layer attends to everything, else the model's own dynamic cache."""
    cache = DynamicCache(config=config)
    if all(type(layer) is DynamicLayer for layer in cache.layers):
        cache.layers = [GrowableLayer() for _ in cache.layers]
    return cache


def uncached(model: Any, reader: PictureReader | None) -> str:
    """Return why a model that sees cannot keep its cache from turn to turn; empty if it can, or reads text alone.

    A cache that forgets (a sliding window) counts the padding between turns as if it were text. Tokens of one picture
    that see each other in both directions need a mask that the cached loop does not make; a processor that names token
    types without positions of their own tells of such a model.
    """
    if reader is None:
        return ""
    if any(type(layer) is not GrowableLayer for layer in make_cache(model.config).layers):
        return "the model's cache forgets, and pictures would be forgotten before the text around them"
    if "token_type_ids" in reader.processor.model_input_names:
        return "the tokens of a picture see each other in both directions"
    return ""


def rope_index(model: Any) -> Callable[..., tuple[Tensor, Tensor]] | None:
    """Return what a model computes the positions of pictures with, where they have one per axis (M-RoPE)."""
    return next((part.get_rope_index for part in model.modules() if hasattr(part, "get_rope_index")), None)


@functools.cache
def cache_argument(model_class: Any) -> str:
    """Return the name under which a model takes its cache; transformers is renaming ``past_key_values``."""
    return "cache" if "cache" in inspect.signature(model_class.forward).parameters else "past_key_values"
