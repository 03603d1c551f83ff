"""The embedded policy's network, through Transformers' ordinary Llama classes.

Rotary positions, so left padding does not matter; tied embeddings; single precision. Not a Qwen2 configuration:
``AutoTokenizer`` would replace a word-level tokenizer next to it by its own, without an error.
"""

from __future__ import annotations

from typing import Any

from seed_trainer.tiny.tokenizer import CONTEXT_LENGTH


def build_model(tokenizer: Any, *, width: int = 96, layers: int = 3, heads: int = 4, seed: int = 0) -> Any:
    """Build a freshly initialised model.

    Args:
        tokenizer: From :func:`~seed_trainer.tiny.tokenizer.build_tokenizer`.
        width: Hidden size; a multiple of twice ``heads``.
        layers: Number of transformer blocks.
        heads: Attention heads.
        seed: Seed of the initial weights; the global random state is left as it was.

    Returns:
        A ``LlamaForCausalLM``.
    """
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=width,
        intermediate_size=width * 8 // 3,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=heads,
        max_position_embeddings=CONTEXT_LENGTH,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        attention_dropout=0.0,
        dtype="float32",
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return LlamaForCausalLM(config)
