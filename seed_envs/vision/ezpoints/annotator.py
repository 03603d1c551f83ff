"""A rule-based writer of hindsight skills for the card games.

It reads the finished episode as a language-model annotator would (actions, validity, texts, outcome) and knows no
solution that was not played.
"""

from __future__ import annotations

from seed_envs.trajectory import Trajectory


def annotate(trajectory: Trajectory) -> str:
    """Writes the skill of one episode.

    Args:
        trajectory: A finished EZPoints or Points24 episode.

    Returns:
        Two or three sentences addressed to the player.
    """
    formula = " ".join(trajectory.extras.get("formula", ()))
    return _praise(trajectory, formula) if trajectory.success else _warn(trajectory, formula)


def _praise(trajectory: Trajectory, formula: str) -> str:
    numbers = _numbers(trajectory)
    return (
        f"Read every card first, here {numbers}, and settle on the whole formula before writing the first token. "
        f"Then write it without detours, check that each card is used once, and end with =; here {formula} won."
    )


def _numbers(trajectory: Trajectory) -> str:
    return " and ".join(map(str, trajectory.extras.get("numbers", ()))) or "all numbers"


def _warn(trajectory: Trajectory, formula: str) -> str:
    steps = trajectory.steps
    invalid = [step for step in steps if not step.action_valid]
    if len(invalid) * 2 >= max(len(steps), 1):
        reason = invalid[0].invalid_reason if invalid else "nothing was played"
        return (
            f"{len(invalid)} of {len(steps)} answers were not used, for example because: {reason}. "
            "Answer with one JSON object whose action is a single token that is a card number, an operator or =."
        )
    result = trajectory.extras.get("result", "")
    refused = trajectory.extras.get("refused", "")
    if result:
        return (
            f"The formula {formula} was ended although it does not win: {result}. Before playing =, compute the value "
            f"and check that each of the cards, here {_numbers(trajectory)}, is used exactly once."
        )
    why = f" The last token was refused: {refused}." if refused else ""
    return (
        f"The steps ran out at the formula {formula or 'without a token'}.{why} Plan a formula that uses each card "
        "once, write only its tokens in order, and play = as soon as it is complete."
    )
