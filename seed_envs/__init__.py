"""Five environments for language agents behind one Gymnasium API.

Importing the package registers the ids; heavy parts are imported when an environment is made.

    import gymnasium as gym
    import seed_envs

    env = gym.make("seed/ALFWorld-v0")
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seed_envs.registration import EnvRow, register

if TYPE_CHECKING:
    from seed_envs.base import SeedEnv
    from seed_envs.policies import AsyncPolicy
    from seed_envs.profiles import Profile, TurnContext, get_profile
    from seed_envs.rollout import Reply, Request
    from seed_envs.spaces import UnicodeText
    from seed_envs.tasks import Manifest, TaskSpec
    from seed_envs.trajectory import Step, StopReason, Trajectory
    from seed_envs.vector import EnvPool
    from seed_envs.wrappers import make_agent_env

__version__ = "0.1.0"

_PUBLIC = {
    "AsyncPolicy": "policies",
    "SeedEnv": "base",
    "Profile": "profiles",
    "TurnContext": "profiles",
    "get_profile": "profiles",
    "Reply": "rollout",
    "Request": "rollout",
    "UnicodeText": "spaces",
    "Manifest": "tasks",
    "TaskSpec": "tasks",
    "Step": "trajectory",
    "StopReason": "trajectory",
    "Trajectory": "trajectory",
    "EnvPool": "vector",
    "make_agent_env": "wrappers",
}

__all__ = [
    "AsyncPolicy",
    "EnvPool",
    "EnvRow",
    "Manifest",
    "Profile",
    "Reply",
    "Request",
    "SeedEnv",
    "Step",
    "StopReason",
    "TaskSpec",
    "Trajectory",
    "TurnContext",
    "UnicodeText",
    "__version__",
    "get_profile",
    "make_agent_env",
    "register",
]


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        import importlib

        return getattr(importlib.import_module(f"seed_envs.{_PUBLIC[name]}"), name)
    raise AttributeError(f"module 'seed_envs' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
