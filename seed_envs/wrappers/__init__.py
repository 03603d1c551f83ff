"""The agent stack, one wrapper per concern, in one fixed order.

``raw env -> TimeLimit -> LimitReason -> ParseAction -> InvalidActionPenalty -> RewardScale -> HistoryWindow -> Prompt``

Beside it, for agents that are no language models: ``DiscreteActions`` and ``PixelObservation``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium as gym

from seed_envs.errors import UnknownOption
from seed_envs.profiles import Profile, get_profile
from seed_envs.registration import make
from seed_envs.wrappers.actions import ParseAction
from seed_envs.wrappers.discrete import DiscreteActions
from seed_envs.wrappers.history import HistoryWindow
from seed_envs.wrappers.pixels import PixelObservation
from seed_envs.wrappers.prompts import Prompt
from seed_envs.wrappers.rewards import InvalidActionPenalty, RewardScale

__all__ = [
    "DiscreteActions",
    "HistoryWindow",
    "InvalidActionPenalty",
    "ParseAction",
    "PixelObservation",
    "Prompt",
    "RewardScale",
    "make_agent_env",
]


def make_agent_env(
    env_id: str,
    profile: str | Profile = "paper",
    max_steps: int | None = None,
    env_kwargs: Mapping[str, Any] | None = None,
    **kwargs: Any,
) -> gym.Env[Any, str]:
    """Build an environment for a language model: prompts out, replies in.

    Args:
        env_id: A registered id.
        profile: Name of a profile of that environment, or a profile of your own.
        max_steps: Step limit; overrides the profile's.
        env_kwargs: Constructor arguments of the environment, whatever their names; they override the profile's.
        **kwargs: More of them, where no name of this function's is among them (Sokoban's levels have a ``max_steps``).

    Returns:
        The wrapped environment. ``env.get_wrapper_attr("profile")`` is the profile.

    Raises:
        UnknownEnvironment, UnknownProfile, UnknownOption: With close matches.
        TypeError, ValueError: For a profile or a step limit that is none.
    """
    chosen = get_profile(env_id, profile) if isinstance(profile, str) else Profile.of(profile)
    limit = chosen.max_steps if max_steps is None else max_steps
    if limit is not None and (type(limit) is not int or limit < 1):
        raise UnknownOption(f"max_steps={limit!r}; expected a whole number of at least 1")
    arguments = {**chosen.env_kwargs, **kwargs, **(env_kwargs or {})}
    if "max_episode_steps" in arguments:
        raise UnknownOption("max_episode_steps is no argument of the environment; the step limit here is max_steps")
    env: gym.Env[Any, Any] = make(env_id, max_episode_steps=limit, **arguments)
    if limit is None and env.spec is not None:
        limit = env.spec.max_episode_steps
    env = ParseAction(env, chosen.action_format)
    if chosen.invalid_penalty:
        env = InvalidActionPenalty(env, chosen.invalid_penalty, chosen.penalised)
    if chosen.reward_scale != 1.0:
        env = RewardScale(env, chosen.reward_scale)
    env = HistoryWindow(env, chosen.history)
    return Prompt(env, chosen, limit)
