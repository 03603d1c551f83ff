"""Sampling token by token, with a key-value cache that survives from turn to turn.

For text models inside the training process: no weights are copied and nothing is encoded twice. Vision-language
models and vLLM go through TRL's generation instead (:class:`EngineSampler`). No beam search, no penalties.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import Tensor
from transformers.cache_utils import Cache, DynamicCache, DynamicLayer


@dataclass
class Sampled:
    """One sampled continuation: its ids (with the end token, if it was reached) and their log-probabilities."""

    ids: list[int]
    logprobs: list[float] | None = None


@dataclass(frozen=True)
class Decoding:
    """How to sample.

    Attributes:
        max_new_tokens: Length limit of one continuation.
        temperature: 0 means greedy.
        top_p: Nucleus; 1 keeps everything.
        top_k: Number of candidates; 0 keeps everything.
    """

    max_new_tokens: int
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0


class Sampler(Protocol):
    """Continues many contexts at once."""

    def sample(
        self,
        keys: Sequence[Hashable],
        contexts: Sequence[list[int]],
        decoding: Decoding,
        images: Sequence[list[Any]] | None = None,
    ) -> list[Sampled]:
        """Return one continuation per context; a context that extends the last one under its key may be cached."""
        ...

    def forget(self) -> None:
        """Drop caches; call it whenever the weights changed."""
        ...


@contextmanager
def own_randomness(generator: torch.Generator) -> Iterator[None]:
    """Let the block sample without changing what is sampled after it.

    Args:
        generator: Put back afterwards, as torch's global ones are.
    """
    state = generator.get_state()
    try:
        with torch.random.fork_rng(devices=[torch.cuda.current_device()] if torch.cuda.is_available() else []):
            yield
    finally:
        generator.set_state(state)


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


@functools.cache
def cache_argument(model_class: Any) -> str:
    """Return the name under which a model takes its cache; transformers is renaming ``past_key_values``."""
    return "cache" if "cache" in inspect.signature(model_class.forward).parameters else "past_key_values"


def pick_tokens(logits_BV: Tensor, decoding: Decoding, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
    """Pick one token per row.

    Returns:
        Ids and log-probabilities, both shape (B,). The log-probabilities are those of the distribution sampled from.

    Raises:
        FloatingPointError: If a logit is not a number, as after a diverged update.
    """
    if bool(logits_BV.isnan().any()):
        raise FloatingPointError(
            "the model's logits are not numbers: its weights have diverged; lower learning_rate or opd_coef, or raise "
            "beta, and go on from an earlier checkpoint"
        )
    if decoding.temperature == 0:
        logps_BV = torch.log_softmax(logits_BV.float(), dim=-1)
        ids_B = logits_BV.argmax(dim=-1)
    else:
        logits_BV = _filtered(logits_BV.float() / decoding.temperature, decoding)
        logps_BV = torch.log_softmax(logits_BV, dim=-1)
        ids_B = torch.multinomial(logps_BV.exp(), 1, generator=generator).squeeze(1)
    return ids_B, logps_BV.gather(1, ids_B[:, None]).squeeze(1)


def _filtered(logits_BV: Tensor, decoding: Decoding) -> Tensor:
    if decoding.top_k:
        threshold = logits_BV.topk(min(decoding.top_k, logits_BV.size(-1)), dim=-1).values[:, -1:]
        logits_BV = logits_BV.masked_fill(logits_BV < threshold, -torch.inf)
    if decoding.top_p < 1.0:
        ordered, index = logits_BV.sort(dim=-1, descending=True)
        # What lies before a token decides: the token that crosses top_p is kept, and so is the first one always.
        before = ordered.softmax(-1).cumsum(-1) - ordered.softmax(-1)
        ordered = ordered.masked_fill(before >= decoding.top_p, -torch.inf)
        logits_BV = torch.full_like(logits_BV, -torch.inf).scatter(1, index, ordered)
    return logits_BV


@dataclass
class _CacheState:
    """What the key-value cache holds: a rectangle in which 0 in ``mask`` marks padding."""

    cache: Cache
    keys: list[Hashable]
    seen: list[list[int]]
    mask: Tensor = field(default_factory=lambda: torch.zeros(0, 0))


class CachedSampler:
    """Samples with the training model itself.

    Args:
        unwrap: Opens a context that yields the model to call.
        eos_token_ids: Ids that end a continuation.
        pad_token_id: Id for padding.
        device: Where the model is.
        generator: Source of randomness; None uses torch's global one.
    """

    def __init__(
        self,
        unwrap: Callable[[], AbstractContextManager[Any]],
        eos_token_ids: Sequence[int],
        pad_token_id: int,
        device: torch.device,
        generator: torch.Generator | None = None,
    ) -> None:
        self.unwrap = unwrap
        self.eos = torch.tensor(list(eos_token_ids), device=device)
        self.pad_token_id = pad_token_id
        self.device = device
        self.generator = generator
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
    ) -> list[Sampled]:
        """Continue every context; see :class:`Sampler`.

        Raises:
            ValueError: If images are given.
        """
        if images is not None and any(images):
            raise ValueError("the cached sampler is for text; set rollout_engine=trl for models with images")
        if not contexts:
            return []
        with self.unwrap() as model:
            state = self._align(list(keys), contexts, model.config)
            return self._continue(model, state, contexts, decoding)

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
                if rows != list(range(len(state.keys))):
                    index = torch.tensor(rows, device=self.device)
                    for layer in state.cache.layers:
                        layer.batch_select_indices(index)  # type: ignore[union-attr]
                    state.mask = state.mask[index]
                    state.keys, state.seen = keys, [state.seen[row] for row in rows]
                return state
        mask = torch.zeros(len(keys), 0, dtype=torch.long, device=self.device)
        self._state = _CacheState(make_cache(config), keys, [[] for _ in keys], mask)
        return self._state

    def _continue(
        self, model: Any, state: _CacheState, contexts: Sequence[list[int]], decoding: Decoding
    ) -> list[Sampled]:
        fresh = [context[len(seen) :] for context, seen in zip(contexts, state.seen, strict=True)]
        width = max(map(len, fresh))
        ids = torch.full((len(fresh), width), self.pad_token_id)
        mask = torch.zeros(len(fresh), width, dtype=torch.long)
        for row, tokens in enumerate(fresh):
            # Padding goes to the left, so that the last column is the last token of every row.
            ids[row, width - len(tokens) :] = torch.tensor(tokens)
            mask[row, width - len(tokens) :] = 1
        logits = self._forward(model, state, ids.to(self.device), mask.to(self.device))
        state.seen = [list(context) for context in contexts]
        finished = torch.zeros(len(fresh), dtype=torch.bool, device=self.device)
        columns: list[Tensor] = []
        logps: list[Tensor] = []
        alive: list[Tensor] = []
        for index in range(decoding.max_new_tokens):
            token, logp = pick_tokens(logits, decoding, self.generator)
            token = token.masked_fill(finished, self.pad_token_id)
            columns.append(token)
            logps.append(logp)
            alive.append(~finished)
            # A row that just ended still has to put its end token into the cache, so it stays unmasked here.
            step_mask = (~finished).long()
            finished = finished | torch.isin(token, self.eos)
            if bool(finished.all()) or index + 1 == decoding.max_new_tokens:
                break
            logits = self._forward(model, state, token[:, None], step_mask[:, None])
        return self._collect(state, columns, logps, alive)

    def _forward(self, model: Any, state: _CacheState, ids: Tensor, mask: Tensor) -> Tensor:
        # Padding lies between the turns of a row, not only before them: positions count real tokens, not columns.
        positions = (state.mask.sum(1, keepdim=True) + mask.cumsum(1) - 1).clamp(min=0)
        state.mask = torch.cat([state.mask, mask], dim=1)
        model_class: Any = type(model)
        argument = cache_argument(model_class)
        output = model(
            input_ids=ids,
            attention_mask=state.mask,
            position_ids=positions,
            use_cache=True,
            logits_to_keep=1,
            **{argument: state.cache},
        )
        logits: Tensor = output.logits[:, -1]
        return logits

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


class EngineSampler:
    """Samples through TRL's own generation (``generate``, continuous batching or vLLM).

    Args:
        generate: ``(context ids, images per row or None, decoding) -> (ids, log-probabilities or None)``.
    """

    def __init__(self, generate: Callable[..., tuple[list[list[int]], list[list[float]] | None]]) -> None:
        self.generate = generate

    def forget(self) -> None:
        """Nothing is kept here; the engine syncs its weights itself."""

    def sample(
        self,
        keys: Sequence[Hashable],
        contexts: Sequence[list[int]],
        decoding: Decoding,
        images: Sequence[list[Any]] | None = None,
    ) -> list[Sampled]:
        """Continue every context; see :class:`Sampler`."""
        if not contexts:
            return []
        ids, logprobs = self.generate(list(contexts), images, decoding)
        values = logprobs if logprobs is not None else [None] * len(ids)
        return [Sampled(list(row), value) for row, value in zip(ids, values, strict=True)]
