"""A word-level tokenizer for household texts, saved and loaded like any other Transformers tokenizer.

It is lossy on purpose: lower-case, no punctuation, no articles, phrases as single tokens. A word outside the closed
vocabulary becomes ``<|unk|>``. It needs ``tokenizers`` and ``transformers`` (extra ``train``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from seed_trainer.tiny.words import (
    AGENT,
    DROPPED_WORDS,
    END,
    LARGEST_NAMED_OBJECT,
    LARGEST_NAMED_RECEPTACLE,
    OBJECTS,
    PAD,
    PHRASES,
    RECEPTACLES,
    SPECIAL_TOKENS,
    UNKNOWN,
    USER,
    vocabulary,
)

CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{% if message['role'] == 'assistant' %}" + AGENT + " {{ message['content'] }} " + END + "{{ '\\n' }}"
    "{% else %}" + USER + " {{ message['content'] }}{{ '\\n' }}"
    "{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}" + AGENT + "{% endif %}"
)
"""Every message keeps its place and form as the conversation grows, so a conversation extends token by token."""

CONTEXT_LENGTH = 1024


def token_pattern() -> str:
    """Regular expression of what is kept: phrases and names, then words and numbers, then any stray character."""
    phrases = "|".join(rf"{re.escape(phrase)}\b" for phrase in sorted(PHRASES, key=len, reverse=True))
    places = rf"(?:{'|'.join(RECEPTACLES)}) [1-{LARGEST_NAMED_RECEPTACLE}]\b"
    things = rf"(?:{'|'.join(OBJECTS)}) [1-{LARGEST_NAMED_OBJECT}]\b"
    dropped = "|".join(DROPPED_WORDS)
    return rf"\b(?:{phrases}|{places}|{things})|\b(?!(?:{dropped})\b)[a-z]+|[0-9]+|[^a-z0-9\s]"


def build_tokenizer() -> Any:
    """Build the tokenizer.

    Returns:
        A ``PreTrainedTokenizerFast`` with a chat template; ``<|end|>`` ends every reply.
    """
    from tokenizers import Regex, normalizers

    steps = [
        normalizers.Replace(Regex(r"""[-.,:;!?'"`()\[\]{}=#*_/]+"""), " "),
        normalizers.Replace(Regex(r"\s+"), " "),
    ]
    return word_tokenizer(vocabulary(), token_pattern(), CHAT_TEMPLATE, SPECIAL_TOKENS, steps)


def word_tokenizer(
    words: Sequence[str], pattern: str, chat_template: str, special: Sequence[str], normalizing: Sequence[Any] = ()
) -> Any:
    """Build a lower-case word-level tokenizer.

    Args:
        words: All tokens in id order, the special ones first.
        pattern: Regular expression of what becomes a token; everything else is dropped.
        chat_template: The template.
        special: Padding, unknown, user, agent, end, then any others.
        normalizing: Steps of ``tokenizers.normalizers`` after lower-casing.
    """
    from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    table = {word: index for index, word in enumerate(words)}
    tokenizer = Tokenizer(models.WordLevel(table, unk_token=UNKNOWN))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Lowercase(), *normalizing])
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(pattern), behavior="removed", invert=True)
    tokenizer.add_special_tokens([AddedToken(token, normalized=False) for token in special])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        unk_token=UNKNOWN,
        eos_token=END,
        additional_special_tokens=[token for token in special if token not in (PAD, UNKNOWN, END)],
        chat_template=chat_template,
        padding_side="left",
        model_max_length=CONTEXT_LENGTH,
        clean_up_tokenization_spaces=False,
    )
