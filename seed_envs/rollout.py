"""THE episode loop: a pool of environments and a policy, to finished trajectories.

Training, evaluation and play all run through :func:`rollout`. Each round collects one request per live episode, asks
the policy once for the whole batch, and steps the environments; a finished episode leaves the batch at once and its
slot takes the next task. The loop knows strings only: a policy that works on tokens attaches what it needs to its
replies.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from seed_envs.chat import Message, build_messages
from seed_envs.errors import PolicyError
from seed_envs.profiles import Profile, TurnContext
from seed_envs.slots import SlotResult, describe
from seed_envs.tasks import TaskSpec
from seed_envs.trajectory import EpisodeError, Step, StopReason, Trajectory
from seed_envs.vector import EnvPool


@dataclass(frozen=True)
class Request:
    """What a policy is asked for one live episode.

    Attributes:
        episode: Index of the episode in the task list.
        turn: 0-based turn.
        messages: The chat so far, ending with a user message.
        context: The current turn as data.
        task: The task specification.
        call: ``call("oracle_action")`` reaches into the environment. For privileged baselines only.
        skill: The skill that ``messages`` were built with, for policies that build them again (shorter history).
    """

    episode: int
    turn: int
    messages: list[Message]
    context: TurnContext
    task: TaskSpec
    call: Callable[[str], Any]
    skill: str = ""


@dataclass(frozen=True)
class Reply:
    """A policy's answer.

    Attributes:
        text: The reply, unparsed.
        meta: Whatever belongs to it (token ids, log-probs, token counts); kept in ``Step.meta``.
        error: Set when no reply could be had; ends this episode alone.
        stop_reason: Why, when there is an error.
    """

    text: str = ""
    meta: dict[str, Any] = field(default_factory=dict)
    error: EpisodeError | None = None
    stop_reason: StopReason = StopReason.POLICY_ERROR


class Policy(Protocol):
    """Messages to replies, for a whole batch at once."""

    def __call__(self, requests: Sequence[Request]) -> Sequence[Reply]:
        """One reply per request, in order."""


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
    policy: Policy,
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
        policy: Called with at most ``pool.size`` requests at a time.
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

    while True:
        _fill(pool, live, waiting, env_id, finish, skill_for)
        if not live:
            return [done[index] for index in sorted(done)]
        # In task order: which slot happened to be free must not decide the order in which a policy samples.
        slots = sorted(live, key=lambda slot: live[slot].index)
        requests = [_request(pool, slot, live[slot], profile) for slot in slots]
        started = time.perf_counter()
        replies = _ask(policy, requests)
        policy_seconds = (time.perf_counter() - started) / len(requests)
        pairs = dict(zip(slots, zip(requests, replies, strict=True), strict=True))
        results = _step(pool, live, pairs, finish)
        for slot, (result, env_seconds) in results.items():
            request, reply = pairs[slot]
            _record(live[slot], request, reply, result, {"policy": policy_seconds, "env": env_seconds})
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


def _ask(policy: Policy, requests: list[Request]) -> list[Reply]:
    try:
        replies = list(policy(requests))
    except Exception as error:
        raise PolicyError(f"the policy raised {type(error).__name__}: {error}") from error
    if len(replies) != len(requests):
        raise PolicyError(f"the policy returned {len(replies)} replies to {len(requests)} requests")
    for reply in replies:
        if not isinstance(reply, Reply):
            raise PolicyError(f"the policy returned {type(reply).__name__}; expected seed_envs.Reply")
        if not isinstance(reply.text, str):
            raise PolicyError(f"the policy returned a Reply whose text is {type(reply.text).__name__}; expected str")
    return replies


def _step(
    pool: EnvPool,
    live: dict[int, _Episode],
    pairs: Mapping[int, tuple[Request, Reply]],
    finish: Callable[[int], None],
) -> dict[int, tuple[SlotResult, float]]:
    """Step the slots whose policy answered; end the others."""
    texts: dict[int, str] = {}
    for slot, (_, reply) in pairs.items():
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


def failed_reply(error: BaseException, stop_reason: StopReason = StopReason.POLICY_ERROR) -> Reply:
    """A reply that reports an exception; ends its episode and no other."""
    return Reply(error=describe(error), stop_reason=stop_reason)
