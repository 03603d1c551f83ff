"""Thousands of rooms at once: a NumPy engine without Python loops, and a Gymnasium vector environment around it.

For scripted policies, value tables and small networks; language models use ``seed/Sokoban-v0``. Observations are cell
codes or pictures, actions are numbers (those of gym-sokoban). Levels come from any sequence of levels of one shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.vector import VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from seed_envs.errors import DataInvalid, UnknownOption
from seed_envs.vision.sokoban.levels import BOX, BOX_ON_TARGET, FLOOR, PLAYER, TARGET, Level
from seed_envs.vision.sokoban.render import tile_atlas
from seed_envs.vision.sokoban.rules import OFF_TARGET_REWARD, ON_TARGET_REWARD, SOLVED_REWARD, STEP_REWARD

# Gymnasium 1.0 has this mode alone and no name for it.
_NEXT_STEP = getattr(getattr(gym.vector, "AutoresetMode", None), "NEXT_STEP", None)


class BatchEngine:
    """N games on one array.

    Rooms are stored flat with two guard rows, so that looking two cells ahead never leaves an array. Dynamics and
    reward are exactly those of :class:`~seed_envs.vision.sokoban.rules.Game`; every action counts as a step.

    Attributes:
        height: Rows.
        width: Columns.
        on_target: Boxes on targets, shape (N,).
        steps: Steps since the game began, shape (N,).
    """

    def __init__(self, levels: Sequence[Level], count: int) -> None:
        """Packs the levels; every game starts on level 0.

        Args:
            levels: The pool of levels, all of one size and number of boxes.
            count: Number of games N.

        Raises:
            DataInvalid: If there is no level, or shapes differ.
        """
        shapes = {(level.height, level.width, len(level.boxes)) for level in levels}
        if len(shapes) != 1:
            raise DataInvalid(f"the batch engine needs levels of one shape, found {sorted(shapes) or 'none'}")
        self.height, self.width, self._boxes = shapes.pop()
        cells = self.height * self.width
        self._pool_fixed = np.frombuffer(b"".join(level.fixed for level in levels), np.uint8).reshape(-1, cells)
        self._pool_room = np.frombuffer(b"".join(bytes(level.room()) for level in levels), np.uint8).reshape(-1, cells)
        self._pool_player = np.array([level.player for level in levels], np.intp)
        self._pool_on_target = (self._pool_room == BOX_ON_TARGET).sum(1).astype(np.int16)
        self._fixed = np.zeros(count * cells, np.uint8)
        self._room = np.zeros(count * cells, np.uint8)
        self._base = np.arange(count, dtype=np.intp) * cells
        self._player = np.zeros(count, np.intp)
        self.on_target = np.zeros(count, np.int16)
        self.steps = np.zeros(count, np.int32)
        steps = (0, -self.width, self.width, -1, 1)
        self._offsets = np.array([*steps, *steps[1:]], np.intp)
        rewards = STEP_REWARD + np.array([0.0, ON_TARGET_REWARD, OFF_TARGET_REWARD])
        self._rewards = np.concatenate([rewards, rewards + SOLVED_REWARD])
        self.load(np.arange(count), np.zeros(count, np.intp))

    def load(self, games: NDArray[np.intp], levels: NDArray[np.integer[Any]]) -> None:
        """Puts the games with these indices on the levels with those indices."""
        cells = self.height * self.width
        self._fixed.reshape(-1, cells)[games] = self._pool_fixed[levels]
        self._room.reshape(-1, cells)[games] = self._pool_room[levels]
        self._player[games] = self._base[games] + self._pool_player[levels]
        self.on_target[games] = self._pool_on_target[levels]
        self.steps[games] = 0

    @property
    def levels(self) -> int:
        """Number of levels in the pool."""
        return len(self._pool_player)

    @property
    def rooms(self) -> NDArray[np.uint8]:
        """Cell codes of all games, shape (N, height, width); a view, with the player always code 5."""
        return self._room.reshape(-1, self.height, self.width)

    def visible(self) -> NDArray[np.uint8]:
        """A copy of the cell codes in which a player on a target is code 6, shape (N, height, width)."""
        room = self._room.copy()
        room[self._player] += self._fixed[self._player] == TARGET
        return room.reshape(-1, self.height, self.width)

    def images(self, tile: int) -> NDArray[np.uint8]:
        """Pictures of all games, shape (N, height * tile, width * tile, 3)."""
        tiles = tile_atlas(tile)[self.visible()]
        return tiles.swapaxes(2, 3).reshape(-1, self.height * tile, self.width * tile, 3)

    def step(self, actions: NDArray[np.integer[Any]]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Steps all games.

        Args:
            actions: Codes 0 to 8, shape (N,).

        Returns:
            Rewards (float64) and solved flags, both of shape (N,).
        """
        room, fixed, player = self._room, self._fixed, self._player
        offset = self._offsets[actions]
        ahead = player + offset
        code = room[ahead]
        pushes = np.flatnonzero((code == BOX) | (code == BOX_ON_TARGET))
        gained = np.zeros_like(self.on_target)
        free = (code == FLOOR) | (code == TARGET)
        before = self.on_target
        if pushes.size:
            beyond = ahead[pushes] + offset[pushes]
            landing = room[beyond]
            possible = ((landing == FLOOR) | (landing == TARGET)) & (actions[pushes] <= 4)
            pushes, beyond = pushes[possible], beyond[possible]
            onto = fixed[beyond] == TARGET
            room[beyond] = BOX - onto
            change = onto.astype(np.int16) - (code[pushes] == BOX_ON_TARGET)
            self.on_target = before.copy()
            self.on_target[pushes] += change
            free[pushes] = True
            gained = self.on_target - before
        target = np.where(free, ahead, player)
        room[player] = fixed[player]
        room[target] = PLAYER
        self._player = target
        self.steps += 1
        solved = self.on_target == self._boxes
        return self._rewards[solved * 3 + np.sign(gained) % 3], solved


class SokobanVectorEnv(VectorEnv[NDArray[np.uint8], NDArray[np.int64], NDArray[Any]]):
    """A Gymnasium vector environment on the batch engine.

    Observations are cell codes of shape (N, height, width), or pictures if ``tile`` is given. Actions are the nine of
    gym-sokoban. Finished games start anew on a random level at the next step (``AutoresetMode.NEXT_STEP``).
    """

    def __init__(
        self, levels: Sequence[Level], num_envs: int, max_episode_steps: int = 120, tile: int | None = None
    ) -> None:
        """Makes the environment.

        Args:
            levels: Levels of one shape, for example a :class:`~seed_envs.vision.sokoban.pools.Pool`.
            num_envs: Number of games N.
            max_episode_steps: Steps after which a game is truncated.
            tile: Side of a tile in pixels for picture observations; None for cell codes.

        Raises:
            DataInvalid: If the levels differ in shape.
        """
        self.engine = BatchEngine(levels, num_envs)
        self.num_envs = num_envs
        self._limit, self._tile = max_episode_steps, tile
        height, width = self.engine.height, self.engine.width
        self.single_observation_space = (
            spaces.Box(0, 6, (height, width), np.uint8)
            if tile is None
            else spaces.Box(0, 255, (height * tile, width * tile, 3), np.uint8)
        )
        self.single_action_space = spaces.Discrete(9)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.metadata = {"autoreset_mode": _NEXT_STEP, "render_modes": []}
        self._done = np.zeros(num_envs, np.bool_)

    def _observe(self) -> NDArray[np.uint8]:
        return self.engine.visible() if self._tile is None else self.engine.images(self._tile)

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.uint8], dict[str, Any]]:
        """Starts every game on a random level of the pool.

        Args:
            seed: One seed for the whole batch; lists are refused, since one generator draws for all games.
            options: ``{"levels": array of N level indices}`` chooses them instead.

        Raises:
            UnknownOption: For another key, or for anything but N indices of levels.
        """
        if isinstance(seed, list):
            raise gym.error.Error("SokobanVectorEnv draws for all games from one generator; pass one int as seed")
        super().reset(seed=seed)
        if unknown := sorted(map(str, set(options or {}) - {"levels"})):
            raise UnknownOption(f"reset option {unknown[0]!r} is unknown; accepted: ['levels']")
        chosen = (options or {}).get("levels")
        levels = self._draw(self.num_envs) if chosen is None else self._numbers(chosen, self.engine.levels)
        self.engine.load(np.arange(self.num_envs), levels)
        self._done[:] = False
        return self._observe(), {"level": levels}

    def _draw(self, count: int) -> NDArray[np.int64]:
        return self.np_random.integers(self.engine.levels, size=count)

    def _numbers(self, values: Any, end: int) -> NDArray[np.integer[Any]]:
        """The values as N whole numbers from 0 up to ``end``, excluded."""
        numbers = np.asarray(values)
        if numbers.shape != (self.num_envs,) or numbers.dtype.kind not in "iu":
            raise UnknownOption(f"expected {self.num_envs} whole numbers, got {numbers.dtype} of shape {numbers.shape}")
        if numbers.min() < 0 or numbers.max() >= end:
            raise UnknownOption(f"expected numbers from 0 to {end - 1}, got {numbers.min()} to {numbers.max()}")
        return numbers

    def step(
        self, actions: NDArray[np.int64]
    ) -> tuple[NDArray[np.uint8], NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Steps every running game and starts the finished ones anew (their action is ignored, their reward is 0).

        Args:
            actions: Codes 0 to 8, shape (N,).

        Raises:
            gymnasium.error.InvalidAction: For anything else.
        """
        try:
            codes = self._numbers(actions, 9)
        except UnknownOption as error:
            raise gym.error.InvalidAction(f"actions: {error}") from error
        fresh = np.flatnonzero(self._done)
        reward, solved = self.engine.step(codes)
        if fresh.size:
            self.engine.load(fresh, self._draw(fresh.size))
            reward[fresh], solved[fresh] = 0.0, False
        truncated = (self.engine.steps >= self._limit) & ~solved
        self._done = solved | truncated
        return self._observe(), reward, solved, truncated, {"steps": self.engine.steps.copy()}
