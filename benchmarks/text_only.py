"""Players that read the words of the prompt and nothing else: what the pictures do not have to be looked at for.

They answer as a model would that has no memory beyond its prompt, and may draw lots. Use one as an agent
(``--agent python:seed_benchmarks.text_only:lottery``); ``benchmarks/results/blind`` holds what they win.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

from seed_envs.rollout import Request

_REFUSED = re.compile(r"Action refused: (\d+) is not on the cards")
_FORMULA = re.compile(r"Formula so far: (\S*)")
_WORDS = re.compile(r"Choose one of these actions: ([a-z, ]+)\.")

#: First numbers of EZPoints and how often each is tried: the best mixture for eight steps without sight or memory.
_FIRST = {"10": 0.366, "5": 0.176, "9": 0.166, "4": 0.140, "6": 0.077, "7": 0.048, "8": 0.027}
#: After which first number the formula goes on how.
_REST = {"10": "+2", "5": "+7", "9": "+3", "4": "+8", "6": "*2", "7": "+5", "8": "+4"}


def lottery(request: Request) -> str:
    """EZPoints: a first number by lot until one is taken, then the likeliest formula."""
    formula = _formula(request)
    return _card_reply(_continue(formula) if formula else _draw(request, _FIRST))


def fixed(request: Request) -> str:
    """EZPoints: the formula of the most frequent hand, 10 + 2."""
    return _card_reply(_continue(_formula(request)) if _formula(request) else "10")


def refusals(request: Request) -> str:
    """EZPoints: goes through the numbers as long as the prompt says that the last one is not on the cards."""
    formula = _formula(request)
    if formula:
        return _card_reply(_continue(formula))
    refused = _REFUSED.search(_text(request))
    numbers = list(_FIRST)
    place = numbers.index(refused[1]) + 1 if refused and refused[1] in numbers else 0
    return _card_reply(numbers[place % len(numbers)])


def adder(request: Request) -> str:
    """Points24: ten and ten and two and two, the likeliest formula of a hand with faces."""
    formula = _formula(request)
    rest = "10+10+2+2"[len(formula) :]
    return _card_reply("=" if not rest else rest[:2] if rest.startswith("10") else rest[0])


def wander(request: Request) -> str:
    """Sokoban: a random one of the directions that the prompt names."""
    words = _WORDS.search(_text(request))
    names = words[1].split(", ") if words else ["up", "down", "left", "right"]
    return f"<think>I see nothing.</think><action>{_draw(request, dict.fromkeys(names, 1.0))}</action>"


def _text(request: Request) -> str:
    content = request.messages[-1]["content"]
    return (
        content if isinstance(content, str) else "\n".join(part["text"] for part in content if part["type"] == "text")
    )


def _formula(request: Request) -> str:
    found = _FORMULA.search(_text(request))
    return found[1] if found else ""


def _continue(formula: str) -> str:
    first = next((number for number in _REST if formula.startswith(number)), formula)
    whole = first + _REST.get(first, "")
    rest = whole[len(formula) :] if whole.startswith(formula) else ""
    return "=" if not rest else rest if rest.isdigit() else rest[0]


def _card_reply(token: str) -> str:
    return f'{{"thoughts": "", "action": "{token}"}}'


def _draw(request: Request, weights: Mapping[str, float]) -> str:
    """A draw that belongs to the episode and the turn."""
    rng = np.random.default_rng(np.random.SeedSequence([request.task.seed or 0, request.turn]))
    shares = np.array(list(weights.values()))
    return list(weights)[int(rng.choice(len(weights), p=shares / shares.sum()))]
