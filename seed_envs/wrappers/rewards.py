"""Wrappers that change the reward and nothing else."""

from __future__ import annotations

from typing import Any

import gymnasium as gym


class InvalidActionPenalty(gym.Wrapper[Any, Any, Any, Any], gym.utils.RecordConstructorArgs):
    """Subtract a penalty for every action that was not valid.

    Args:
        env: Environment with ``info["action_valid"]``.
        penalty: Non-negative amount.
    """

    def __init__(self, env: gym.Env[Any, Any], penalty: float) -> None:
        gym.utils.RecordConstructorArgs.__init__(self, penalty=penalty)
        super().__init__(env)
        if penalty < 0:
            raise ValueError(f"penalty={penalty}; it is subtracted, so it must not be negative")
        self.penalty = penalty

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Step and subtract."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        return observation, float(reward) - (0.0 if info["action_valid"] else self.penalty), terminated, truncated, info


class RewardScale(gym.Wrapper[Any, Any, Any, Any], gym.utils.RecordConstructorArgs):
    """Multiply the reward.

    Args:
        env: Any environment.
        scale: The factor.
    """

    def __init__(self, env: gym.Env[Any, Any], scale: float) -> None:
        gym.utils.RecordConstructorArgs.__init__(self, scale=scale)
        super().__init__(env)
        self.scale = scale

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Step and scale."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        return observation, float(reward) * self.scale, terminated, truncated, info
