"""Real episodes for tests: an environment played through the episode loop by a fixed action or by its oracle."""

from __future__ import annotations

from functools import partial

import seed_envs
from seed_envs.profiles import get_profile
from seed_envs.rollout import Reply, rollout
from seed_envs.tasks import TaskSpec
from seed_envs.trajectory import Trajectory
from seed_envs.vector import EnvPool


def played(env_id: str, profile_name: str, *actions: str | None, seed: int = 0) -> list[Trajectory]:
    """One episode of the same task per entry: an action that is repeated, or None for the oracle."""
    profile = get_profile(env_id, profile_name)
    with EnvPool(partial(seed_envs.make_agent_env, env_id, profile), len(actions)) as pool:
        return rollout(
            pool,
            lambda requests: [
                Reply(profile.action_format.format(actions[request.episode] or request.call("oracle_action")))
                for request in requests
            ],
            [TaskSpec(seed=seed) for _ in actions],
            env_id=env_id,
            profile=profile,
        )
