"""Sampling token by token, with a key-value cache that survives from turn to turn.

Inside the training process: no weights are copied and nothing is encoded twice, a picture that a conversation showed
in an earlier turn included. vLLM, and models whose pictures see each other in both directions, go through TRL's
generation instead (:class:`EngineSampler`). No beam search, no penalties.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor
from transformers.cache_utils import Cache, DynamicCache, DynamicLayer

from seed_trainer.acting.pictures import COUNTS, PictureReader
from seed_trainer.acting.streams import draws_BL, inverse_cdf_B


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
        streams: Sequence[str] | None = None,
    ) -> list[Sampled]:
        """Return one continuation per context; a context that extends the last one under its key may be cached.

        Each is drawn from the stream of its own, where streams are given and the sampler can.
        """
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


def pick_tokens(
    logits_BV: Tensor,
    decoding: Decoding,
    chance: torch.Generator | Tensor | None,
    never: Sequence[int] = (),
) -> tuple[Tensor, Tensor]:
    """Pick one token per row.

    Args:
        logits_BV: Logits of the next token.
        decoding: How to sample.
        chance: Source of randomness, or a draw of its own for every row, uniform in [0, 1).
        never: Ids that are not picked: a placeholder in a reply would stand for a picture that nobody took.

    Returns:
        Ids and log-probabilities, both shape (B,). The log-probabilities are those of the distribution sampled from,
        with the weight of ``never`` left in it, as whoever scores the tokens has it.

    Raises:
        FloatingPointError: If a logit is not a number, as after a diverged update.
    """
    if bool(logits_BV.isnan().any()):
        raise FloatingPointError(
            "the model's logits are not numbers: its weights have diverged; lower learning_rate or opd_coef, or raise "
            "beta, and go on from an earlier checkpoint"
        )
    index = torch.tensor(never, dtype=torch.long, device=logits_BV.device)
    allowed_BV = logits_BV.float().index_fill(1, index, -torch.inf)
    if decoding.temperature == 0:
        ids_B = allowed_BV.argmax(dim=-1)
        kept_BV = logits_BV.float()
    else:
        allowed_BV = _filtered(allowed_BV / decoding.temperature, decoding)
        probabilities_BV = allowed_BV.log_softmax(-1).exp()
        if isinstance(chance, Tensor):
            ids_B = inverse_cdf_B(probabilities_BV, chance)
        else:
            ids_B = torch.multinomial(probabilities_BV, 1, generator=chance).squeeze(1)
        kept_BV = allowed_BV.index_copy(1, index, logits_BV[:, index].float() / decoding.temperature)
    logps_BV = torch.log_softmax(kept_BV, dim=-1)
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
        streams: Sequence[str] | None = None,
    ) -> list[Sampled]:
        """Continue every context with the engine's own randomness; see :class:`Sampler`."""
        if not contexts:
            return []
        ids, logprobs = self.generate(list(contexts), images, decoding)
        values = logprobs if logprobs is not None else [None] * len(ids)
        return [Sampled(list(row), value) for row, value in zip(ids, values, strict=True)]
