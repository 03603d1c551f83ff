"""Which candidate questions are published: those that the oracle answers and that a single query does not give away.

The checks need a search engine, so they run when manifests are made, not when questions are asked. Whether candidate
i is published depends on candidates before i only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from seed_envs.search_qa.answers import exact_match, normalise
from seed_envs.search_qa.knowledge.styles import QuestionMaker
from seed_envs.search_qa.oracle import next_step
from seed_envs.search_qa.questions import Question
from seed_envs.search_qa.retrievers.base import Hit, Retriever

TOP_K = 3
MAX_SEARCHES = 4
HARD_STYLES = frozenset({"2wikimultihopqa", "musique", "bamboogle"})
"""Styles whose answer must not be in the passages that the bare question finds."""


def oracle_searches(question: Question, retriever: Retriever) -> int | None:
    """How many searches the oracle needs to answer exactly; None if it fails within the limit."""
    if question.plan is None:
        return None
    shown: list[Hit] = []
    asked: list[str] = []
    while True:
        step = next_step(question.plan, shown, asked)
        if step is None or (step.query and len(asked) == MAX_SEARCHES):
            return None
        if step.answer:
            return len(asked) if exact_match(step.answer, question.answers) else None
        asked.append(step.query)
        shown += retriever.search([step.query], TOP_K)[0]


def all_hops_found(question: Question, hits: Sequence[Hit]) -> bool:
    """Whether the passages hold every hop of the question."""
    ids = {hit.id for hit in hits}
    return all(ids & hop for hop in question.hops)


def answer_shown(question: Question, hits: Sequence[Hit]) -> bool:
    """Whether a passage contains an accepted answer (normalised)."""
    texts = [normalise(hit.contents) for hit in hits]
    return any(normalise(answer) in text for answer in question.answers for text in texts)


def published(maker: QuestionMaker, retriever: Retriever, style: str, split: str, count: int) -> Iterator[Question]:
    """The first `count` published questions of a style and split.

    Raises:
        RuntimeError: The world is too small for that many.
    """
    seen: set[str] = set()
    number = found = 0
    while found < count:
        if number > 60 * count + 2000:
            raise RuntimeError(f"{style}/{split}: only {found} of {count} questions after {number} candidates")
        question = maker.question(style, split, number)
        number += 1
        if question is None or question.text in seen or not _accept(question, retriever):
            continue
        seen.add(question.text)
        found += 1
        yield question


def _accept(question: Question, retriever: Retriever) -> bool:
    if oracle_searches(question, retriever) is None:
        return False
    if question.data_source not in HARD_STYLES:
        return True
    hits = retriever.search([question.text], TOP_K)[0]
    return not answer_shown(question, hits) and not all_hops_found(question, hits)
