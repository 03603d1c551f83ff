"""The short form of hindsight skills in the picture games, made for word-level models.

After a success: the actions that worked, to be done again. After a failure: the actions that did not, not to be
repeated. Only the trajectory's own valid actions and its outcome are read.
"""

from __future__ import annotations

from typing import NamedTuple

from seed_envs.trajectory import Trajectory

DO, AVOID = "go", "not"
MAX_ACTIONS = 16


class Hint(NamedTuple):
    """A terse skill, read: whether its actions are to be repeated, and the actions."""

    repeat: bool
    actions: tuple[str, ...]


def annotate_terse(trajectory: Trajectory) -> str:
    """Writes the terse skill of a finished episode, such as ``"go left up up"``; without an action there is none."""
    actions = [step.action for step in trajectory.steps if step.action_valid][:MAX_ACTIONS]
    return " ".join([DO if trajectory.success else AVOID, *actions]) if actions else ""


def read_terse(skill: str) -> Hint:
    """Reads a terse skill; any other text holds no action."""
    head, *actions = skill.split() or [""]
    return Hint(head == DO, tuple(actions) if head in (DO, AVOID) else ())
