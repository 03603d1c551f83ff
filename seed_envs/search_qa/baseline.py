"""Players without understanding, the floor for any policy: they see the question and what a search shows, no more."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from seed_envs.search_qa.retrievers.base import Hit


def rule_reply(question: str, shown: Sequence[Hit]) -> str:
    """Search for the question once, then answer with the title of the first passage.

    Args:
        question: As the agent is shown it.
        shown: Passages shown so far, best first.
    """
    if not shown:
        return f"<search>{question}</search>"
    return f"<answer>{_plain(shown[0].title)}</answer>"


def random_reply(question: str, shown: Sequence[Hit], rng: np.random.Generator) -> str:
    """Search for a random word of the question, then answer with the title of a random passage.

    Args:
        question: As the agent is shown it.
        shown: Passages shown so far.
        rng: Draws.
    """
    if shown:
        return f"<answer>{_plain(shown[int(rng.integers(len(shown)))].title)}</answer>"
    words = question.rstrip("?").split()
    return f"<search>{words[int(rng.integers(len(words)))] if words else question}</search>"


def _plain(title: str) -> str:
    return title.strip().strip('"')
