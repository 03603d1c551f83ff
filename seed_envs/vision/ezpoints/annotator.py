"""A rule-based writer of hindsight skills for the card games.

It reads the finished episode as a language-model annotator would (actions, validity, texts, outcome) and knows no
solution that was not played.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from seed_envs.trajectory import Step, Trajectory
from seed_envs.vision.terse import annotate_terse

__all__ = ["annotate", "annotate_terse"]


def annotate(trajectory: Trajectory) -> str:
    """Writes the skill of one episode.

    Args:
        trajectory: A finished EZPoints or Points24 episode.

    Returns:
        Two or three sentences addressed to the player.
    """
    table: dict[str, Any] = next(iter(trajectory.extras.values()), {})
    formula = " ".join(token for token in table.get("formula", ()) if token.strip())
    numbers = " and ".join(map(str, table.get("numbers", ()))) or "all numbers"
    return _praise(formula, numbers) if trajectory.success else _warn(trajectory.steps, table, formula, numbers)


def _praise(formula: str, numbers: str) -> str:
    return (
        f"Read every card first, here {numbers}, and settle on the whole formula before writing the first token. "
        f"Then write it without detours, check that each card is used once, and end with =; here {formula} won."
    )


def _warn(steps: Sequence[Step], table: dict[str, Any], formula: str, numbers: str) -> str:
    invalid = [step for step in steps if not (step.format_valid and step.action_valid)]
    if len(invalid) * 2 >= max(len(steps), 1):
        reason = invalid[0].invalid_reason if invalid else "nothing was played"
        return (
            f"{len(invalid)} of {len(steps)} answers were not used, for example because: {reason}. "
            "Answer with one JSON object whose action is a single token that is a card number, an operator or =."
        )
    result, refused = table.get("result", ""), table.get("refused", "")
    if result:
        return (
            f"The formula {formula} was ended although it does not win: {result}. Before playing =, compute the value "
            f"and check that each of the cards, here {numbers}, is used exactly once."
        )
    why = f" The last token was refused: {refused}." if refused else ""
    return (
        f"The steps ran out at the formula {formula or 'without a token'}.{why} Plan a formula that uses each card "
        "once, write only its tokens in order, and play = as soon as it is complete."
    )
