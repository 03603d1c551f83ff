"""Writes a hindsight skill from one finished episode by rule: what worked, what was wasted, what to do next time.

It sees the trajectory and its outcome, as a language model would; it knows neither gold answers nor gold passages.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from seed_envs.search_qa.protocol import search_query
from seed_envs.trajectory import Step, StopReason, Trajectory

_PASSAGE_TITLE = re.compile(r'Doc \d+(?:\(Title: |: \\?)"([^"\\]+)')


def annotate(trajectory: Trajectory) -> str:
    """Writes the skill.

    Args:
        trajectory: A finished episode of Search QA.

    Returns:
        A few sentences in the imperative.
    """
    queries = [query for step in trajectory.steps if (query := search_query(step.reply)) is not None]
    advice = _on_success(queries, trajectory) if trajectory.success else _on_failure(queries, trajectory)
    faults = _format_faults(trajectory.steps)
    return " ".join([*advice, *faults])


def _on_success(queries: Sequence[str], trajectory: Trajectory) -> list[str]:
    if not queries:
        return ["Answer at once when the fact is certain; otherwise search first."]
    if len(queries) == 1:
        return [
            f"One focused query was enough here: name the entity and the wanted fact, as in '{_short(queries[0])}'.",
            "Read the passage whose title is that entity, then answer with the bare fact.",
        ]
    steps = "; then ".join(f"'{_short(query)}'" for query in queries)
    return [
        f"Break the question into single facts and search for one at a time: {steps}.",
        "Take each new name from the passages, put it into the next query, and answer with the last fact alone.",
    ]


def _on_failure(queries: Sequence[str], trajectory: Trajectory) -> list[str]:
    advice = []
    if not queries:
        advice.append("Do not answer from memory: search for the entity in the question first.")
    elif len(set(queries)) < len(queries):
        advice.append("Never repeat a query; when passages do not help, change the words or search the linked entity.")
    elif len(queries) == 1 and len(trajectory.goal) <= len(queries[0]) + 10:
        advice.append(
            "Do not send the whole question as the query. Search for its innermost name first, then for each next fact."
        )
    else:
        advice.append("After each search, name the fact that is still missing and search for exactly that.")
    if trajectory.stop_reason in (StopReason.TURN_LIMIT, StopReason.MAX_STEPS):
        advice.append("Keep the last turn for an answer: give the best one before the turns run out.")
    elif queries:
        titles = _titles(trajectory.steps)
        if titles:
            advice.append(f"Check that a passage about the right entity (not merely '{titles[-1]}') states the answer.")
        advice.append("Answer with the short fact itself, without a sentence around it.")
    return advice


def _format_faults(steps: Sequence[Step]) -> list[str]:
    if all(step.format_valid and step.action_valid for step in steps):
        return []
    return ["Write exactly one block per reply, either <search>query</search> or <answer>fact</answer>."]


def _titles(steps: Sequence[Step]) -> list[str]:
    return [title for step in steps for title in _PASSAGE_TITLE.findall(step.observation)]


def _short(query: str) -> str:
    return query if len(query) <= 80 else query[:77] + "..."
