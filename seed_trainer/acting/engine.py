"""Who samples: our cached loop, or TRL (``generate``, continuous batching, vLLM) with the settings of one request.

TRL fixes length and temperature at construction; they are swapped for one call and restored whatever happens.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from trl import GRPOTrainer
from trl.models.utils import unwrap_model_for_generation

from seed_trainer.acting.caches import uncached
from seed_trainer.acting.generation import CachedSampler
from seed_trainer.acting.pictures import COUNTS, PictureReader
from seed_trainer.acting.sampling import Decoding, EngineSampler, Sampler
from seed_trainer.settings.config import SEEDConfig


def make_sampler(
    trainer: GRPOTrainer, args: SEEDConfig, generator: torch.Generator, reader: PictureReader | None
) -> Sampler:
    """Return the configured sampler; the cached loop draws from the generator.

    Args:
        trainer: Owner of the model.
        args: Configuration.
        generator: Source of randomness.
        reader: Reads pictures, for models that see.

    Raises:
        ValueError: If ``rollout_engine=cached`` cannot work for the model.
    """
    engine = args.rollout_engine
    obstacle = "it samples in another process" if trainer.use_vllm else uncached(trainer.model, reader)
    if engine == "auto":
        engine = "trl" if obstacle else "cached"
    if engine == "trl":
        return EngineSampler(functools.partial(engine_generate, trainer, reader))
    if obstacle:
        raise ValueError(f"rollout_engine=cached cannot be used here: {obstacle}; use rollout_engine=auto")

    def unwrap() -> Any:
        kwargs = args.gradient_checkpointing_kwargs
        return unwrap_model_for_generation(
            trainer.model_wrapped, trainer.accelerator, gradient_checkpointing_kwargs=kwargs
        )

    pad_token_id = trainer._tokenizer.pad_token_id
    return CachedSampler(unwrap, trainer.eos_token_ids, pad_token_id, trainer.accelerator.device, generator, reader)


@contextmanager
def decoding_settings(trainer: GRPOTrainer, decoding: Decoding) -> Iterator[None]:
    """Put a decoding into the trainer's generation settings for the time of the block."""
    if trainer.use_vllm:
        target, changes = trainer.vllm_generation, {
            "max_completion_length": decoding.max_new_tokens,
            "temperature": decoding.temperature,
        }  # fmt: skip
        saved = {name: getattr(target, name) for name in changes}
        try:
            for name, value in changes.items():
                setattr(target, name, value)
            yield
        finally:
            for name, value in saved.items():
                setattr(target, name, value)
        return
    greedy = decoding.temperature == 0
    changes = {
        "max_new_tokens": decoding.max_new_tokens,
        "do_sample": not greedy,
        "temperature": 1.0 if greedy else decoding.temperature,
        "top_p": 1.0 if greedy else decoding.top_p,
        "top_k": 0 if greedy else decoding.top_k,
    }
    config, kwargs = trainer.generation_config, trainer.generation_kwargs
    saved = {name: getattr(config, name) for name in changes}
    trainer.generation_kwargs = {**kwargs, **changes}
    try:
        for name, value in changes.items():
            setattr(config, name, value)
        yield
    finally:
        trainer.generation_kwargs = kwargs
        for name, value in saved.items():
            setattr(config, name, value)


def image_fields(reader: PictureReader | None, contexts: Sequence[list[int]], images: Sequence[list[Any]]) -> Any:
    """Return the model's image inputs for contexts whose ids already hold the image placeholders."""
    fields = reader.fields(images) if reader is not None else {}
    if not fields or reader is None:
        return {}
    # TRL pads lists of one entry per token as it pads the ids.
    types = {name: [reader.token_types(torch.tensor(ids))[name].tolist() for ids in contexts] for name in reader.types}
    return {**{name: value for name, value in fields.items() if name not in COUNTS}, **types}


def engine_generate(
    trainer: GRPOTrainer,
    reader: PictureReader | None,
    contexts: list[list[int]],
    images: Sequence[list[Any]] | None,
    decoding: Decoding,
) -> tuple[list[list[int]], list[list[float]] | None]:
    """Generate one continuation per context with TRL's own engine.

    Returns:
        Completion ids, and log-probabilities where the engine returns them (vLLM).
    """
    per_row = list(images) if images is not None and any(images) else None
    with decoding_settings(trainer, decoding):
        ids, logprobs = trainer._generate_single_turn(
            contexts, per_row, image_fields(reader, contexts, images or []), 1
        )
    return ids, logprobs
