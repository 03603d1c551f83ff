"""An agent that takes questions apart: it knows the question's decomposition and reads everything else in passages.

It follows the chain of relations through the text it was shown, searches for the first fact it has not seen, and
answers when the chain is complete. It never looks at the fact graph or the gold answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from seed_envs.search_qa.knowledge.relations import RELATIONS, read_object, read_subject
from seed_envs.search_qa.questions import Chain, Plan
from seed_envs.search_qa.retrievers.base import Hit


class Step:
    """What to do next: a query, or an answer."""

    def __init__(self, query: str = "", answer: str = "") -> None:
        self.query = query
        self.answer = answer


def _walk(chain: Chain, texts: Sequence[str]) -> tuple[str, str | None]:
    """Follows a chain as far as the texts go: (where it ends, the relation that is missing or None)."""
    current = chain.start
    for relation in chain.relations:
        if relation.startswith("~"):
            found = read_subject(relation[1:], current, texts)
        else:
            found = read_object(relation, current, texts)
        if found is None:
            return current, relation
        current = found
    return current, None


def query_for(name: str, relation: str, hint: str = "") -> str:
    """The words to search for."""
    return f"{name} {hint or RELATIONS[relation.lstrip('~')].query}"


def next_step(plan: Plan, shown: Iterable[Hit], asked: Sequence[str]) -> Step | None:
    """The next move.

    Args:
        plan: The decomposition of the question.
        shown: Passages shown so far.
        asked: Queries sent so far.

    Returns:
        A query or an answer; None when the passages of every useful query lacked the fact.
    """
    texts = [hit.text for hit in shown]
    ends = []
    for chain in plan.chains:
        end, missing = _walk(chain, texts)
        if missing is not None:
            candidates = [
                query_for(end, missing),
                end,
                query_for(end, missing, chain.hint),
                f"{end} {end} {chain.hint}",
            ]
            fresh = [query for query in candidates if query not in asked]
            return Step(query=fresh[0]) if fresh else None
        ends.append((end, chain.start))
    if plan.combine == "smaller":
        return Step(answer=min(ends)[1])
    return Step(answer=ends[0][0])
