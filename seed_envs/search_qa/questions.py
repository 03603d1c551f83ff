"""Questions as data: text, accepted answers, gold passages per hop, and, where known, how to take the question apart.

Where questions come from is the business of `tasks` (generated) and `question_files` (real sets).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

HOPS_OF_SET: Final = {"nq": 1, "triviaqa": 1, "popqa": 1, "hotpotqa": 2, "bamboogle": 2}
"""Question sets in which every question needs the same number of facts."""
_HOPS_IN_ID: Final = re.compile(r"([2-4])hop[0-9]?__")


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

    @property
    def n_hops(self) -> int:
        """How many facts have to be found: as many as gold passages are known, else what the id or the set tells; or 0.

        MuSiQue's ids begin with it (``3hop1__…``), and four sets are of one kind throughout.
        """
        known = len(self.hops) or len(set(self.gold_titles))
        named = _HOPS_IN_ID.match(self.task_id.rpartition("/")[2])
        return known or (int(named.group(1)) if named else HOPS_OF_SET.get(self.data_source, 0))
