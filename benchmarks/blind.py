"""Blind runs of the harness: who is shown no picture, and whose pictures others are shown.

Under ``blank`` every picture is black, under ``shuffle`` it is that of another task of the suite in which the same
replies were given, so that it looks like any other and tells nothing. The wrapper is the one of
:mod:`seed_envs.wrappers.blind`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from seed_envs.profiles import Profile
from seed_envs.wrappers import make_agent_env
from seed_envs.wrappers.blind import Blind, make_blind_env

from .errors import ConfigInvalid

__all__ = ["MODES", "Blind", "check_pictures", "donors_of", "make_blind_env"]

MODES = ("blank", "shuffle")


def donors_of(task_ids: Sequence[str], seed: int) -> dict[str, str]:
    """For every task another one: the tasks in a random order, each followed by the next.

    Args:
        task_ids: All tasks of the suite; which of them are played changes nothing.
        seed: The run's.

    Raises:
        ConfigInvalid: When there is no other task.
    """
    if len(task_ids) < 2:
        raise ConfigInvalid(f"--blind shuffle shows pictures of another task; the suite has {len(task_ids)}")
    order = np.random.default_rng(np.random.SeedSequence([seed, _DOMAIN])).permutation(len(task_ids))
    return {task_ids[a]: task_ids[b] for a, b in zip(order, np.roll(order, -1), strict=True)}


_DOMAIN = 0xB1_1D
"""Keeps the order of the donors apart from other draws of the run's seed."""


def check_pictures(env_id: str, profile: Profile, task_id: str, env_kwargs: Mapping[str, Any]) -> None:
    """Refuse to blind an agent that is shown no picture.

    Raises:
        ConfigInvalid: When the first turn of the task has no image.
    """
    env = make_agent_env(env_id, profile, env_kwargs=env_kwargs)
    try:
        image = env.reset(seed=0, options={"task_id": task_id})[1]["turn"].image
    finally:
        env.close()
    if image is None:
        raise ConfigInvalid(f"--blind: profile {profile.name!r} of {env_id} shows no picture that could be taken away")
