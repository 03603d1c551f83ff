"""Questions as data: text, accepted answers, gold passages per hop, and, where known, how to take the question apart.

Where questions come from is the business of `tasks` (generated) and `question_files` (real sets).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Chain:
    """A way to an answer: start at a name and follow relations.

    Attributes:
        start: A name the question mentions.
        relations: Relations to follow, in order; one that begins with "~" is read backwards.
        hint: Words that help the first search beside the name.
    """

    start: str
    relations: tuple[str, ...]
    hint: str = ""


@dataclass(frozen=True)
class Plan:
    """A decomposition of a question: one chain, or two whose ends are compared.

    Attributes:
        chains: The chains.
        combine: "last" takes the end of the only chain, "smaller" names the start of the chain with the smaller number.
    """

    chains: tuple[Chain, ...]
    combine: Literal["last", "smaller"] = "last"


@dataclass(frozen=True)
class Question:
    """One question.

    Attributes:
        task_id: `{data_source}/{split}/{id}`.
        data_source: The question set.
        text: The question as it is stored.
        answers: Accepted answers, at least one.
        hops: Per hop the ids of the passages that state the fact; any of them counts. Empty when unknown.
        gold_titles: Titles of the gold passages where a file names them; see `question_files.link_gold_passages`.
        plan: The decomposition, for the oracle; None for real questions.
    """

    task_id: str
    data_source: str
    text: str
    answers: tuple[str, ...]
    hops: tuple[frozenset[str], ...] = ()
    plan: Plan | None = None
    gold_titles: tuple[str, ...] = ()
