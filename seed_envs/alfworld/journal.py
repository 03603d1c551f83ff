"""What was said in one episode, and the explorer that reads along.

Serves pictures, saved states and the rule-based player.  It knows no rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from seed_envs.alfworld.explorer import Explorer

MAX_TURNS: Final = 2_000
MAX_COMMAND_CHARS: Final = 200


class Journal:
    """The turns of an episode.

    Args:
        turns: (command, answer) pairs so far; the first is the opening, with an empty command.
    """

    __slots__ = ("_explorer", "_read", "turns")

    def __init__(self, turns: Iterable[tuple[str, str]] = ()) -> None:
        self.turns = list(turns)
        self._explorer: Explorer | None = None
        self._read = 0

    def add(self, command: str, answer: str) -> None:
        """Write a turn down; in episodes without a limit the oldest are forgotten, the opening never.

        Args:
            command: what was sent.
            answer: what the game said.
        """
        self.turns.append((command[:MAX_COMMAND_CHARS], answer))
        if len(self.turns) > MAX_TURNS:
            del self.turns[1 : MAX_TURNS // 2]
            self._explorer = None

    def advise(self, goal_line: str, admissible: Sequence[str]) -> str:
        """What the explorer would do next, having read every turn once.

        Args:
            goal_line: the goal sentence as the game prints it.
            admissible: the admissible commands.

        Returns:
            One of them.
        """
        if self._explorer is None:
            self._explorer, self._read = Explorer(goal_line), 0
        for _, answer in self.turns[self._read :]:
            self._explorer.observe(answer)
        self._read = len(self.turns)
        return self._explorer.choose(admissible)
