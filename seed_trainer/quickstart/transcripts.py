"""One held-out game before and after training, with the skill each policy writes about its own attempt.

Chooses and lays out what :mod:`seed_trainer.quickstart.attempts` has played; plays nothing itself.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

ATTEMPTS_FILE = "attempts.json"
COMMAND_WIDTH = 36


@dataclass(frozen=True)
class Attempt:
    """One episode and what the policy wrote about it.

    Attributes:
        task_id: The game.
        goal: Its goal line.
        success: Whether it was solved.
        stop_reason: Why it ended.
        exchanges: Every command with the answer to it.
        skill: What the policy wrote.
        reason: Why that is no usable skill; empty if it is one.
        ruled: What the rules write about the same attempt.
    """

    task_id: str
    goal: str
    success: bool
    stop_reason: str
    exchanges: list[tuple[str, str]]
    skill: str
    reason: str
    ruled: str


def write_attempts(folder: Path, attempts: Sequence[Attempt]) -> None:
    """Save attempts in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps([asdict(attempt) for attempt in attempts], indent=1, ensure_ascii=False)
    (folder / ATTEMPTS_FILE).write_text(text + "\n", encoding="utf-8")


def read_attempts(folder: Path) -> list[Attempt]:
    """Load attempts from a folder."""
    return [Attempt(**record) for record in json.loads((folder / ATTEMPTS_FILE).read_text(encoding="utf-8"))]


def agreement(attempts: Sequence[Attempt]) -> tuple[int, int]:
    """How many skills are word for word what the rules would have written about the same attempt, out of how many."""
    same = sum(
        not attempt.reason and attempt.skill.split() == attempt.ruled.replace(",", " ").split() for attempt in attempts
    )
    return same, len(attempts)


def telling_pair(before: Sequence[Attempt], after: Sequence[Attempt]) -> int:
    """Index of a game worth showing: lost before and won after if there is one, the shortest such; else the first."""
    turned = [
        index
        for index, (old, new) in enumerate(zip(before, after, strict=True))
        if not old.success and new.success and not old.reason
    ]
    return min(turned, key=lambda index: len(after[index].exchanges)) if turned else 0


def show(title: str, attempt: Attempt) -> str:
    """An attempt as text: goal, commands with answers, outcome, skill."""
    lines = [f"--- {title}: {attempt.task_id} ---", attempt.goal]
    lines += [f"  > {command:<{COMMAND_WIDTH}} {answer}" for command, answer in attempt.exchanges]
    outcome = "solved" if attempt.success else f"not solved ({attempt.stop_reason})"
    skill = attempt.skill if not attempt.reason else f"(unusable: {attempt.reason}) {attempt.skill}"
    return "\n".join([*lines, f"  {outcome} after {len(attempt.exchanges)} turns", f"  skill: {skill}"])
