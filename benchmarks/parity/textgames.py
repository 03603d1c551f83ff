"""An ALFWorld game on both engines, turn by turn: ours and TextWorld, each from the content of one game file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from seed_envs.alfworld.actions import Rules
from seed_envs.alfworld.engine import Engine
from seed_envs.alfworld.game import Game
from seed_envs.alfworld.textworld_engine import TextWorldProcess

GAMES_A_PROCESS = 100
"""The original keeps about 5 MB of every game it loaded."""
ORIGINAL = "TextWorld 1.7.0, alfworld 0.4.2"


class Turn(NamedTuple):
    """What an engine shows after a command, or at the start.

    Attributes:
        text: The feedback.
        admissible: The admissible commands, sorted.
        won: Whether the goal is met.
        lost: Whether the game is lost.
        score: 1 when won, else 0; the opening has none yet, which is 0 here.
    """

    text: str
    admissible: list[str]
    won: bool
    lost: bool
    score: int


class Ours:
    """Our engine.

    Args:
        game: The compiled game.
    """

    def __init__(self, game: Game) -> None:
        self.engine = Engine(game, Rules())

    def start(self) -> Turn:
        """The turn before any command."""
        return self._turn(self.engine.reset())._replace(score=0)

    def act(self, command: str) -> Turn:
        """The turn after a command."""
        return self._turn(self.engine.act(command).text)

    def _turn(self, text: str) -> Turn:
        won = self.engine.won
        return Turn(text, self.engine.admissible(), won, False, int(won))


class Theirs:
    """The original in its process.

    Args:
        process: Plays one game at a time.
        document: Content of the game file.
    """

    def __init__(self, process: TextWorldProcess, document: Mapping[str, Any]) -> None:
        self._process, self._document = process, document

    def start(self) -> Turn:
        """The turn before any command."""
        return Turn(**self._process.ask(op="load", document=self._document))

    def act(self, command: str) -> Turn:
        """The turn after a command."""
        return Turn(**self._process.ask(op="act", command=command))


def pairs(ours: Turn, theirs: Turn) -> dict[str, tuple[Any, Any]]:
    """Both turns field by field, lists by what only one of them has."""
    found = {name: (getattr(ours, name), getattr(theirs, name)) for name in Turn._fields}
    if ours.admissible != theirs.admissible and set(ours.admissible) != set(theirs.admissible):
        mine, other = set(ours.admissible), set(theirs.admissible)
        found["admissible"] = (sorted(mine - other), sorted(other - mine))
    return found
