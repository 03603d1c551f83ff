"""A greedy player without look-ahead, the floor for any policy: it sees the room as an agent does and plans nothing.

It walks to the nearest place from which a push brings a box closer to a free target, and pushes. It does not notice
deadlocks.
"""

from __future__ import annotations

from collections import deque

from seed_envs.vision.sokoban.levels import BOX, FLOOR, TARGET
from seed_envs.vision.sokoban.rules import Game

_WORDS = ("up", "down", "left", "right")


def greedy_direction(game: Game) -> str:
    """The next step of the greedy player: ``up``, ``down``, ``left`` or ``right``.

    Without a useful push in reach it steps in the first direction that is free.
    """
    width = game.level.width
    offsets = dict(zip(_WORDS, (-width, width, -1, 1), strict=True))
    places = _pushing_places(game, offsets)
    if game.player in places:
        return places[game.player]
    seen, queue = {game.player}, deque([(game.player, "")])
    while queue:
        cell, first = queue.popleft()
        if cell in places:
            return first
        for word, offset in offsets.items():
            ahead = cell + offset
            if ahead not in seen and FLOOR <= game.room[ahead] <= TARGET:
                seen.add(ahead)
                queue.append((ahead, first or word))
    return next((word for word, offset in offsets.items() if FLOOR <= game.room[game.player + offset] <= TARGET), "up")


def _pushing_places(game: Game, offsets: dict[str, int]) -> dict[int, str]:
    """Cells from which a push brings a box closer to a free target, and the direction to push in."""
    level, room = game.level, game.room
    free = [cell for cell in level.targets if not game.boxes >> cell & 1]
    places: dict[int, str] = {}
    for box in (cell for cell, code in enumerate(room) if code == BOX):
        near = min((_distance(box, target, level.width) for target in free), default=0)
        for word, offset in offsets.items():
            behind, ahead = box - offset, box + offset
            reachable = FLOOR <= room[behind] <= TARGET or behind == game.player
            opens = FLOOR <= room[ahead] <= TARGET or ahead == game.player
            if reachable and opens and any(_distance(ahead, target, level.width) < near for target in free):
                places.setdefault(behind, word)
    return places


def _distance(one: int, other: int, width: int) -> int:
    return abs(one // width - other // width) + abs(one % width - other % width)
