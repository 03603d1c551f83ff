"""A game and commands, played on both engines until they differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from seed_envs.alfworld.game import Game, compile_game
from seed_envs.alfworld.gamefile import with_sentence
from seed_envs.alfworld.pddl import Problem, read_problem, write_problem
from seed_envs.alfworld.textworld_engine import TextWorldFailed, TextWorldProcess

from ..textgames import Ours, Theirs, Turn, pairs
from .director import Director

_UNREACHABLE = "KeyError: 'val1'"
"""The planner behind the original writes a stand-in for a task without solution, and the original stumbles over it."""


class Difference(NamedTuple):
    """Where the engines part.

    Attributes:
        commands: What was played, the parting command last; empty when the openings differ.
        fields: By name, our value and the original's.
    """

    commands: tuple[str, ...]
    fields: dict[str, tuple[Any, Any]]


class Case:
    """One game for both engines, from the same text.

    Args:
        problem: The facts.
        model: A game file's content; its domain and grammar are used.
        walkthrough: Commands that the player may follow.

    """

    def __init__(self, problem: Problem, model: Mapping[str, Any], walkthrough: Sequence[str] = ()) -> None:
        self.text = write_problem(problem, "mutated")
        sentence = problem.goal.sentence()
        self.document = {
            **model, "grammar": with_sentence(model["grammar"], sentence), "pddl_problem": self.text,
        }  # fmt: skip
        self._sentence, self._walkthrough = sentence, walkthrough

    @cached_property
    def game(self) -> Game:
        """Compiled by our reader.

        Raises:
            DataInvalid: When it refuses the facts.
        """
        read = read_problem(self.text)
        return compile_game(read, game_id="mutated", sentence=self._sentence, walkthrough=self._walkthrough)

    def out_of_reach(self, process: TextWorldProcess) -> bool:
        """Whether the original cannot load the game because nothing in it can ever meet the goal.

        Raises:
            TextWorldFailed: When it fails for another reason.
        """
        try:
            Theirs(process, self.document).start()
        except TextWorldFailed as error:
            if _UNREACHABLE not in str(error):
                raise
            return True
        return False

    def explore(self, process: TextWorldProcess, steps: int, seed: int) -> Iterator[tuple[str | None, Turn, Turn]]:
        """Play what a director chooses; the opening comes first, without a command."""
        ours, theirs, director = Ours(self.game), Theirs(process, self.document), Director(seed)
        yield None, ours.start(), theirs.start()
        for _ in range(steps):
            command = director.choose(ours.engine)
            yield command, ours.act(command), theirs.act(command)

    def replay(self, process: TextWorldProcess, commands: Sequence[str]) -> Difference | None:
        """Play given commands until the first difference."""
        ours, theirs = Ours(self.game), Theirs(process, self.document)
        fields = differing(ours.start(), theirs.start())
        for number, command in enumerate(commands):
            if fields:
                return Difference(tuple(commands[:number]), fields)
            fields = differing(ours.act(command), theirs.act(command))
        return Difference(tuple(commands), fields) if fields else None


def differing(ours: Turn, theirs: Turn) -> dict[str, tuple[Any, Any]]:
    """The fields that differ."""
    return {name: both for name, both in pairs(ours, theirs).items() if both[0] != both[1]}
