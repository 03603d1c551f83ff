"""The level generator of RAGEN, VAGEN and verl-agent, level for level, for comparison with published numbers.

Those frameworks seed the *global* generators ``random`` and ``numpy.random``; here the same numbers come from two
private generators, so that seeds give the same levels everywhere and threads do not disturb each other. When a seed
gives no level the frameworks continue with a seed that depends on ``PYTHONHASHSEED``; here it is derived by SHA-256.
Levels are solvable by construction but of unknown length: :mod:`generator` is the better source for new work.
"""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass, field

import numpy as np

from seed_envs.errors import SeedEnvsError
from seed_envs.vision.sokoban.levels import TARGET, Level
from seed_envs.vision.sokoban.topology import walk_classic, walk_length

SEARCH_DEPTH = 30
MAX_STATES = 300_000
MAX_RETRIES = 1_000
_TRIES = 4


class NoLevel(SeedEnvsError, ValueError):
    """This seed gives no level (too little floor, or no box could be displaced)."""


@dataclass
class _Search:
    """Depth-first search in reverse: pull the boxes away from their targets, keep the best-scored room."""

    open_cells: bytes
    targets: tuple[int, ...]
    width: int
    best_score: int = -1
    best_player: int = -1
    best_places: tuple[int, ...] = ()
    seen: set[tuple[int, int, int]] = field(default_factory=set)

    def displacement(self, places: tuple[int, ...]) -> int:
        """Sum of the Manhattan distances between boxes and their own targets."""
        width = self.width
        return sum(
            abs(place // width - target // width) + abs(place % width - target % width)
            for place, target in zip(places, self.targets, strict=True)
        )

    def run(self, player: int, depth: int) -> None:
        """Searches from the position in which every box stands on its own target."""
        still = sum(1 << target for target in self.targets)
        self._visit(player, self.targets, still, 0, 0, -1, depth)

    def _visit(
        self, player: int, places: tuple[int, ...], still: int, moved: int, swaps: int, last: int, budget: int
    ) -> None:
        # `still` and `moved` are bit sets of the boxes that have never and have ever been pulled: the original tells
        # them apart in its visited set, and levels differ if this does not.
        budget -= 1
        if budget <= 0 or len(self.seen) >= MAX_STATES:
            return
        key = (player, still, moved)
        if key in self.seen:
            return
        boxes = still | moved
        hidden = boxes | (1 << player)
        score = 0 if any(hidden >> target & 1 for target in self.targets) else swaps * self.displacement(places)
        if score > self.best_score:
            self.best_score, self.best_player, self.best_places = score, player, places
        self.seen.add(key)
        for offset in (-self.width, self.width, -1, 1):
            ahead, behind = player + offset, player - offset
            if not self.open_cells[ahead] or boxes >> ahead & 1:
                continue
            if not boxes >> behind & 1:
                self._visit(ahead, places, still, moved, swaps, last, budget)
                continue
            box = places.index(behind)
            pulled = (*places[:box], player, *places[box + 1 :])
            gone = ~(1 << behind)
            self._visit(
                ahead, pulled, still & gone, moved & gone | 1 << player, swaps + (box != last), box, budget
            )  # fmt: skip


def _player_walk(
    rng: random.Random, room: bytearray, boxes: tuple[int, ...], player: int, width: int, chance: float
) -> int:
    """Moves the player up to three cells away, so that a level does not begin next to the box last pulled."""
    if rng.random() > chance:
        return player
    visited = [player]
    for taken in range(1, 4):
        free = [
            player + offset
            for offset in (-width, width, -1, 1)
            if room[player + offset] and player + offset not in boxes and player + offset not in visited
        ]
        if not free:
            break
        player = rng.choice(free)
        visited.append(player)
        if taken == 3 or rng.random() > 0.5:
            break
    return player


def generate_once(seed: int, height: int, width: int, boxes: int, depth: int = SEARCH_DEPTH) -> Level:
    """Makes the level of exactly this seed.

    Args:
        seed: 0 to 2**32 - 1 (the frameworks train on 0 to 2**16 - 2 and validate on 2**16 to 2**32 - 2).
        height: Rows.
        width: Columns.
        boxes: Number of boxes.
        depth: Budget of the reverse search.

    Raises:
        NoLevel: Where the frameworks would retry with another seed.
    """
    rng, placer = random.Random(seed), np.random.RandomState(seed)
    displacement = 0
    for _ in range(_TRIES):
        room = walk_classic(rng, height, width, walk_length(height, width))
        free = [cell for cell, code in enumerate(room) if code]
        if len(free) <= boxes + 1:
            raise NoLevel(f"seed {seed}: {len(free)} floor cells for {boxes} boxes")
        player = free.pop(placer.randint(len(free)))
        targets = tuple(sorted(free.pop(placer.randint(len(free))) for _ in range(boxes)))
        search = _Search(bytes(room), targets, width)
        search.run(player, depth)
        displacement = search.displacement(search.best_places)
        if displacement:
            break
    if not displacement:
        raise NoLevel(f"seed {seed}: no box could be moved off its target in {_TRIES} rooms")
    chance = 0.8 if displacement == 1 else 0.5
    player = _player_walk(rng, room, search.best_places, search.best_player, width, chance)
    for target in targets:
        room[target] = TARGET
    return Level(height, width, bytes(room), tuple(sorted(search.best_places)), player)


def next_seed(seed: int) -> int:
    """The seed to continue with after one that gives no level: 32 bits of the SHA-256 of its decimal digits."""
    return int.from_bytes(hashlib.sha256(str(seed).encode()).digest()[:4], "big")


def generate(seed: int, height: int = 6, width: int = 6, boxes: int = 1, depth: int = SEARCH_DEPTH) -> Level:
    """Makes a level, moving on to derived seeds while there is none.

    Args:
        seed: First seed to try.
        height: Rows.
        width: Columns.
        boxes: Number of boxes.
        depth: Budget of the reverse search.

    Raises:
        NoLevel: If none of ``MAX_RETRIES`` seeds gives a level, for example because the boxes do not fit.
    """
    first = seed
    for _ in range(MAX_RETRIES):
        try:
            return generate_once(seed, height, width, boxes, depth)
        except NoLevel:
            seed = next_seed(seed)
    raise NoLevel(f"no {height}x{width} level with {boxes} boxes from {MAX_RETRIES} seeds derived from {first}")
