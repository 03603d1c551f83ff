"""The state of one Search QA episode as a value: what was asked, sent, shown and scored. No rule is applied here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from seed_envs.search_qa.answers import NO_SCORES, AnswerScores, contains_answer, gold_forms
from seed_envs.search_qa.questions import Question
from seed_envs.search_qa.retrievers.base import Hit
from seed_envs.search_qa.scoring import Turn


@dataclass
class Episode:
    """Updated in place by the environment; every field is an immutable value, so a shallow copy is a snapshot.

    Attributes:
        question: The question.
        goal: The question as the prompt shows it.
        turns: Replies and observations.
        kinds: What each reply was: search, answer or invalid.
        query: Query of the last turn, "" if it was no search.
        hits: Passages of the last turn.
        shown: All passages shown, in order.
        asked: All queries that were executed.
        n_invalid: Invalid replies.
        n_valid_searches: Replies that count as valid searches.
        truncated_passages: Passages that did not fit the observation budget.
        cut_passages: Passages of which only the beginning did.
        defanged: Passages in which a protocol tag was broken.
        answer: The scored answer, None while there is none.
        scores: Its scores.
        reward: Reward of the episode so far.
        gold_found: Per hop, whether a passage that states it was shown; empty when the gold passages are unknown.
        answer_in_context: A normalised gold answer is in a passage that was shown.
        retrieval_error: Type and message of a failed retrieval, or "".
    """

    question: Question
    goal: str
    turns: tuple[Turn, ...] = ()
    kinds: tuple[str, ...] = ()
    query: str = ""
    hits: tuple[Hit, ...] = ()
    shown: tuple[Hit, ...] = ()
    asked: tuple[str, ...] = ()
    n_invalid: int = 0
    n_valid_searches: int = 0
    truncated_passages: int = 0
    cut_passages: int = 0
    defanged: int = 0
    answer: str | None = None
    scores: AnswerScores = NO_SCORES
    reward: float = 0.0
    gold_found: tuple[bool, ...] = ()
    answer_in_context: bool = False
    retrieval_error: str = ""

    def snapshot(self) -> Episode:
        """An independent copy."""
        return replace(self)

    def record(self, kind: str, valid: bool, turn: Turn) -> None:
        """A turn enters the transcript; what it found comes after."""
        self.turns += (turn,)
        self.kinds += (kind,)
        self.n_invalid += not valid
        self.query, self.hits = "", ()

    def show(self, hits: Sequence[Hit]) -> None:
        """Passages enter the context: updates `shown`, `gold_found` and `answer_in_context`."""
        ids = [hit.id for hit in hits]
        self.shown += tuple(hits)
        self.gold_found = tuple(
            [before or not hop.isdisjoint(ids) for before, hop in zip(self.gold_found, self.question.hops, strict=True)]
        )
        if not self.answer_in_context:
            passages = [f"{hit.title}\n{hit.text}" for hit in hits]
            self.answer_in_context = contains_answer(passages, gold_forms(self.question.answers))

    def extras(self, total_turns: int) -> dict[str, Any]:
        """What an info tells of the episode; see the environment's class for the keys.

        Args:
            total_turns: Replies it may have.
        """
        found = self.gold_found
        recall = sum(found) / len(found) if found else 0.0
        return {
            "turn": len(self.turns),
            "turns_left": total_turns - len(self.turns),
            "action": self.kinds[-1] if self.kinds else "",
            "query": self.query,
            "hits": tuple((hit.id, hit.score) for hit in self.hits),
            "n_searches": len(self.asked),
            "n_duplicate_queries": len(self.asked) - len(set(self.asked)),
            "n_invalid": self.n_invalid,
            "n_valid_searches": self.n_valid_searches,
            "answer": self.answer or "",
            **self.scores._asdict(),
            "gold_found": found,
            "recall_at_k": recall,
            "by": {"hops": self.question.n_hops} if self.question.n_hops else {},
            "measures": {"answer shown": float(self.answer_in_context), **({"recall": recall} if found else {})},
            "answer_in_context": self.answer_in_context,
            "truncated_passages": self.truncated_passages,
            "cut_passages": self.cut_passages,
            "defanged": self.defanged,
            "retrieval_error": self.retrieval_error,
            "valid_sample": not self.retrieval_error,
        }
