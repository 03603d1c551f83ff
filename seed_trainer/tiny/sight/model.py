"""Network and processor of the policy that sees, through Transformers' ordinary LLaVA classes.

A tile of the compact Sokoban picture is one patch and one token; pictures are resampled to one size. Most blocks are
in the vision tower: it sees the whole room at once, a causal language model reads it tile by tile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from seed_trainer.tiny.sight.words import IMAGE
from seed_trainer.tiny.tokenizer import CONTEXT_LENGTH

SIDE = 100
"""Side of the picture in pixels, as the model sees it."""
PATCH = 20
PATCHES = (SIDE // PATCH) ** 2
GREY = [0.5, 0.5, 0.5]
PLACE_STD = 0.3


@dataclass(frozen=True)
class Shape:
    """Size of the network.

    Attributes:
        width: Hidden size of both halves; a multiple of twice ``heads``.
        heads: Attention heads.
        sight_layers: Blocks of the vision tower.
        layers: Blocks of the language model.
    """

    width: int = 96
    heads: int = 4
    sight_layers: int = 3
    layers: int = 2


def build_processor(tokenizer: Any) -> Any:
    """The processor: resampling to one size, one placeholder a patch, no torchvision.

    Args:
        tokenizer: From :func:`~seed_trainer.tiny.sight.words.build_tokenizer`.
    """
    from transformers import LlavaProcessor
    from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

    square = {"height": SIDE, "width": SIDE}
    pictures = CLIPImageProcessorPil(size=square, crop_size=square, image_mean=GREY, image_std=GREY)
    return LlavaProcessor(
        pictures,
        tokenizer,
        patch_size=PATCH,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        image_token=IMAGE,
        chat_template=tokenizer.chat_template,
    )


def pixel_values(pictures: Sequence[Any]) -> dict[str, Any]:
    """What the processor makes of pictures that have the model's size, at once.

    Args:
        pictures: Arrays of uint8, shape (SIDE, SIDE, 3).

    Returns:
        ``pixel_values``, shape (pictures, 3, SIDE, SIDE), between -1 and 1.
    """
    import numpy as np
    import torch

    return {"pixel_values": torch.from_numpy(np.stack(pictures)).permute(0, 3, 1, 2).float() / 127.5 - 1.0}


def build_model(tokenizer: Any, shape: Shape, seed: int = 0) -> Any:
    """Build a freshly initialised ``LlavaForConditionalGeneration``.

    Args:
        tokenizer: Gives vocabulary and special ids.
        shape: The sizes.
        seed: Seed of the initial weights; the global random state is left as it was.
    """
    import torch
    from transformers import CLIPVisionConfig, LlamaConfig, LlavaConfig, LlavaForConditionalGeneration

    size: dict[str, Any] = {"hidden_size": shape.width, "num_attention_heads": shape.heads}
    sight = CLIPVisionConfig(
        **size,
        num_hidden_layers=shape.sight_layers,
        intermediate_size=2 * shape.width,
        image_size=SIDE,
        patch_size=PATCH,
    )
    language = LlamaConfig(
        **size,
        num_hidden_layers=shape.layers,
        num_key_value_heads=shape.heads,
        intermediate_size=shape.width * 8 // 3,
        vocab_size=len(tokenizer),
        max_position_embeddings=CONTEXT_LENGTH,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    config = LlavaConfig(
        vision_config=sight,
        text_config=language,
        image_token_index=tokenizer.convert_tokens_to_ids(IMAGE),
        image_seq_length=PATCHES,
        vision_feature_select_strategy="default",
        vision_feature_layer=-1,
        tie_word_embeddings=True,
        dtype="float32",
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = LlavaForConditionalGeneration(config)
        # Transformers' 0.02 is drowned by the patches: where something is has to be as loud as what it is.
        torch.nn.init.normal_(model.model.vision_tower.embeddings.position_embedding.weight, std=PLACE_STD)
        return model
