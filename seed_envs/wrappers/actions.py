"""Wrapper that turns a model's reply into an action."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium as gym

from seed_envs.errors import EpisodeEnded
from seed_envs.profiles import ActionFormat
from seed_envs.spaces import UnicodeText


class ParseAction(gym.Wrapper[Any, str, Any, str], gym.utils.RecordConstructorArgs):
    """Read the action out of a reply.

    Adds ``info["action"]``: what was sent to the environment (``""`` after reset). A reply that cannot be read is
    never an exception: whatever the format's fallback says is sent, and ``info["format_valid"]`` is False. Whether the
    environment accepted what was sent is another fact, ``info["action_valid"]``.

    Args:
        env: Environment whose actions are strings.
        action_format: How to read; as a dictionary when the stack is made again from its spec.
    """

    def __init__(self, env: gym.Env[Any, str], action_format: ActionFormat | Mapping[str, Any]) -> None:
        gym.utils.RecordConstructorArgs.__init__(self, action_format=action_format)
        super().__init__(env)
        self.action_format = action_format if isinstance(action_format, ActionFormat) else ActionFormat(**action_format)
        self.action_space = UnicodeText()
        self._ended = True

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Reset the environment; see the class for the added key."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._ended = False
        return observation, {**info, "action": ""}

    def step(self, action: str) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Parse the reply ``action`` and step.

        Raises:
            gymnasium.error.InvalidAction: When the reply is not a string (a bug of the caller, not of the model).
            EpisodeEnded: After the end, also after a truncation by the step limit.
        """
        if not isinstance(action, str):
            raise gym.error.InvalidAction(f"a reply is a str; got {type(action).__name__}: {action!r}")
        if self._ended:
            raise EpisodeEnded("this episode is over (or none was started); call reset() first")
        parsed = self.action_format.parse(action)
        observation, reward, terminated, truncated, info = self.env.step(parsed.action)
        self._ended = terminated or truncated
        info = {**info, "action": parsed.action}
        if not parsed.valid:
            info["format_valid"], info["invalid_reason"] = False, parsed.reason
        return observation, float(reward), terminated, truncated, info
