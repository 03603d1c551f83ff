"""Chat models of a few thousand weights that read any text, byte by byte; some have one token per tool call."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def tool_call(name: str, **arguments: str) -> str:
    """A call as Qwen's chat template writes it."""
    record = json.dumps({"name": name, "arguments": arguments})
    return f"<tool_call>\n{record}\n</tool_call>"


def byte_tokenizer(whole: Sequence[str] = (), template: str = TEMPLATE):
    """A tokenizer with one token per byte, ChatML's two marks, and one token for each text of ``whole``."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    inner = Tokenizer(models.BPE({letter: index for index, letter in enumerate(alphabet)}, []))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    inner.decoder = decoders.ByteLevel()
    inner.add_special_tokens(["<|im_start|>", "<|im_end|>", "<|endoftext|>"])
    inner.add_tokens([AddedToken(text, normalized=False) for text in whole])
    return PreTrainedTokenizerFast(
        tokenizer_object=inner, eos_token="<|im_end|>", pad_token="<|endoftext|>", chat_template=template
    )


def byte_model(tokenizer, seed: int = 0):
    """A random model for a tokenizer."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(seed)
    config = Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=8,
        max_position_embeddings=8192,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
    )
    return Qwen3ForCausalLM(config)


def save_byte_model(folder: Path, seed: int = 0) -> str:
    """Write model and tokenizer; returns the folder as text."""
    tokenizer = byte_tokenizer()
    byte_model(tokenizer, seed).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def calling_model(calls: Sequence[str], template: str, steps: int = 60):
    """A model that has learned to answer any prompt with one of the calls, each as likely, and its tokenizer."""
    import torch

    tokenizer = byte_tokenizer(calls, template)
    model = byte_model(tokenizer)
    prompt = tokenizer("<|im_start|>assistant\n")["input_ids"]
    ids = torch.tensor([[*prompt, tokenizer.convert_tokens_to_ids(call), tokenizer.eos_token_id] for call in calls])
    labels = ids.clone()
    labels[:, : len(prompt)] = -100
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(steps):
        optimizer.zero_grad()
        model(input_ids=ids, labels=labels).loss.backward()
        optimizer.step()
    return model, tokenizer
