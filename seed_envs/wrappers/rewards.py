"""Wrappers that change the reward and nothing else."""

from __future__ import annotations

from typing import Any, Literal

import gymnasium as gym

from seed_envs.arguments import check_choice


class InvalidActionPenalty(gym.Wrapper[Any, Any, Any, Any], gym.utils.RecordConstructorArgs):
    """Subtract a penalty for every turn that was not valid.

    Args:
        env: Environment with ``info["format_valid"]`` and ``info["action_valid"]``.
        penalty: Non-negative amount.
        penalised: ``"format"``: replies that could not be read (verl-agent's penalty); ``"action"``: actions that the
            environment refused.
    """

    def __init__(
        self, env: gym.Env[Any, Any], penalty: float, penalised: Literal["format", "action"] = "format"
    ) -> None:
        gym.utils.RecordConstructorArgs.__init__(self, penalty=penalty, penalised=penalised)
        super().__init__(env)
        check_choice("penalised", penalised, ("format", "action"))
        if penalty < 0:
            raise ValueError(f"penalty={penalty}; it is subtracted, so it must not be negative")
        self.penalty, self._fact = penalty, f"{penalised}_valid"

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Step and subtract."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        return observation, float(reward) - (0.0 if info[self._fact] else self.penalty), terminated, truncated, info


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
