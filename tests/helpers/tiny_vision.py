"""Tiny random vision-language models with real processors, built in code: no download, no torchvision."""

from __future__ import annotations

from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    PreTrainedTokenizerFast,
    Qwen2_5_VLConfig,
    Qwen2_5_VLForConditionalGeneration,
    Qwen2_5_VLProcessor,
    Qwen3VLConfig,
    Qwen3VLForConditionalGeneration,
    Qwen3VLProcessor,
)
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

from seed_envs.processors import image_only
from seed_envs.profiles import get_profile

SPECIAL = [
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|image_pad|>",
    "<|video_pad|>",
]
CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{% if message['content'] is string %}{{ message['content'] }}{% else %}{% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}<|vision_start|><|image_pad|><|vision_end|>{% else %}{{ part['text'] }}{% endif %}"
    "{% endfor %}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
ENV_IDS = ("seed/Sokoban-v0", "seed/EZPoints-v0", "seed/Points24-v0")
UNITS = {"qwen2.5": 28, "qwen3": 32}
"""Families, and the side of the square that becomes one token, in pixels."""
FAMILIES = tuple(UNITS)


def make_tokenizer() -> PreTrainedTokenizerFast:
    """A byte-level tokenizer trained on the environments' own prompts."""
    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    texts = [get_profile(env_id, "paper").template.first for env_id in ENV_IDS]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=800, min_frequency=1, initial_alphabet=alphabet, special_tokens=SPECIAL, show_progress=False
    )
    core.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=core, pad_token="<|endoftext|>", eos_token="<|im_end|>", padding_side="left"
    )


def make_processor(family: str) -> Any:
    """The processor of a family around :func:`make_tokenizer`: 28 px a token for Qwen2.5-VL, 32 px for Qwen3-VL."""
    patch = UNITS[family] // 2
    pictures = Qwen2VLImageProcessorPil(min_pixels=4 * patch * patch, patch_size=patch)
    processor = {"qwen2.5": Qwen2_5_VLProcessor, "qwen3": Qwen3VLProcessor}[family]
    return image_only(processor)(pictures, make_tokenizer(), None, chat_template=CHAT_TEMPLATE)


def make_model(family: str, tokenizer: PreTrainedTokenizerFast, spread: float = 1.0) -> Any:
    """About 100,000 random parameters.

    Args:
        family: One of :data:`FAMILIES`.
        tokenizer: Its tokenizer.
        spread: Factor on every matrix; at 5 what a model says depends clearly on what it sees.
    """
    ids: dict[str, Any] = {token: tokenizer.convert_tokens_to_ids(token) for token in SPECIAL}
    text = {
        "vocab_size": len(tokenizer), "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
        "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16, "max_position_embeddings": 4096,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10_000.0, "mrope_section": [2, 3, 3]},
        "pad_token_id": ids["<|endoftext|>"], "eos_token_id": ids["<|im_end|>"], "bos_token_id": None,
    }  # fmt: skip
    vision = {
        "depth": 1, "hidden_size": 32, "intermediate_size": 32, "num_heads": 2, "out_hidden_size": 32,
        "patch_size": UNITS[family] // 2, "spatial_merge_size": 2, "temporal_patch_size": 2,
    }  # fmt: skip
    own: dict[str, Any] = {
        "qwen2.5": {"fullatt_block_indexes": [0], "window_size": 112, "tokens_per_second": 2},
        "qwen3": {"num_position_embeddings": 256, "deepstack_visual_indexes": [0]},
    }[family]
    configuration, model = {
        "qwen2.5": (Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration),
        "qwen3": (Qwen3VLConfig, Qwen3VLForConditionalGeneration),
    }[family]
    config = configuration(
        text_config=text,
        vision_config={**vision, **own},
        image_token_id=ids["<|image_pad|>"], video_token_id=ids["<|video_pad|>"],
        vision_start_token_id=ids["<|vision_start|>"], vision_end_token_id=ids["<|vision_end|>"],
        tie_word_embeddings=True,
    )  # fmt: skip
    torch.manual_seed(0)
    made = model(config)
    with torch.no_grad():
        for parameter in made.parameters():
            if parameter.ndim > 1:
                parameter.mul_(spread)
    return made
