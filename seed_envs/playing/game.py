"""One episode that a person plays: act, take back, ask for a hint. Knows neither terminal nor page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
from gymnasium.wrappers import TimeLimit

from seed_envs.base import SeedEnv
from seed_envs.errors import SeedEnvsError
from seed_envs.registration import make


@dataclass(frozen=True)
class Moment:
    """Where an episode stands.

    Attributes:
        observation: What the environment shows.
        info: The info dictionary that came with it.
        total: Sum of the rewards up to here.
        ended: Whether the episode is over.
        action: What led here, ``""`` at the beginning.
        reward: What that action earned.
        state: What restores the environment, None where it cannot be restored.
        steps: Steps that each step limit around the environment has counted.
    """

    observation: Any
    info: Mapping[str, Any]
    total: float = 0.0
    ended: bool = False
    action: str = ""
    reward: float = 0.0
    state: Any = None
    steps: tuple[int, ...] = ()


class Game:
    """An episode with its past.

    Args:
        env_id: The environment.
        seed: Given to ``reset``.
        options: Options of ``reset``; None stands for a key that is left out.
        env_kwargs: Arguments of the environment.
        check_services: Whether what the environment talks to is asked first.

    Attributes:
        moments: All moments from the beginning to now; never empty.

    Raises:
        SeedEnvsError: For a wrong id, task, option or argument.
    """

    def __init__(
        self,
        env_id: str,
        seed: int | None = None,
        options: Mapping[str, Any] | None = None,
        env_kwargs: Mapping[str, Any] | None = None,
        check_services: bool = True,
    ) -> None:
        self.env_id, self.env = env_id, make(env_id, **dict(env_kwargs or {}))
        try:
            if check_services and isinstance(self.env.unwrapped, SeedEnv):
                self.env.unwrapped.check_services()
            chosen = {key: value for key, value in (options or {}).items() if value not in (None, "")}
            observation, info = self.env.reset(seed=seed, options=chosen)
        except BaseException:
            self.env.close()
            raise
        self.moments = [self._moment(observation, info)]

    @property
    def now(self) -> Moment:
        """The last moment."""
        return self.moments[-1]

    def act(self, action: str) -> Moment:
        """Play one action.

        Raises:
            EpisodeEnded: After the end.
        """
        observation, reward, terminated, truncated, info = self.env.step(action)
        total, ended = self.now.total + float(reward), terminated or truncated
        self.moments.append(self._moment(observation, info, total, ended, action, float(reward)))
        return self.now

    def undo(self) -> str:
        """Take the last action back, the end of the episode included.

        Returns:
            Why that is impossible, or ``""``.
        """
        if len(self.moments) == 1:
            return "nothing to take back"
        before = self.moments[-2]
        if before.state is None or not isinstance(self.env.unwrapped, SeedEnv):
            return f"{self.env_id} cannot restore a state"
        self.env.unwrapped.set_state(before.state)
        for layer, steps in zip(self._limits(), before.steps, strict=True):
            layer._elapsed_steps = steps  # type: ignore[assignment]  # declared as None
        self.moments.pop()
        return ""

    def hint(self) -> tuple[str, str]:
        """The oracle's next action, and why there is none; one of both is ``""``."""
        oracle = getattr(self.env.unwrapped, "oracle_action", None)
        if oracle is None:
            return "", f"{self.env_id} has no oracle"
        if self.now.ended:
            return "", "the episode is over"
        try:
            return str(oracle()), ""
        except SeedEnvsError as error:
            return "", str(error)

    def close(self) -> None:
        """Close the environment; calling it twice is fine."""
        self.env.close()

    def _limits(self) -> Iterator[TimeLimit[Any, Any]]:
        layer = self.env
        while isinstance(layer, gym.Wrapper):
            if isinstance(layer, TimeLimit):
                yield layer
            layer = layer.env

    def _moment(
        self,
        observation: Any,
        info: Mapping[str, Any],
        total: float = 0.0,
        ended: bool = False,
        action: str = "",
        reward: float = 0.0,
    ) -> Moment:
        env = self.env.unwrapped
        try:
            state = env.get_state() if isinstance(env, SeedEnv) else None
        except (NotImplementedError, SeedEnvsError):  # an environment of somebody else's, or one with a foreign engine
            state = None
        steps = tuple(layer._elapsed_steps or 0 for layer in self._limits())
        return Moment(observation, info, total, ended, action, reward, state, steps)
