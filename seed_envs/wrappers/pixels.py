"""Wrapper that leaves the picture of an observation and nothing else."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from seed_envs.errors import UnknownOption


class PixelObservation(gym.ObservationWrapper[NDArray[np.uint8], Any, Any], gym.utils.RecordConstructorArgs):
    """Observe the picture: uint8, height x width x 3.

    Args:
        env: Environment whose observations are dictionaries with an ``image``.

    Raises:
        UnknownOption: When it shows none.
    """

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        gym.utils.RecordConstructorArgs.__init__(self)
        super().__init__(env)
        space = env.observation_space
        if not isinstance(space, gym.spaces.Dict) or "image" not in space.spaces:
            raise UnknownOption(f"{env.unwrapped} shows no pictures; make it with obs_mode='image', if it has that")
        self.observation_space = space["image"]

    def observation(self, observation: Any) -> NDArray[np.uint8]:
        """The picture alone."""
        image: NDArray[np.uint8] = observation["image"]
        return image
