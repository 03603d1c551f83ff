"""Blind play: the same agent, the same words, but no picture, or the picture of another task.

What an agent wins blind it wins without looking; only the difference to its score with pictures is perception.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np

from seed_envs.errors import UnknownOption
from seed_envs.profiles import Profile
from seed_envs.wrappers import make_agent_env

DRAWS = 100
"""Draws of a donor before a split counts as one of a single task."""


class Blind(gym.Wrapper[Any, Any, Any, Any]):
    """An agent environment whose pictures are taken away.

    Args:
        env: The agent environment.
        twin: A second one, in which another task is played along and whose pictures are shown; None shows black ones.
        donors: For a task the one whose pictures are shown; for any other one of its split is drawn by the task's name.
    """

    def __init__(
        self, env: gym.Env[Any, Any], twin: gym.Env[Any, Any] | None = None, donors: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(env)
        self._twin, self._donors = twin, donors or {}
        self._shown: Any = None
        self._twin_ended = False

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Reset, and the twin with its own task."""
        observation, info = self.env.reset(seed=seed, options=options)
        if self._twin is not None:
            self._shown = self._begin_twin(self._twin, info["task_id"], seed, options or {})
            self._twin_ended = False
        return self._blinded(observation, info)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Step both; a twin that has ended keeps its last picture."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        if self._twin is not None and not self._twin_ended:
            _, _, over, cut, seen = self._twin.step(action)
            self._shown, self._twin_ended = seen["turn"].image, over or cut
        observation, info = self._blinded(observation, info)
        return observation, reward, terminated, truncated, info

    def _begin_twin(self, twin: gym.Env[Any, Any], task_id: str, seed: int | None, options: Mapping[str, Any]) -> Any:
        """Reset the twin to the donor of a task; returns its picture."""
        if task_id in self._donors:
            return twin.reset(seed=seed, options={**options, "task_id": self._donors[task_id]})[1]["turn"].image
        rest = {key: value for key, value in options.items() if key != "task_id"}
        for number in range(DRAWS):
            digest = hashlib.sha256(f"{task_id}/{number}".encode()).digest()
            info = twin.reset(seed=int.from_bytes(digest[:4], "big"), options=rest)[1]
            if info["task_id"] != task_id:
                return info["turn"].image
        raise UnknownOption(f"blind play shows pictures of another task; {DRAWS} draws found none but {task_id!r}")

    def close(self) -> None:
        """Close both."""
        super().close()
        if self._twin is not None:
            self._twin.close()

    def _blinded(self, observation: Any, info: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        turn = info["turn"]
        if turn.image is None:
            raise UnknownOption("blind play takes pictures away, and this profile shows none; choose another profile")
        image = np.zeros_like(turn.image) if self._twin is None else self._shown
        if isinstance(observation, dict) and "image" in observation:
            observation = {**observation, "image": image}
        return observation, {**info, "turn": dataclasses.replace(turn, image=image)}


def make_blind_env(
    donors: Mapping[str, str] | None,
    env_id: str,
    profile: Profile,
    max_steps: int | None,
    env_kwargs: Mapping[str, Any] | None = None,
) -> gym.Env[Any, str]:
    """An agent environment without its pictures.

    Args:
        donors: For ``shuffle``: whose pictures tasks show, or an empty mapping that leaves all to a draw; None for
            ``blank``.
        env_id: As for ``make_agent_env``, likewise the rest.
        profile: How the agent is put before it.
        max_steps: Step limit.
        env_kwargs: Constructor arguments of the environment.
    """
    env = make_agent_env(env_id, profile, max_steps, env_kwargs)
    twin = None if donors is None else make_agent_env(env_id, profile, max_steps, env_kwargs)
    return Blind(env, twin, donors)
