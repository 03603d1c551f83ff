"""What is known about a running level: distance, deadlock, best actions, and the oracle that plays them.

Small rooms are answered from their table of all positions (exact). Larger ones are answered by push-optimal A*, and
only when the oracle is asked: nothing here runs during ``reset`` or ``step`` of a large room except a quick deadlock
test. This module never writes into observations.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from math import comb
from typing import Any

from seed_envs.errors import OracleUnavailable
from seed_envs.outcomes import Count, LazyActions
from seed_envs.vision.sokoban.astar import PushSearch
from seed_envs.vision.sokoban.levels import WALL, Level
from seed_envs.vision.sokoban.rules import PUSH_ACTIONS, Game
from seed_envs.vision.sokoban.solver import StateBudgetExceeded, StateTable, box_bits

TABLE_BOUND = 300_000
"""Rooms with more conceivable positions than this are not tabulated."""


def tabulate(level: Level) -> StateTable | None:
    """The table of a level's room, or None if the room is too large for one."""
    floor = len(level.fixed) - level.fixed.count(WALL)
    if floor * comb(floor, len(level.boxes)) > TABLE_BOUND:
        return None
    try:
        return StateTable(level.height, level.width, level.fixed)
    except StateBudgetExceeded:
        return None


@dataclass
class Oracle:
    """Knowledge about one level.

    Attributes:
        level: The level.
        table: All solvable positions of its room, or None for a large room.
    """

    level: Level
    table: StateTable | None
    _plan: dict[tuple[int, int], str] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, level: Level) -> Oracle:
        """Makes the oracle of a level that nothing is known about yet."""
        return cls(level, tabulate(level))

    @cached_property
    def search(self) -> PushSearch:
        """The A* solver of the room."""
        return PushSearch(self.level.height, self.level.width, self.level.fixed)

    @cached_property
    def optimal_steps(self) -> int | None:
        """Fewest steps that solve the level from its start; None if unsolvable or not known (no table)."""
        return None if self.table is None else self.table.distance(self.level.player, box_bits(self.level.boxes))

    def distance(self, game: Game) -> int | None:
        """Fewest steps to a solution; None in a deadlock or without a table."""
        return None if self.table is None else self.table.distance_of.get((game.player, game.boxes))

    def deadlock(self, game: Game) -> bool | None:
        """Whether the position is lost: exact with a table; without one True is certain and None is unknown."""
        if self.table is not None:
            return (game.player, game.boxes) not in self.table.distance_of
        return True if self.search.certainly_dead(game.boxes) else None

    def privileged(self, game: Game) -> dict[str, Any]:
        """What goes under ``info["sokoban"]["oracle"]``; the same keys for every level."""
        table, player, boxes = self.table, game.player, game.boxes
        if table is None:
            return {
                "solver": "astar",
                "optimal_steps": None,
                "distance": None,
                "deadlock": self.deadlock(game),
                "best_actions": (),
            }
        distance = table.distance_of.get((player, boxes))
        return {
            "solver": "table",
            "optimal_steps": None if self.optimal_steps is None else Count(self.optimal_steps),
            "distance": None if distance is None else Count(distance),
            "deadlock": distance is None,
            "best_actions": LazyActions(lambda: table.best_actions(player, boxes)),
        }

    def action(self, game: Game) -> str:
        """A best direction word.

        Raises:
            OracleUnavailable: In a deadlock, when solved, or when A* ran out of its budget.
        """
        if game.solved:
            raise OracleUnavailable("the level is solved; there is nothing left to do")
        if self.table is not None:
            best = self.table.best_actions(game.player, game.boxes)
            if not best:
                raise OracleUnavailable("deadlock: no sequence of actions solves this position any more")
            return best[0]
        if (game.player, game.boxes) not in self._plan:
            self._extend_plan(game)
        return self._plan[game.player, game.boxes]

    def _extend_plan(self, game: Game) -> None:
        solution = self.search.solve(game.player, game.boxes)
        if solution.status != "solved":
            what = "deadlock" if solution.status == "unsolvable" else "search budget used up"
            raise OracleUnavailable(f"{what} after {solution.states} positions")
        state = game.get_state()
        ahead = Game(self.level)
        ahead.set_state(state)
        for word in solution.actions:
            self._plan[ahead.player, ahead.boxes] = word
            ahead.step(PUSH_ACTIONS[word])
