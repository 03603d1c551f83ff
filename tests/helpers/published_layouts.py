"""Model folders laid out as published vision-language repositories, with tiny random weights and templates of our own.

File names, keys and numbers of the preprocessing are interface facts; vocabulary, weights and words are made here.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoConfig, AutoModelForImageTextToText, PreTrainedTokenizerFast

WORDS = ["Look at the picture. Which way? up down left right", "0 1 2 3 4 5 6 7 8 9 + * = formula 12"]
HALF = [0.5, 0.5, 0.5]


@dataclass(frozen=True)
class Repository:
    """How a repository is laid out.

    Attributes:
        model_type: As in its ``config.json``.
        special: Special tokens by role; ``end`` ends a reply and ``image`` stands for a picture in the template.
        files: JSON files beside configuration and tokenizer.
        template_in: Where the chat template lies: ``json`` (legacy), ``jinja`` or ``tokenizer``.
        around: What the template writes around a picture's token.
        sizes: Configuration of a tiny model, given the ids of the special tokens.
    """

    model_type: str
    special: dict[str, str]
    files: dict[str, dict[str, Any]]
    template_in: str
    around: tuple[str, str]
    sizes: Callable[[dict[str, int]], dict[str, Any]]


_TEXT = {
    "hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
    "num_key_value_heads": 1, "head_dim": 16, "max_position_embeddings": 8192,
}  # fmt: skip
_SIGLIP = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 1}
_QWEN_VISION = {
    "depth": 1, "hidden_size": 32, "intermediate_size": 32, "num_heads": 2, "out_hidden_size": 32,
    "spatial_merge_size": 2, "temporal_patch_size": 2,
}  # fmt: skip
_QWEN = {
    "start": "<|im_start|>", "end": "<|im_end|>", "pad": "<|endoftext|>", "image": "<|image_pad|>",
    "video": "<|video_pad|>", "vision_start": "<|vision_start|>", "vision_end": "<|vision_end|>",
}  # fmt: skip
_MROPE = {"rope_type": "default", "rope_theta": 10_000.0, "mrope_section": [2, 3, 3]}


def _qwen(vision: dict[str, Any]) -> Callable[[dict[str, int]], dict[str, Any]]:
    def sizes(ids: dict[str, int]) -> dict[str, Any]:
        return {
            "text_config": {**_TEXT, "rope_parameters": _MROPE},
            "vision_config": {**_QWEN_VISION, **vision},
            **{f"{name}_token_id": ids[name] for name in ("image", "video", "vision_start", "vision_end")},
        }

    return sizes


REPOSITORIES: dict[str, Repository] = {
    "Qwen2.5-VL": Repository(
        "qwen2_5_vl",
        _QWEN,
        {
            "preprocessor_config.json": {
                "min_pixels": 3136, "max_pixels": 12845056, "patch_size": 14, "temporal_patch_size": 2,
                "merge_size": 2, "image_mean": HALF, "image_std": HALF, "image_processor_type": "Qwen2VLImageProcessor",
                "processor_class": "Qwen2_5_VLProcessor",
            }
        },
        "json",
        ("<|vision_start|>", "<|vision_end|>"),
        _qwen({"patch_size": 14, "fullatt_block_indexes": [0], "window_size": 112, "tokens_per_second": 2}),
    ),
    "Qwen3-VL": Repository(
        "qwen3_vl",
        _QWEN,
        {
            "preprocessor_config.json": {
                "size": {"longest_edge": 16777216, "shortest_edge": 65536}, "patch_size": 16, "temporal_patch_size": 2,
                "merge_size": 2, "image_mean": HALF, "image_std": HALF, "processor_class": "Qwen3VLProcessor",
                "image_processor_type": "Qwen2VLImageProcessorFast",
            },
            "video_preprocessor_config.json": {
                "size": {"longest_edge": 25165824, "shortest_edge": 4096}, "patch_size": 16, "temporal_patch_size": 2,
                "merge_size": 2, "image_mean": HALF, "image_std": HALF, "processor_class": "Qwen3VLProcessor",
                "video_processor_type": "Qwen3VLVideoProcessor",
            },
        },
        "jinja",
        ("<|vision_start|>", "<|vision_end|>"),
        _qwen({"patch_size": 16, "num_position_embeddings": 2304, "deepstack_visual_indexes": [0]}),
    ),
    "SmolVLM": Repository(
        "smolvlm",
        {
            "start": "<|im_start|>", "end": "<end_of_utterance>", "pad": "<|endoftext|>", "image": "<image>",
            "fake": "<fake_token_around_image>", "global": "<global-img>",
            **{f"{row}{col}": f"<row_{row}_col_{col}>" for row in range(1, 7) for col in range(1, 7)},
        },
        {
            "preprocessor_config.json": {
                "do_convert_rgb": True, "do_image_splitting": True, "do_normalize": True, "do_pad": True,
                "do_rescale": True, "do_resize": True, "image_mean": HALF, "image_std": HALF, "resample": 1,
                "rescale_factor": 1 / 255, "max_image_size": {"longest_edge": 512}, "size": {"longest_edge": 2048},
                "image_processor_type": "SmolVLMImageProcessor", "processor_class": "SmolVLMProcessor",
            },
            "processor_config.json": {"image_seq_len": 64, "processor_class": "SmolVLMProcessor"},
        },
        "json",
        ("", ""),
        lambda ids: {
            "text_config": {**_TEXT, "model_type": "llama"},
            "vision_config": {**_SIGLIP, "image_size": 512, "patch_size": 16},
            "scale_factor": 4,
            "image_token_id": ids["image"],
        },
    ),
    "LLaVA-OneVision": Repository(
        "llava_onevision",
        {"start": "<|im_start|>", "end": "<|im_end|>", "pad": "<|endoftext|>", "image": "<image>", "video": "<video>"},
        {
            "preprocessor_config.json": {
                "do_convert_rgb": True, "do_normalize": True, "do_pad": True, "do_rescale": True, "do_resize": True,
                "image_grid_pinpoints": [[384 * rows, 384 * cols] for rows in range(1, 7) for cols in range(1, 7)],
                "image_mean": HALF, "image_std": HALF, "resample": 3, "rescale_factor": 1 / 255,
                "size": {"height": 384, "width": 384}, "image_processor_type": "LlavaOnevisionImageProcessor",
                "processor_class": "LlavaOnevisionProcessor",
            },
            "processor_config.json": {
                "image_token": "<image>", "video_token": "<video>", "num_image_tokens": 729,
                "vision_feature_select_strategy": "full", "processor_class": "LlavaOnevisionProcessor",
            },
        },
        "tokenizer",
        ("", "\n"),
        lambda ids: {
            "text_config": {**_TEXT, "model_type": "qwen2"},
            "vision_config": {
                **_SIGLIP, "model_type": "siglip_vision_model", "image_size": 384, "patch_size": 14,
                "vision_use_head": False,
            },
            "image_token_id": ids["image"],
            "video_token_id": ids["video"],
            "vision_feature_layer": -1,
            "image_grid_pinpoints": [[384 * rows, 384 * cols] for rows in range(1, 7) for cols in range(1, 7)],
        },
    ),
    "Gemma-3": Repository(
        "gemma3",
        {
            "begin": "<bos>", "pad": "<pad>", "eos": "<eos>", "start": "<start_of_turn>", "end": "<end_of_turn>",
            "image": "<start_of_image>", "boi": "<start_of_image>", "eoi": "<end_of_image>",
            "soft": "<image_soft_token>",
        },
        {
            "preprocessor_config.json": {
                "do_convert_rgb": None, "do_normalize": True, "do_pan_and_scan": None, "do_rescale": True,
                "do_resize": True, "image_mean": HALF, "image_std": HALF, "image_seq_length": 256, "resample": 2,
                "rescale_factor": 1 / 255, "size": {"height": 896, "width": 896},
                "image_processor_type": "Gemma3ImageProcessor", "processor_class": "Gemma3Processor",
            },
            "processor_config.json": {"image_seq_length": 256, "processor_class": "Gemma3Processor"},
        },
        "jinja",
        ("", ""),
        lambda ids: {
            "text_config": {**_TEXT, "sliding_window": 512, "query_pre_attn_scalar": 16},
            "vision_config": {**_SIGLIP, "image_size": 896, "patch_size": 14},
            "mm_tokens_per_image": 256,
            "boi_token_index": ids["boi"],
            "eoi_token_index": ids["eoi"],
            "image_token_index": ids["soft"],
        },
    ),
}  # fmt: skip


def template(layout: Repository) -> str:
    """A minimal chat template with the tokens of a repository."""
    start, end, (before, after) = layout.special["start"], layout.special["end"], layout.around
    picture = f"{before}{layout.special['image']}{after}"
    return (
        f"{layout.special.get('begin', '')}"
        "{% for message in messages %}" + start + "{{ message['role'] }}\n"
        "{% if message['content'] is string %}{{ message['content'] }}{% else %}"
        "{% for part in message['content'] %}{% if part['type'] == 'image' %}" + picture + "{% else %}"
        "{{ part['text'] }}{% endif %}{% endfor %}{% endif %}" + end + "\n{% endfor %}"
        "{% if add_generation_prompt %}" + start + "assistant\n{% endif %}"
    )


def _tokenizer(layout: Repository) -> PreTrainedTokenizerFast:
    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)  # type: ignore[assignment]
    core.decoder = decoders.ByteLevel()  # type: ignore[assignment]
    special = list(dict.fromkeys(layout.special.values()))
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=special,
        show_progress=False,
    )
    core.train_from_iterator(WORDS, trainer)
    names = {"boi": "boi_token", "eoi": "eoi_token", "soft": "image_token"}
    extra = {names[role]: token for role, token in layout.special.items() if role in names}
    return PreTrainedTokenizerFast(
        tokenizer_object=core, pad_token=layout.special["pad"], eos_token=layout.special["end"],
        extra_special_tokens=extra,
    )  # fmt: skip


def write_repository(name: str, folder: Path) -> Path:
    """Write a folder laid out as a published repository, with about 50,000 random weights, and return it."""
    layout = REPOSITORIES[name]
    tokenizer = _tokenizer(layout)
    ids = {role: int(tokenizer.convert_tokens_to_ids(token)) for role, token in layout.special.items()}  # type: ignore[arg-type]
    sizes = layout.sizes(ids)
    common = {"vocab_size": len(tokenizer), "pad_token_id": ids["pad"], "eos_token_id": ids["end"]}
    sizes["text_config"] = {**sizes["text_config"], **common, "bos_token_id": None}
    config = AutoConfig.for_model(layout.model_type, **sizes, eos_token_id=ids["end"], pad_token_id=ids["pad"])
    torch.manual_seed(0)
    AutoModelForImageTextToText.from_config(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    for file, values in layout.files.items():
        (folder / file).write_text(json.dumps(values), encoding="utf-8")
    text = template(layout)
    if layout.template_in == "json":
        (folder / "chat_template.json").write_text(json.dumps({"chat_template": text}), encoding="utf-8")
    elif layout.template_in == "jinja":
        (folder / "chat_template.jinja").write_text(text, encoding="utf-8")
    else:
        path = folder / "tokenizer_config.json"
        settings = {**json.loads(path.read_text(encoding="utf-8")), "chat_template": text}
        path.write_text(json.dumps(settings), encoding="utf-8")
    return folder


COUNTS = {
    "Qwen2.5-VL": (61, 146),
    "Qwen3-VL": (89, 125),
    "SmolVLM": (1151, 1151),
    "LLaVA-OneVision": (1509, 1509),
    "Gemma-3": (286, 286),
}
"""Prompt tokens that ``AutoProcessor`` makes of our pictures of 168 and 308 pixels and two words (torchvision 0.29)."""
PICTURES = (np.zeros((168, 168, 3), np.uint8), np.random.default_rng(0).integers(0, 256, (308, 308, 3), np.uint8))
CONVERSATIONS: list[list[dict[str, Any]]] = [
    [{"role": "user", "content": [{"type": "image", "image": picture}, {"type": "text", "text": "Which way?"}]}]
    for picture in PICTURES
]
NEEDS = {"SmolVLM": "num2words"}
"""Packages that a processor cannot do without, whoever reads it."""


def readable(name: str) -> bool:
    """Whether the packages that a family's processor needs are installed."""
    return find_spec(NEEDS.get(name, "torch")) is not None
