"""What samples: one interface for the training process and for engines, and how it samples. No model is called here."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import torch


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
