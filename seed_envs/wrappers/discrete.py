"""Wrapper that numbers the actions, for agents that choose among a fixed few."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from seed_envs.errors import UnknownOption


class DiscreteActions(gym.Wrapper[Any, Any, Any, Any], gym.utils.RecordConstructorArgs):
    """Take the number of an action instead of its text.

    An action that does not fit the state is refused by the environment as its text would be. Libraries that mask
    actions find :meth:`action_masks`.

    Args:
        env: Environment whose actions are strings.
        actions: The texts, in order; None takes the environment's ``fixed_actions``.

    Raises:
        UnknownOption: When none are given and the environment has no fixed list.
    """

    def __init__(self, env: gym.Env[Any, Any], actions: Sequence[str] | None = None) -> None:
        gym.utils.RecordConstructorArgs.__init__(self, actions=actions)
        super().__init__(env)
        chosen = env.get_wrapper_attr("fixed_actions") if actions is None else actions
        if not chosen or isinstance(chosen, str) or not all(isinstance(action, str) for action in chosen):
            raise UnknownOption(
                f"actions={actions!r}: {env.unwrapped} has no fixed list of actions; give one, such as "
                "DiscreteActions(env, ['look', 'inventory'])"
            )
        self.actions = tuple(chosen)
        self.action_space = gym.spaces.Discrete(len(self.actions))
        self._admissible: Sequence[str] | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Reset the environment."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._admissible = info["admissible_actions"]
        return observation, info

    def step(self, action: int) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Send the text of a number.

        Raises:
            gymnasium.error.InvalidAction: For a number that the action space does not have.
        """
        if not self.action_space.contains(action):
            raise gym.error.InvalidAction(f"an action is a number from 0 to {len(self.actions) - 1}; got {action!r}")
        observation, reward, terminated, truncated, info = self.env.step(self.actions[int(action)])
        self._admissible = info["admissible_actions"]
        return observation, reward, terminated, truncated, info

    def action_masks(self) -> NDArray[np.bool_]:
        """Which actions (A,) the environment lists now; all of them where it has no list."""
        if self._admissible is None:
            return np.ones(len(self.actions), bool)
        listed = set(self._admissible)
        return np.array([action in listed for action in self.actions])
