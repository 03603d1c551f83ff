"""Push-optimal A* for rooms too large for a table.

Positions are (box cells, region the player can reach); the cost is the number of pushes, so solutions are optimal in
pushes, not in steps. A search that runs out of its budget says so; one that exhausts the room proves it a deadlock.
"""

from __future__ import annotations

import heapq
import itertools
import time
from dataclasses import dataclass
from typing import Literal

from seed_envs.vision.sokoban.levels import TARGET, WALL
from seed_envs.vision.sokoban.solver import DIRECTIONS, box_cells

MAX_STATES = 200_000
MAX_SECONDS = 60.0
_UNREACHABLE = 10_000
_MATCHED_BOXES = 8

Push = tuple[int, int]
"""(cell of the box before the push, index of the direction in ``DIRECTIONS``)."""


@dataclass(frozen=True, slots=True)
class Solution:
    """What a search found.

    Attributes:
        status: ``"solved"``, ``"unsolvable"`` (proven) or ``"budget"`` (unknown).
        pushes: Pushes in order, fewest possible; empty unless solved.
        actions: The same with the walks between them, as direction words.
        states: Number of positions expanded.
    """

    status: Literal["solved", "unsolvable", "budget"]
    pushes: tuple[Push, ...]
    actions: tuple[str, ...]
    states: int


class PushSearch:
    """Solver of one room; it can be asked about many positions of it."""

    def __init__(self, height: int, width: int, fixed: bytes) -> None:
        """Prepares the push distances of the room.

        Args:
            height: Rows.
            width: Columns.
            fixed: Walls, floor and targets, one byte per cell.
        """
        self._width = width
        self._offsets = (-width, width, -1, 1)
        self._open = sum(1 << cell for cell, code in enumerate(fixed) if code != WALL)
        self._targets = tuple(cell for cell, code in enumerate(fixed) if code == TARGET)
        self._goal = sum(1 << cell for cell in self._targets)
        self._pushes_to = [self._push_distances(target, len(fixed)) for target in self._targets]
        self._alive = sum(
            1 << cell for cell in range(len(fixed)) if any(table[cell] < _UNREACHABLE for table in self._pushes_to)
        )
        self._estimates: dict[int, int] = {}

    def _push_distances(self, target: int, cells: int) -> list[int]:
        """Fewest pushes that bring a lone box from each cell to ``target``."""
        distances = [_UNREACHABLE] * cells
        distances[target] = 0
        queue = [target]
        for cell in queue:
            for offset in self._offsets:
                before, player = cell - offset, cell - 2 * offset
                if not 0 <= player < cells or not self._open >> before & 1 or not self._open >> player & 1:
                    continue
                if distances[before] == _UNREACHABLE:
                    distances[before] = distances[cell] + 1
                    queue.append(before)
        return distances

    def estimate(self, boxes: int) -> int:
        """Lower bound on the pushes still needed; at least 10,000 if some box can no longer reach a target."""
        known = self._estimates.get(boxes)
        if known is None:
            rows = [[table[cell] for table in self._pushes_to] for cell in box_cells(boxes)]
            known = _matching(rows) if len(rows) <= _MATCHED_BOXES else sum(min(row) for row in rows)
            self._estimates[boxes] = known
        return known

    def reachable(self, player: int, boxes: int) -> int:
        """Bit set of the cells the player can walk to."""
        free, width = self._open & ~boxes, self._width
        reach, grown = 0, 1 << player
        while grown != reach:
            reach = grown
            grown = (reach | reach << 1 | reach >> 1 | reach << width | reach >> width) & free
        return reach

    def certainly_dead(self, boxes: int) -> bool:
        """A quick sufficient test: a box on a cell it can never leave for a target, or four cells frozen together."""
        if boxes & ~self._alive or self.estimate(boxes) >= _UNREACHABLE:
            return True
        return any(self._frozen(cell, boxes) for cell in box_cells(boxes & ~self._goal))

    def _frozen(self, cell: int, boxes: int) -> bool:
        """Whether ``cell`` is part of a 2x2 block of boxes and walls that holds a box off target."""
        solid = boxes | ~self._open
        for across in (-1, 1):
            for down in (-self._width, self._width):
                block = 1 << cell | 1 << cell + across | 1 << cell + down | 1 << cell + across + down
                if solid & block == block and block & boxes & ~self._goal:
                    return True
        return False

    def solve(
        self, player: int, boxes: int, max_states: int = MAX_STATES, max_seconds: float | None = MAX_SECONDS
    ) -> Solution:
        """Searches for a solution with the fewest pushes.

        Args:
            player: Cell of the player.
            boxes: Cells of the boxes as a bit set.
            max_states: Number of positions after which the search gives up.
            max_seconds: Wall time after which it gives up; None for no limit, which makes the outcome reproducible.
        """
        deadline = None if max_seconds is None else time.monotonic() + max_seconds
        order = itertools.count()
        start = (boxes, _lowest(self.reachable(player, boxes)))
        best_cost = {start: 0}
        parents: dict[tuple[int, int], tuple[tuple[int, int], Push]] = {}
        queue = [(self.estimate(boxes), 0, next(order), start)]
        expanded: set[tuple[int, int]] = set()
        while queue:
            estimate, negative_cost, _, node = heapq.heappop(queue)
            if estimate >= _UNREACHABLE:
                break
            if node in expanded:
                continue
            if node[0] == self._goal:
                pushes = _trace(parents, node)
                return Solution("solved", pushes, self._walks(player, boxes, pushes), len(expanded))
            if len(expanded) >= max_states or (deadline is not None and time.monotonic() > deadline):
                return Solution("budget", (), (), len(expanded))
            expanded.add(node)
            cost = 1 - negative_cost
            for child, push in self._successors(node):
                if cost < best_cost.get(child, _UNREACHABLE):
                    best_cost[child] = cost
                    parents[child] = (node, push)
                    heapq.heappush(queue, (cost + self.estimate(child[0]), -cost, next(order), child))
        return Solution("unsolvable", (), (), len(expanded))

    def _successors(self, node: tuple[int, int]) -> list[tuple[tuple[int, int], Push]]:
        boxes, player = node
        reach = self.reachable(player, boxes)
        found: list[tuple[tuple[int, int], Push]] = []
        for cell in box_cells(boxes):
            for direction, offset in enumerate(self._offsets):
                after = cell + offset
                if not reach >> cell - offset & 1 or not self._alive & ~boxes & self._open & 1 << after:
                    continue
                moved = boxes ^ (1 << cell) ^ (1 << after)
                if not self._goal >> after & 1 and self._frozen(after, moved):
                    continue
                found.append(((moved, _lowest(self.reachable(cell, moved))), (cell, direction)))
        return found

    def _walks(self, player: int, boxes: int, pushes: tuple[Push, ...]) -> tuple[str, ...]:
        """Joins pushes with shortest walks."""
        actions: list[str] = []
        for cell, direction in pushes:
            offset = self._offsets[direction]
            actions += self._path(player, cell - offset, boxes)
            actions.append(DIRECTIONS[direction])
            boxes ^= (1 << cell) | (1 << cell + offset)
            player = cell
        return tuple(actions)

    def _path(self, start: int, end: int, boxes: int) -> list[str]:
        """A shortest walk; ties go to the direction listed first."""
        came: dict[int, tuple[int, str]] = {start: (start, "")}
        queue = [start]
        for cell in queue:
            if cell == end:
                break
            for word, offset in zip(DIRECTIONS, self._offsets, strict=True):
                after = cell + offset
                if after not in came and self._open & ~boxes & 1 << after:
                    came[after] = (cell, word)
                    queue.append(after)
        words = []
        while end != start:
            end, word = came[end]
            words.append(word)
        return words[::-1]


def _lowest(bits: int) -> int:
    return (bits & -bits).bit_length() - 1


def _matching(rows: list[list[int]]) -> int:
    """Smallest total when every row takes a different column (dynamic programming over sets of columns)."""
    best = {0: 0}
    for row in rows:
        extended: dict[int, int] = {}
        for used, total in best.items():
            for column, value in enumerate(row):
                if not used >> column & 1:
                    key = used | 1 << column
                    if total + value < extended.get(key, 1 << 30):
                        extended[key] = total + value
        best = extended
    return min(best.values())


def _trace(parents: dict[tuple[int, int], tuple[tuple[int, int], Push]], node: tuple[int, int]) -> tuple[Push, ...]:
    pushes = []
    while node in parents:
        node, push = parents[node]
        pushes.append(push)
    return tuple(pushes[::-1])
