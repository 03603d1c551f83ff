"""Chat-template, tool and image markers inside texts from outside are broken before a model reads them."""

from __future__ import annotations

import re

#: Words that mark a tag as a chat-template, tool or picture marker, whatever stands around them: ``<image>``,
#: ``<tool_call>``, ``</tool_response>``, ``<start_of_turn>``, ``<IMG_CONTEXT>``, ``<unused12>``.
_MARKER_WORDS = (
    "s|bos|eos|eot|pad|unk|mask|sep|cls|sys|system|turn|start|end|begin|token|tool|function"
    "|image|img|video|audio|vision|fim|unused|reserved|extra|row"
)
#: Markers of the open model families by their shape: ``<|...|>`` (Qwen, Llama 3, Phi, GLM), wide bars (DeepSeek), tags
#: with one of the words above (Llama 2, LLaVA, Gemma, InternVL, Qwen tools), and capitals in square brackets (Mistral,
#: Pixtral, GLM). Tags of the environments' own protocols, such as ``<action>``, are not among them.
_MARKERS = re.compile(
    r"<\|(?=[^<>|\n]{1,64}\|>)|<(?=\uff5c)|<(?=</?SYS>>)"
    rf"|<(?=(?i:/?(?:[a-z0-9]{{1,32}}[_-]){{0,4}}(?:{_MARKER_WORDS})s?[0-9]{{0,6}}(?:[_-][a-z0-9]{{1,32}}){{0,4}}>))"
    r"|\[(?=/?(?:INST|IMG|THINK|ARGS|AUDIO|[gs]MASK|[A-Z]{2,16}(?:_[A-Z]{2,16}){1,4})\])"
)


def defuse(text: str) -> str:
    """Break chat-template and image markers inside text that a model or a data file wrote.

    ``<|im_start|>`` becomes ``< |im_start|>``: readable, but no longer a special token, so typed text can neither
    open a new role nor stand for an image.
    """
    if "<" not in text and "[" not in text:
        return text
    return _MARKERS.sub(lambda match: f"{match.group()[0]} {match.group()[1:]}", text)
