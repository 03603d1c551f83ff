"""Sampling token by token, with a key-value cache that survives from turn to turn.

Inside the training process: no weights are copied and nothing is encoded twice, a picture that a conversation showed
in an earlier turn included. vLLM, and models whose pictures see each other in both directions, go through TRL's
generation instead (:class:`~seed_trainer.acting.sampling.EngineSampler`). No beam search, no penalties.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers.cache_utils import Cache

from seed_trainer.acting.caches import cache_argument, make_cache, rope_index
from seed_trainer.acting.picking import pick_tokens
from seed_trainer.acting.pictures import COUNTS, PictureReader
from seed_trainer.acting.sampling import Decoding, Sampled
from seed_trainer.acting.streams import draws_BL


@dataclass
class _CacheState:
    """What the key-value cache holds: a rectangle (B, L) in which 0 in ``mask`` marks padding.

    Attributes:
        cache: Keys and values.
        keys: Name of every row.
        seen: Token ids of every row, without padding.
        mask: 1 on tokens.
        next_B: Position of the next token of every row.
        pictures: Number of pictures that every row has read.
        planes: What computes the positions of pictures, where the model has them (see :func:`rope_index`).
    """

    cache: Cache
    keys: list[Hashable]
    seen: list[list[int]]
    mask: Tensor
    next_B: Tensor
    pictures: list[int]
    planes: Callable[..., tuple[Tensor, Tensor]] | None = None

    @classmethod
    def empty(cls, config: Any, keys: list[Hashable], device: torch.device) -> _CacheState:
        """Return the state of a cache that holds nothing yet."""
        zeros = torch.zeros(len(keys), dtype=torch.long, device=device)
        return cls(make_cache(config), keys, [[] for _ in keys], zeros[:, None][:, :0], zeros, [0] * len(keys))

    def keep(self, rows: list[int]) -> None:
        """Keep some rows, in the order given."""
        if rows == list(range(len(self.keys))):
            return
        index = torch.tensor(rows, device=self.mask.device)
        for layer in self.cache.layers:
            layer.batch_select_indices(index)  # type: ignore[union-attr]
        self.mask, self.next_B = self.mask[index], self.next_B[index]
        self.keys, self.seen = [self.keys[row] for row in rows], [self.seen[row] for row in rows]
        self.pictures = [self.pictures[row] for row in rows]


class CachedSampler:
    """Samples with the training model itself.

    Args:
        unwrap: Opens a context that yields the model to call.
        eos_token_ids: Ids that end a continuation.
        pad_token_id: Id for padding.
        device: Where the model is.
        generator: Source of randomness of continuations without streams; None uses torch's global one.
        reader: Reads pictures, for models that see.
    """

    def __init__(
        self,
        unwrap: Callable[[], AbstractContextManager[Any]],
        eos_token_ids: Sequence[int],
        pad_token_id: int,
        device: torch.device,
        generator: torch.Generator | None = None,
        reader: PictureReader | None = None,
    ) -> None:
        self.unwrap = unwrap
        self.eos = torch.tensor(list(eos_token_ids), device=device)
        self.pad_token_id = pad_token_id
        self.device = device
        self.generator = generator
        self.reader = reader
        self._state: _CacheState | None = None

    def forget(self) -> None:
        """Drop the cache."""
        self._state = None

    @torch.no_grad()
    def sample(
        self,
        keys: Sequence[Hashable],
        contexts: Sequence[list[int]],
        decoding: Decoding,
        images: Sequence[list[Any]] | None = None,
        streams: Sequence[str] | None = None,
    ) -> list[Sampled]:
        """Continue every context; see :class:`Sampler`.

        Raises:
            ValueError: For images without a reader of pictures.
        """
        rows = [list(row) for row in images or [[] for _ in contexts]]
        if any(rows) and self.reader is None:
            raise ValueError("a prompt holds pictures and the model reads text alone; use a vision-language model")
        if not contexts:
            return []
        with self.unwrap() as model:
            state = self._align(list(keys), contexts, model.config)
            state.planes = rope_index(model) if self.reader else None
            draws = draws_BL(streams, decoding.max_new_tokens, self.device) if streams else None
            return self._continue(model, state, contexts, decoding, rows, draws)

    def _align(self, keys: list[Hashable], contexts: Sequence[list[int]], config: Any) -> _CacheState:
        """Keep the cache of rows whose context was extended; start anew if any row is new or was rewritten."""
        state = self._state
        if state is not None and set(keys) <= set(state.keys):
            rows = [state.keys.index(key) for key in keys]
            kept = all(
                # Logits come with new tokens only: a context that did not grow has none to be fed.
                len(state.seen[row]) < len(context) and context[: len(state.seen[row])] == state.seen[row]
                for row, context in zip(rows, contexts, strict=True)
            )
            if kept:
                state.keep(rows)
                return state
        self._state = _CacheState.empty(config, keys, self.device)
        return self._state

    def _continue(
        self,
        model: Any,
        state: _CacheState,
        contexts: Sequence[list[int]],
        decoding: Decoding,
        images: Sequence[list[Any]],
        draws: Tensor | None,
    ) -> list[Sampled]:
        fresh = [context[len(seen) :] for context, seen in zip(contexts, state.seen, strict=True)]
        width = max(map(len, fresh))
        ids = torch.full((len(fresh), width), self.pad_token_id)
        mask = torch.zeros(len(fresh), width, dtype=torch.long)
        for row, tokens in enumerate(fresh):
            # Padding goes to the left, so that the last column is the last token of every row.
            ids[row, width - len(tokens) :] = torch.tensor(tokens)
            mask[row, width - len(tokens) :] = 1
        shown = [row[count:] for row, count in zip(images, state.pictures, strict=True)]
        logits = self._forward(model, state, ids.to(self.device), mask.to(self.device), self._fields(shown))
        state.seen = [list(context) for context in contexts]
        state.pictures = [len(row) for row in images]
        finished = torch.zeros(len(fresh), dtype=torch.bool, device=self.device)
        columns: list[Tensor] = []
        logps: list[Tensor] = []
        alive: list[Tensor] = []
        for index in range(decoding.max_new_tokens):
            chance = self.generator if draws is None else draws[:, index]
            token, logp = pick_tokens(logits, decoding, chance, self.reader.token_ids if self.reader else ())
            token = token.masked_fill(finished, self.pad_token_id)
            columns.append(token)
            logps.append(logp)
            alive.append(~finished)
            # A row that just ended still has to put its end token into the cache, so it stays unmasked here.
            step_mask = (~finished).long()
            finished = finished | torch.isin(token, self.eos)
            if bool(finished.all()) or index + 1 == decoding.max_new_tokens:
                break
            logits = self._forward(model, state, token[:, None], step_mask[:, None], {})
        return self._collect(state, columns, logps, alive)

    def _fields(self, pictures: Sequence[Sequence[Any]]) -> dict[str, Tensor]:
        """Return the model's inputs for pictures that were not read yet."""
        fields = self.reader.fields(pictures) if self.reader else {}
        return {name: value.to(self.device) for name, value in fields.items() if name not in COUNTS}

    def _forward(self, model: Any, state: _CacheState, ids: Tensor, mask: Tensor, fields: dict[str, Tensor]) -> Tensor:
        positions = self._positions(state, ids, mask, fields)
        state.mask = torch.cat([state.mask, mask], dim=1)
        model_class: Any = type(model)
        argument = cache_argument(model_class)
        output = model(
            input_ids=ids,
            attention_mask=state.mask,
            position_ids=positions,
            use_cache=True,
            logits_to_keep=1,
            **fields,
            **{argument: state.cache},
        )
        logits: Tensor = output.logits[:, -1]
        return logits

    def _positions(self, state: _CacheState, ids: Tensor, mask: Tensor, fields: dict[str, Tensor]) -> Tensor:
        """Return positions, (B, W) or one plane per axis of the picture, and move the state's next ones on.

        Padding lies between the turns of a row, not only before them: positions count real tokens, not columns.
        """
        planes = mask.cumsum(1) - 1
        if state.planes is not None:
            planes = planes.expand(3, -1, -1)
            if self.reader is not None and "image_grid_thw" in fields:
                # A picture takes up fewer positions than tokens, and its own do not depend on where the text begins.
                types, grids = self.reader.token_types(ids), fields["image_grid_thw"]
                planes, _ = state.planes(ids, image_grid_thw=grids, attention_mask=mask, **types)
        planes = planes.masked_fill(mask == 0, -1)
        positions = (planes + state.next_B[:, None]).clamp(min=0)
        state.next_B = state.next_B + planes.amax(-1).reshape(-1, len(ids)).amax(0) + 1
        return positions

    def _collect(
        self, state: _CacheState, columns: list[Tensor], logps: list[Tensor], alive: list[Tensor]
    ) -> list[Sampled]:
        lengths = torch.stack(alive, 1).sum(1).tolist()
        ids, values = torch.stack(columns, 1).tolist(), torch.stack(logps, 1).tolist()
        # The last column was sampled but not fed back, so it is not in the cache yet.
        last = len(columns) - 1
        for row, length in enumerate(lengths):
            state.seen[row] = state.seen[row] + ids[row][: min(length, last)]
        return [Sampled(ids[row][:length], values[row][:length]) for row, length in enumerate(lengths)]
