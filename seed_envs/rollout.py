"""THE episode loop: a pool of environments and a policy, to finished trajectories.

Training, evaluation and play all run through :func:`rollout`. Each round collects one request per live episode, asks
the policy once for the whole batch, and steps the environments; a finished episode leaves the batch at once and its
slot takes the next task. With an asynchronous policy a round is whoever has been answered. The loop knows strings only:
a policy that works on tokens attaches what it needs to its replies.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field

from seed_envs.chat import build_messages
from seed_envs.policies import Answered, Apart, AsyncPolicy, Policy, Reply, Request, Together, failed_reply
from seed_envs.profiles import Profile, TurnContext
from seed_envs.slots import SlotResult
from seed_envs.tasks import TaskSpec
from seed_envs.trajectory import EpisodeError, Step, StopReason, Trajectory
from seed_envs.vector import EnvPool

__all__ = ["AsyncPolicy", "Policy", "Reply", "Request", "failed_reply", "rollout"]


@dataclass
class _Episode:
    index: int
    task: TaskSpec
    trajectory: Trajectory
    turns: list[TurnContext] = field(default_factory=list)
    replies: list[str] = field(default_factory=list)
    skill: str = ""


def rollout(
    pool: EnvPool,
    policy: Policy | AsyncPolicy,
    tasks: Iterable[TaskSpec],
    *,
    env_id: str,
    profile: Profile,
    on_finish: Callable[[int, Trajectory], None] | None = None,
    skill_for: Callable[[Trajectory], str] | None = None,
    keep: bool = True,
) -> list[Trajectory]:
    """Play one episode per task.

    Args:
        pool: Agent environments (see ``make_agent_env``); fewer slots than tasks are filled again and again.
        policy: Called with at most ``pool.size`` requests at a time; one with a method ``submit`` is asked for every
            episode as soon as it is ready, and no episode waits for the reply to another.
        tasks: The tasks in order; equal ones make a group.
        env_id: Recorded in the trajectories.
        profile: Decides how messages are built.
        on_finish: Called with index and trajectory as soon as an episode ends.
        skill_for: Gives the skill for the template's slot, asked once per episode when only its task is known. None
            (the default) leaves the slot empty.
        keep: False drops every trajectory after ``on_finish``, for runs that do not fit in memory.

    Returns:
        The trajectories in task order; nothing when ``keep`` is False.

    Raises:
        PolicyError: When the policy raises or does not return one reply per request; episodes that were finished by
            then have gone through ``on_finish``.
    """
    waiting = enumerate(tasks)
    live: dict[int, _Episode] = {}
    done: dict[int, Trajectory] = {}

    def finish(slot: int) -> None:
        episode = live.pop(slot)
        if keep:
            done[episode.index] = episode.trajectory
        if on_finish is not None:
            on_finish(episode.index, episode.trajectory)

    ask = Apart(policy) if isinstance(policy, AsyncPolicy) else Together(policy)
    with closing(ask):
        while True:
            _fill(pool, live, waiting, env_id, finish, skill_for)
            if not live:
                return [done[index] for index in sorted(done)]
            # In task order: which slot happened to be free must not decide the order in which a policy samples.
            slots = sorted(live.keys() - ask.waiting, key=lambda slot: live[slot].index)
            answered = ask({slot: _request(pool, slot, live[slot], profile) for slot in slots})
            for slot, (result, seconds) in _step(pool, live, answered, finish).items():
                request, reply, policy_seconds = answered[slot]
                _record(live[slot], request, reply, result, {"policy": policy_seconds, "env": seconds})
                if result.error is not None or result.terminated or result.truncated:
                    finish(slot)


def _fill(
    pool: EnvPool,
    live: dict[int, _Episode],
    waiting: Iterator[tuple[int, TaskSpec]],
    env_id: str,
    finish: Callable[[int], None],
    skill_for: Callable[[Trajectory], str] | None,
) -> None:
    """Give every free slot the next task; a task that cannot start is finished at once."""
    while True:
        fresh: dict[int, TaskSpec] = {}
        for slot in range(pool.size):
            if slot in live:
                continue
            following = next(waiting, None)
            if following is None:
                break
            index, task = following
            trajectory = Trajectory(env_id, task.task_id or "", seed=task.seed, group=task.group)
            live[slot] = _Episode(index, task, trajectory)
            fresh[slot] = task
        failed = False
        for slot, result in pool.reset(fresh).items():
            episode = live[slot]
            if result.error is not None:
                episode.trajectory.error = result.error
                episode.trajectory.stop_reason = _fault(result.error)
                finish(slot)
                failed = True
            else:
                _begin(episode, result)
                if skill_for is not None:
                    episode.skill = skill_for(episode.trajectory)
        if not failed:
            return


def _begin(episode: _Episode, result: SlotResult) -> None:
    trajectory, turn = episode.trajectory, result.info["turn"]
    trajectory.task_id, trajectory.task_type = result.info["task_id"], result.info["task_type"]
    trajectory.goal, trajectory.final_observation = result.info["goal"], turn.observation
    trajectory.data = dict(result.info.get("data", {}))  # an environment of somebody else's may have none
    episode.turns.append(turn)


def _request(pool: EnvPool, slot: int, episode: _Episode, profile: Profile) -> Request:
    messages = build_messages(profile, episode.turns, episode.replies, episode.skill)
    turn = len(episode.turns) - 1
    return Request(
        episode.index,
        turn,
        messages,
        episode.turns[-1],
        episode.task,
        lambda method: pool.call(slot, method),
        episode.skill,
    )


def _step(
    pool: EnvPool,
    live: dict[int, _Episode],
    answered: Mapping[int, Answered],
    finish: Callable[[int], None],
) -> dict[int, tuple[SlotResult, float]]:
    """Step the slots whose policy answered; end the others."""
    texts: dict[int, str] = {}
    for slot, (_, reply, _) in answered.items():
        if reply.error is None:
            texts[slot] = reply.text
            continue
        live[slot].trajectory.error = reply.error
        live[slot].trajectory.stop_reason = reply.stop_reason
        finish(slot)
    started = time.perf_counter()
    results = pool.step(texts)
    seconds = (time.perf_counter() - started) / max(len(texts), 1)
    return {slot: (result, seconds) for slot, result in results.items()}


def _record(episode: _Episode, request: Request, reply: Reply, result: SlotResult, seconds: dict[str, float]) -> None:
    """Append the turn to the trajectory and read the outcome off the info."""
    trajectory, info = episode.trajectory, result.info
    step = Step(
        observation=request.context.observation,
        messages=request.messages,
        reply=reply.text,
        action=info.get("action", ""),
        format_valid=info.get("format_valid", False),
        action_valid=info.get("action_valid", False),
        invalid_reason=info.get("invalid_reason", ""),
        reward=result.reward,
        seconds=seconds,
        context=request.context,
        meta=reply.meta,
    )
    trajectory.steps.append(step)
    if result.error is not None:
        trajectory.error = result.error
        trajectory.stop_reason = _fault(result.error)
        return
    trajectory.total_reward += result.reward
    trajectory.success, trajectory.score = bool(info["success"]), float(info["score"])
    trajectory.final_observation = info["turn"].observation
    if result.terminated or result.truncated:
        derived = StopReason.MAX_STEPS if not result.terminated else StopReason.SUCCESS
        trajectory.stop_reason = StopReason(info["stop_reason"]) if info["stop_reason"] else derived
        # A copy, in which lazy lists are plain tuples: what is recorded does not depend on the pool's back end.
        trajectory.extras = copy.deepcopy({key: value for key, value in info.items() if isinstance(value, dict)})
    else:
        episode.turns.append(info["turn"])
        episode.replies.append(reply.text)


def _fault(error: EpisodeError) -> StopReason:
    return StopReason.TIMEOUT if error.type == "WorkerTimeout" else StopReason.ENV_ERROR
