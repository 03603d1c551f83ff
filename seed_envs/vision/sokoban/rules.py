"""The Sokoban game itself: dynamics, reward and the reading of action words. No levels, text or pictures.

The dynamics and the reward are those of gym-sokoban (github.com/mpSchrader/gym-sokoban), with the thin layer that
RAGEN and verl-agent put around it under ``rules="classic"``.
"""

from __future__ import annotations

from typing import NamedTuple

from seed_envs.vision.sokoban.levels import BOX, BOX_ON_TARGET, FLOOR, PLAYER, TARGET, Level

STEP_REWARD, ON_TARGET_REWARD, OFF_TARGET_REWARD, SOLVED_REWARD = -0.1, 1.0, -1.0, 10.0
RULES = ("classic", "strict")

PUSH_ACTIONS = {"up": 1, "down": 2, "left": 3, "right": 4}
ACTION_SETS: dict[str, dict[str, int]] = {
    "4": PUSH_ACTIONS,
    "5": {**PUSH_ACTIONS, "still": 0},
    "9": {
        "no operation": 0,
        **{f"push {word}": code for word, code in PUSH_ACTIONS.items()},
        **{f"move {word}": code + 4 for word, code in PUSH_ACTIONS.items()},
    },
}
"""Action words and the codes of gym-sokoban. In sets "4" and "5" every direction pushes when a box is in the way."""


class State(NamedTuple):
    """A position that can be stored and restored."""

    room: bytes
    player: int
    on_target: int
    rewarded_on_target: int
    steps: int
    pushes: int


class Game:
    """One running game on a byte array.

    Attributes:
        level: The level being played.
        room: Cell codes; the player is always code 5, whatever lies under it.
        player: Cell of the player.
        boxes: Cells of the boxes as an integer bit set.
        on_target: Number of boxes on targets.
        steps: Steps counted by the rules (under ``classic`` action 0 does not count).
        pushes: Pushes made.
        moved_player: Whether the last step moved the player.
        moved_box: Cell from which the last step pushed a box, or -1.
    """

    __slots__ = (
        "_fixed", "_offsets", "_rewarded", "_strict", "_total",
        "boxes", "level", "moved_box", "moved_player", "on_target", "player", "pushes", "room", "steps",
    )  # fmt: skip

    def __init__(self, level: Level, rules: str = "classic") -> None:
        """Starts the level.

        Args:
            level: A validated level.
            rules: ``"classic"`` or ``"strict"``. They differ in the reward of the first step of a level that starts
                with boxes on targets, and in whether action 0 counts as a step.
        """
        width = level.width
        self.level = level
        self._fixed = level.fixed
        self._strict = rules == "strict"
        self._offsets = (0, -width, width, -1, 1, -width, width, -1, 1)
        self._total = len(level.boxes)
        self.room = level.room()
        self.player = level.player
        self.boxes = sum(1 << cell for cell in level.boxes)
        self.on_target = self.room.count(BOX_ON_TARGET)
        self._rewarded = self.on_target if self._strict else 0
        self.steps = 0
        self.pushes = 0
        self.moved_player = False
        self.moved_box = -1

    @property
    def solved(self) -> bool:
        """Whether all boxes stand on targets."""
        return self.on_target == self._total

    def step(self, action: int) -> float:
        """Executes one action.

        Args:
            action: 0 nothing; 1-4 push up, down, left, right; 5-8 move up, down, left, right.

        Returns:
            The reward: -0.1; +1 or -1 if more or fewer boxes stand on targets than after the last step; +10 when
            every box does.
        """
        self.moved_player = False
        self.moved_box = -1
        if action == 0 and not self._strict:
            return STEP_REWARD
        self.steps += 1
        if action:
            self._walk(action)
        reward = STEP_REWARD
        if self.on_target != self._rewarded:
            reward += ON_TARGET_REWARD if self.on_target > self._rewarded else OFF_TARGET_REWARD
            self._rewarded = self.on_target
        if self.on_target == self._total:
            reward += SOLVED_REWARD
        return reward

    def _walk(self, action: int) -> None:
        """Moves the player one cell, pushing a box out of the way if the action may push."""
        room, fixed, player = self.room, self._fixed, self.player
        offset = self._offsets[action]
        ahead = player + offset
        code = room[ahead]
        if BOX_ON_TARGET <= code <= BOX:
            beyond = ahead + offset
            if action > 4 or not FLOOR <= room[beyond] <= TARGET:
                return
            if fixed[beyond] == TARGET:
                room[beyond] = BOX_ON_TARGET
                self.on_target += 1
            else:
                room[beyond] = BOX
            if code == BOX_ON_TARGET:
                self.on_target -= 1
            self.boxes ^= (1 << ahead) | (1 << beyond)
            self.moved_box = ahead
            self.pushes += 1
        elif code != FLOOR and code != TARGET:
            return
        room[player] = fixed[player]
        room[ahead] = PLAYER
        self.player = ahead
        self.moved_player = True

    def get_state(self) -> State:
        """Returns a snapshot."""
        return State(bytes(self.room), self.player, self.on_target, self._rewarded, self.steps, self.pushes)

    def set_state(self, state: State) -> None:
        """Restores a snapshot of the same level."""
        self.room = bytearray(state.room)
        self.boxes = sum(1 << cell for cell, code in enumerate(state.room) if BOX_ON_TARGET <= code <= BOX)
        self.player, self.on_target, self._rewarded = state.player, state.on_target, state.rewarded_on_target
        self.steps, self.pushes = state.steps, state.pushes
        self.moved_player = False
        self.moved_box = -1
