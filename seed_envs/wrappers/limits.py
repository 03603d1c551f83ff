"""Wrapper around Gymnasium's step limit."""

from __future__ import annotations

from typing import Any

import gymnasium as gym

from seed_envs.trajectory import StopReason


class LimitReason(gym.Wrapper[Any, Any, Any, Any], gym.utils.RecordConstructorArgs):
    """Names the step limit as the stop reason: ``TimeLimit`` truncates, but says nothing in the info.

    Args:
        env: Environment with a limit, or without one.
    """

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        gym.utils.RecordConstructorArgs.__init__(self)
        super().__init__(env)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Step; a truncation without a reason is the limit's."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        if truncated and not terminated and not info["stop_reason"]:
            info = {**info, "stop_reason": StopReason.MAX_STEPS.value}
        return observation, reward, terminated, truncated, info
