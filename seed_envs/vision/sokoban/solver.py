"""Complete knowledge about small rooms: a breadth-first search backwards from "every box on a target".

One search answers, exactly and for every position of a room: can it still be solved (a position that the search never
meets is a deadlock), in how many steps, and which actions are best. Larger rooms are left to :mod:`astar`.
"""

from __future__ import annotations

from collections.abc import Sequence

from seed_envs.vision.sokoban.levels import TARGET, WALL

DEFAULT_MAX_STATES = 50_000
DIRECTIONS = ("up", "down", "left", "right")

Position = tuple[int, int]
"""(player cell, boxes as an integer bit set)."""


class StateBudgetExceeded(Exception):
    """The room has more solvable positions than the search was allowed to store."""


class StateTable:
    """Distances of all solvable positions of one room.

    Attributes:
        layers: ``layers[d]`` lists the positions exactly ``d`` steps from the nearest solution, in search order.
        distance_of: The same as a mapping.
    """

    def __init__(self, height: int, width: int, fixed: bytes, max_states: int = DEFAULT_MAX_STATES) -> None:
        """Searches the room.

        Args:
            height: Rows.
            width: Columns.
            fixed: Walls, floor and targets, one byte per cell; as many boxes as targets are assumed.
            max_states: Largest number of positions to store.

        Raises:
            StateBudgetExceeded: If the room has more.
        """
        self._offsets = (-width, width, -1, 1)
        self._open = [code != WALL for code in fixed]
        self._neighbours = self._adjacency(fixed)
        self.layers, self.distance_of = self._search(fixed, max_states)

    def _adjacency(self, fixed: bytes) -> list[tuple[tuple[int, int, int], ...]]:
        """For each open cell: (cell to step back to, its bit, box move as a bit pair or 0) per direction."""
        is_open, offsets = self._open, self._offsets
        table: list[tuple[tuple[int, int, int], ...]] = []
        for cell, open_here in enumerate(is_open):
            entries = []
            if open_here:
                for offset in offsets:
                    back, ahead = cell - offset, cell + offset
                    if is_open[back]:
                        entries.append((back, 1 << back, (1 << ahead) if is_open[ahead] else 0))
            table.append(tuple(entries))
        return table

    def _search(self, fixed: bytes, max_states: int) -> tuple[list[list[Position]], dict[Position, int]]:
        goal = sum(1 << cell for cell, code in enumerate(fixed) if code == TARGET)
        layer: list[Position] = [
            (cell, goal) for cell, code in enumerate(fixed) if code != WALL and not goal >> cell & 1
        ]
        layers: list[list[Position]] = []
        distance_of: dict[Position, int] = dict.fromkeys(layer, 0)
        neighbours = self._neighbours
        while layer:
            layers.append(layer)
            if len(distance_of) > max_states:
                raise StateBudgetExceeded(f"more than {max_states} positions")
            depth = len(layers)
            reached: list[Position] = []
            for cell, boxes in layer:
                here = 1 << cell
                for back, back_bit, ahead_bit in neighbours[cell]:
                    if boxes & back_bit:
                        continue
                    position = (back, boxes)
                    if position not in distance_of:
                        distance_of[position] = depth
                        reached.append(position)
                    if boxes & ahead_bit:
                        position = (back, boxes ^ ahead_bit ^ here)
                        if position not in distance_of:
                            distance_of[position] = depth
                            reached.append(position)
            layer = reached
        return layers, distance_of

    def distance(self, player: int, boxes: int) -> int | None:
        """Fewest steps to a solution, or None if there is none (deadlock)."""
        return self.distance_of.get((player, boxes))

    def best_actions(self, player: int, boxes: int) -> tuple[str, ...]:
        """All directions that lead one step closer to a solution; empty when solved or deadlocked."""
        here = self.distance_of.get((player, boxes))
        if not here:
            return ()
        found = []
        for word, offset in zip(DIRECTIONS, self._offsets, strict=True):
            after = self._after(player, boxes, offset)
            if after is not None and self.distance_of.get(after, here) == here - 1:
                found.append(word)
        return tuple(found)

    def _after(self, player: int, boxes: int, offset: int) -> Position | None:
        """The position after one push action, or None if it is blocked."""
        ahead = player + offset
        if not self._open[ahead]:
            return None
        if boxes >> ahead & 1:
            beyond = ahead + offset
            if not self._open[beyond] or boxes >> beyond & 1:
                return None
            return ahead, boxes ^ (1 << ahead) ^ (1 << beyond)
        return ahead, boxes

    def starts(self, min_steps: int, max_steps: int) -> list[Position]:
        """Positions with every box off target and a distance in the given range, nearest first."""
        goal = self.layers[0][0][1]
        return [state for layer in self.layers[min_steps : max_steps + 1] for state in layer if not state[1] & goal]


def box_cells(boxes: int) -> tuple[int, ...]:
    """The cells of a bit set, ascending."""
    cells = []
    while boxes:
        low = boxes & -boxes
        cells.append(low.bit_length() - 1)
        boxes ^= low
    return tuple(cells)


def box_bits(cells: Sequence[int]) -> int:
    """The bit set of some cells."""
    return sum(1 << cell for cell in cells)
