"""How many questions have an answer string in the passages that a retriever finds for the bare question.

An upper bound for one-search agents, per question set. It answers nothing and needs no model.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from seed_envs.search_qa.answers import contains_answer, gold_forms
from seed_envs.search_qa.questions import Question
from seed_envs.search_qa.retrievers.base import Retriever

_BATCH = 256


class Coverage(NamedTuple):
    """Share of one question set whose answer is shown."""

    name: str
    questions: int
    share: float
    k: int

    def __str__(self) -> str:
        return f"{self.name:<24} {self.questions:>7,} questions   answer in top {self.k}: {self.share:.3f}"


def covered(questions: Sequence[Question], retriever: Retriever, k: int) -> list[bool]:
    """Whether an answer string is shown, for each question.

    Args:
        questions: The questions.
        retriever: The engine.
        k: Passages per question.
    """
    found: list[bool] = []
    for start in range(0, len(questions), _BATCH):
        batch = questions[start : start + _BATCH]
        for question, hits in zip(batch, retriever.search([q.text for q in batch], k), strict=True):
            found.append(contains_answer([hit.contents for hit in hits], gold_forms(question.answers)))
    return found


def answer_coverage(questions: Sequence[Question], found: Sequence[bool], k: int) -> list[Coverage]:
    """Coverage per question set, in order of first appearance.

    Args:
        questions: The questions; `data_source` groups them.
        found: What `covered` says of each.
        k: Passages per question.
    """
    sets: dict[str, list[bool]] = {}
    for question, shown in zip(questions, found, strict=True):
        sets.setdefault(question.data_source, []).append(shown)
    return [Coverage(name, len(flags), sum(flags) / len(flags), k) for name, flags in sets.items()]
