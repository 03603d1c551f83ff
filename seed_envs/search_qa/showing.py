"""What of the hits of a search is shown: protocol tags broken, and no more than a budget of characters."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from seed_envs.search_qa.protocol import CUT_MARK, defang
from seed_envs.search_qa.retrievers.base import Hit

Information = Callable[[Sequence[Hit]], str]
"""Writes passages as an observation."""


def made_safe(hits: list[Hit]) -> tuple[list[Hit], int]:
    """Passages with protocol tags broken, and in how many there were any."""
    if not any("<" in hit.text or "<" in hit.title for hit in hits):
        return hits, 0
    safe = [hit._replace(title=defang(hit.title), text=defang(hit.text)) for hit in hits]
    return safe, sum(before != after for before, after in zip(hits, safe, strict=True))


def fit(hits: list[Hit], information: Information, budget: int | None) -> tuple[str, list[Hit]]:
    """The observation within a budget: as many whole passages as fit, else the beginning of the first.

    Args:
        hits: The passages.
        information: Writes them.
        budget: Most characters of the observation; None for no limit.

    Returns:
        The observation and the passages in it. Tags around nothing are the least, whatever the budget.
    """
    kept = list(hits)
    observation = information(kept)
    if budget is None:
        return observation, kept
    while len(kept) > 1 and len(observation) > budget:
        kept.pop()
        observation = information(kept)
    if kept and len(observation) > budget:
        kept = _beginning(kept[0], information, budget)
        observation = information(kept)
    return observation, kept


def _beginning(hit: Hit, information: Information, budget: int) -> list[Hit]:
    """The passage with as much of its text as fits; nothing if no letter does."""
    least, most = 0, len(hit.text)
    while least < most:
        middle = (least + most + 1) // 2
        fits = len(information([_cut(hit, middle)])) <= budget
        least, most = (middle, most) if fits else (least, middle - 1)
    return [_cut(hit, least)] if least else []


def _cut(hit: Hit, length: int) -> Hit:
    return hit._replace(text=hit.text[:length] + CUT_MARK)
