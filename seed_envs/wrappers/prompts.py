"""Wrapper that renders the prompt, outermost of the agent stack."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium as gym

from seed_envs.chat import split_observation
from seed_envs.profiles import Profile, TurnContext


class Prompt(gym.Wrapper[Any, Any, Any, Any], gym.utils.RecordConstructorArgs):
    """Observe the rendered prompt instead of the bare observation.

    Adds ``info["turn"]``, the :class:`~seed_envs.profiles.TurnContext` behind the prompt, so that a trainer can render
    the same turn again with a hindsight skill in its slot. Image observations keep their image.

    Args:
        env: Environment with ``info["history"]`` (see ``HistoryWindow``).
        profile: Template and numbers; as a dictionary when the stack is made again from its spec.
        max_steps: Step limit shown by templates that mention it.
    """

    def __init__(
        self, env: gym.Env[Any, Any], profile: Profile | Mapping[str, Any], max_steps: int | None = None
    ) -> None:
        gym.utils.RecordConstructorArgs.__init__(self, profile=profile, max_steps=max_steps)
        super().__init__(env)
        self.profile = Profile.of(profile)
        self.max_steps = max_steps
        self._steps = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Reset and render the first prompt."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._steps = 0
        return self._render(observation, info)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Step and render the next prompt."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._steps += 1
        prompt, info = self._render(observation, info)
        return prompt, reward, terminated, truncated, info

    def _render(self, observation: Any, info: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        text, image = split_observation(observation)
        turn = TurnContext(
            goal=info["goal"],
            observation=text,
            history=info["history"],
            step=self._steps,
            admissible=info["admissible_actions"],
            max_steps=self.max_steps,
            image=image,
        )
        prompt: Any = self.profile.template.render(turn)
        if isinstance(observation, dict):
            prompt = {**observation, "text": prompt}
        return prompt, {**info, "turn": turn}
