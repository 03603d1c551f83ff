"""Wrapper that remembers what was seen and done."""

from __future__ import annotations

from typing import Any

import gymnasium as gym

from seed_envs.chat import split_observation


class HistoryWindow(gym.Wrapper[Any, Any, Any, Any], gym.utils.RecordConstructorArgs):
    """Keep the last observation-action pairs in ``info["history"]``.

    Args:
        env: Environment with ``info["action"]`` (see ``ParseAction``).
        pairs: How many pairs to keep; None keeps all, 0 none.
    """

    def __init__(self, env: gym.Env[Any, Any], pairs: int | None) -> None:
        gym.utils.RecordConstructorArgs.__init__(self, pairs=pairs)
        super().__init__(env)
        if pairs is not None and pairs < 0:
            raise ValueError(f"pairs={pairs}; expected None (all) or a number >= 0")
        self.pairs = pairs
        self._history: tuple[tuple[str, str], ...] = ()
        self._observation = ""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Reset and forget."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._history, self._observation = (), split_observation(observation)[0]
        return observation, {**info, "history": ()}

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Step and remember the pair (observation before, action sent)."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        if self.pairs != 0:
            history = (*self._history, (self._observation, info["action"]))
            self._history = history if self.pairs is None else history[-self.pairs :]
        self._observation = split_observation(observation)[0]
        return observation, reward, terminated, truncated, {**info, "history": self._history}
