"""The closed vocabulary of the policy that sees, and its tokenizer: everything else in a prompt is dropped."""

from __future__ import annotations

from typing import Any, Final

from seed_trainer.tiny.tokenizer import word_tokenizer
from seed_trainer.tiny.words import AGENT, END, SPECIAL_TOKENS, USER

IMAGE: Final = "<|image|>"
SPECIAL: Final = (*SPECIAL_TOKENS, IMAGE)
WORDS: Final = (
    *("sokoban", "cards", "formula", "step", "move", "token", "advice", "outcome", "skill"),
    *("success", "failure", "unknown", "no", "go", "not", "up", "down", "left", "right", "+", "*", "="),
    *("describe", "jack", "queen", "king", "ace", "#", "_", "o", "x", "p", "s", "\u221a"),
)
LARGEST_NUMBER: Final = 20

CHAT_TEMPLATE: Final = (
    "{% for message in messages %}{% set reply = message['role'] == 'assistant' %}"
    "{{ '" + AGENT + " ' if reply else '" + USER + " ' }}"
    "{% if message['content'] is string %}{{ message['content'] }}{% else %}{% for part in message['content'] %}"
    "{{ '" + IMAGE + "' if part['type'] == 'image' else part['text'] }}"
    "{% endfor %}{% endif %}{{ ' " + END + "' if reply else '' }}{{ '\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}" + AGENT + "{% endif %}"
)


def build_tokenizer() -> Any:
    """Build the tokenizer; ``<|image|>`` stands for one patch of a picture."""
    numbers = [str(number) for number in range(LARGEST_NUMBER + 1)]
    letters = "|".join(word for word in WORDS if word.isalpha())
    pattern = rf"\b(?:{letters}|1[0-9]|20|[0-9])\b|[+*=#_\u221a]"
    return word_tokenizer([*SPECIAL, *WORDS, *numbers], pattern, CHAT_TEMPLATE, SPECIAL)
