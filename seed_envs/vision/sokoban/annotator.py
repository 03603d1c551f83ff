"""A rule-based writer of hindsight skills: reads a finished episode and gives one short piece of advice.

It sees what a language-model annotator would see, namely actions, validity, observations and the outcome. It never
looks at the environment's privileged knowledge, and it knows no optimal solution.
"""

from __future__ import annotations

from itertools import groupby, pairwise

from seed_envs.trajectory import Step, Trajectory
from seed_envs.vision.terse import annotate_terse

__all__ = ["annotate", "annotate_terse"]

_OPPOSITE = {"up": "down", "down": "up", "left": "right", "right": "left"}
_MAX_RUNS = 12


def annotate(trajectory: Trajectory) -> str:
    """Writes the skill of one episode.

    Args:
        trajectory: A finished Sokoban episode.

    Returns:
        Two or three sentences addressed to the player: after success the way of working and the order of the moves,
        after failure the main mistake and what to do instead.
    """
    return _praise(trajectory) if trajectory.success else _warn(trajectory)


def _praise(trajectory: Trajectory) -> str:
    route = _route([step.action for step in trajectory.steps if step.action_valid])
    return (
        "First walk around to the side of the box that lies opposite the target, then push in a straight line, and "
        f"change sides only where the line bends. Here {trajectory.num_steps} moves solved it: {route}."
    )


def _route(actions: list[str]) -> str:
    runs = [(word, len(list(run))) for word, run in groupby(actions)]
    shown = ", ".join(word if count == 1 else f"{word} {count} times" for word, count in runs[:_MAX_RUNS])
    return shown + (", and so on" if len(runs) > _MAX_RUNS else "")


def _warn(trajectory: Trajectory) -> str:
    steps = trajectory.steps
    refused = [step for step in steps if not (step.format_valid and step.action_valid)]
    if len(refused) * 3 >= max(len(steps), 1):
        return (
            f"{len(refused)} of {len(steps)} answers could not be used, for example because: {_first(refused)}. "
            "Always think first and end with exactly one of up, down, left, right inside the action tags."
        )
    if stuck := _cornered(trajectory.final_observation):
        row, column = stuck
        return (
            f"The box at row {row}, column {column} was pushed into a corner without a target, which cannot be undone. "
            "Before each push, check that the cell behind the box leaves it free to move on towards a target."
        )
    if trajectory.extras.get("sokoban", {}).get("pushes") == 0:
        return (
            "No box was pushed at all. Find the box, decide which way it has to go, walk to the cell on its far side, "
            "and only then move towards it."
        )
    returns = sum(_OPPOSITE.get(first.action) == second.action for first, second in pairwise(steps))
    if returns * 3 >= len(steps):
        return (
            f"{returns} moves only undid the move before and the steps ran out. Choose one box and one target, plan "
            "the walk to the pushing side, and carry the plan through without turning back."
        )
    return (
        f"The boxes were moved but not brought onto the targets within {len(steps)} moves. Count the pushes each box "
        "needs along rows and columns, do the pushes that must come first, and avoid pushing a box past its target."
    )


def _first(refused: list[Step]) -> str:
    return refused[0].invalid_reason or "no action was found"


def _cornered(observation: str) -> tuple[int, int] | None:
    """Place (row, column from 1) of a box off target between two walls at a right angle, if the text shows a grid."""
    rows = ["".join(line.split()) for line in observation.splitlines()]
    rows = [row for row in rows if row.startswith("#") and row.endswith("#")]
    if len({len(row) for row in rows}) != 1:
        return None
    for row in range(1, len(rows) - 1):
        for column in range(1, len(rows[row]) - 1):
            vertical = rows[row - 1][column] == "#" or rows[row + 1][column] == "#"
            horizontal = rows[row][column - 1] == "#" or rows[row][column + 1] == "#"
            if rows[row][column] == "X" and vertical and horizontal:
                return row + 1, column + 1
    return None
