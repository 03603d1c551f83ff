"""The preflight of ``seed-bench run``: ``seed_envs.preflight`` for a prepared run and its agent."""

from __future__ import annotations

import functools
import sys

from seed_envs.preflight import Contestant, Say, preflight
from seed_envs.tasks import TaskSpec
from seed_envs.wrappers import make_agent_env

from .agents.base import Agent
from .setup_run import Prepared


def tell(text: str) -> None:
    """Say something on standard error."""
    print(f"preflight: {text}", file=sys.stderr, flush=True)


def check_run(prepared: Prepared, agent: Agent, say: Say) -> None:
    """Look whether the agent can play the first planned task.

    An agent without ``contestant`` (a scripted player, a function of the user's) is asked nothing: calling it once more
    than planned could change what it plays.

    Raises:
        PreflightFailed: Naming what is wrong and what helps.
        DataMissing, DependencyMissing: When the task lacks data or a package.
    """
    config, first = prepared.config, prepared.plan[0]
    profile = config.suite.find_profile(config.profile)
    make_env = functools.partial(
        make_agent_env, config.suite.env_id, profile, config.max_steps, config.suite.arguments(config.env_kwargs)
    )
    known = getattr(agent, "contestant", None)
    contestant = Contestant(config.agent.spec) if known is None else known(say)
    task = TaskSpec(task_id=first.task_id, seed=first.seed, group=first.repeat)
    preflight(make_env, profile, task, contestant, profiles=config.suite.profile_table(), say=say)
