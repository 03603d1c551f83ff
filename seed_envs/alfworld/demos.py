"""Demonstrations for supervised fine-tuning: listed tasks played by an expert, as trajectories.

Experts are the full-knowledge oracle and the explorer without privileges.
Episodes run through the package's one loop, so their prompts are exactly those
of training and evaluation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final, Literal

from seed_envs.errors import DataInvalid
from seed_envs.profiles import Profile, get_profile
from seed_envs.rollout import Policy, Reply, Request, rollout
from seed_envs.tasks import TaskSpec
from seed_envs.trajectory import Trajectory
from seed_envs.vector import EnvPool
from seed_envs.wrappers import make_agent_env

ENV_ID: Final = "seed/ALFWorld-v0"
THOUGHTS: Final[dict[str, str]] = {
    "go": "The next thing needed is elsewhere, so go there.",
    "open": "It is closed; look inside.",
    "take": "This is the object the task asks for.",
    "move": "This is where the object has to be.",
    "put": "This is where the object has to be.",
    "use": "The light has to be on.",
    "clean": "The object has to be clean first.",
    "heat": "The object has to be hot first.",
    "cool": "The object has to be cool first.",
}
"""First word of a command -> the thought written before it in formats that ask for one."""


def expert_policy(profile: Profile, expert: Literal["oracle", "explorer"]) -> Policy:
    """A policy that answers with an expert's command in the profile's format.

    Args:
        profile: how replies look.
        expert: which expert.

    Returns:
        A policy for ``seed_envs.rollout``.
    """
    method = "oracle_action" if expert == "oracle" else "rule_action"

    def policy(requests: Sequence[Request]) -> list[Reply]:
        commands = [str(request.call(method)) for request in requests]
        return [
            Reply(profile.action_format.format(command, THOUGHTS.get(command.split(" ")[0], "See what is here.")))
            for command in commands
        ]

    return policy


def demonstrations(
    task_ids: Iterable[str],
    *,
    expert: Literal["oracle", "explorer"] = "explorer",
    profile: str = "paper",
    won_only: bool = True,
    on_finish: Callable[[Trajectory], None] | None = None,
    keep: bool = True,
    **env_kwargs: Any,
) -> list[Trajectory]:
    """Play tasks with an expert.

    Args:
        task_ids: the tasks.
        expert: ``oracle`` (shortest plans, sees everything) or ``explorer`` (searches, sees what an agent sees).
        profile: name of the prompt profile.
        won_only: leave lost episodes out.
        on_finish: called with every trajectory that is not left out, as soon as its episode ends.
        keep: False returns nothing, for lists that do not fit in memory.
        **env_kwargs: further arguments of the environment, such as ``data_dir``.

    Returns:
        The trajectories in task order.

    Raises:
        DataInvalid: when a task cannot be played (a missing or damaged game); names how many and the first.
    """
    chosen = get_profile(ENV_ID, profile)
    kept: list[Trajectory] = []
    faults: list[Trajectory] = []

    def finish(index: int, trajectory: Trajectory) -> None:
        if trajectory.error is not None:
            faults.append(trajectory)
        elif trajectory.success or not won_only:
            if on_finish is not None:
                on_finish(trajectory)
            if keep:
                kept.append(trajectory)

    with EnvPool(partial(make_agent_env, ENV_ID, chosen, **env_kwargs), 1) as pool:
        tasks = [TaskSpec(task_id=task_id, group=number) for number, task_id in enumerate(task_ids)]
        policy = expert_policy(chosen, expert)
        rollout(pool, policy, tasks, env_id=ENV_ID, profile=chosen, on_finish=finish, keep=False)
    for fault in faults[:1]:
        reason = "" if fault.error is None else fault.error.message
        raise DataInvalid(f"{len(faults)} of {len(tasks)} tasks cannot be played; {fault.task_id!r}: {reason}")
    return kept
