"""Policies: what they are asked, what they answer, and the two ways of asking them.

A synchronous policy answers a whole batch at once; the slowest reply holds up all others. An asynchronous one gives a
future for every request, which keeps a server with many slots busy when replies differ in length.
"""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Mapping, Sequence, Set
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from seed_envs.chat import Message
from seed_envs.errors import PolicyError
from seed_envs.profiles import TurnContext
from seed_envs.slots import describe
from seed_envs.tasks import TaskSpec
from seed_envs.trajectory import EpisodeError, StopReason


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


@runtime_checkable
class AsyncPolicy(Protocol):
    """Messages to replies, each in its own time."""

    def submit(self, request: Request) -> Future[Reply]:
        """A future of the reply. Its exception ends the whole rollout; :func:`failed_reply` ends one episode."""


Answered = tuple[Request, Reply, float]
"""What was asked, what was answered, and the seconds that it took."""


class Together:
    """Asks for everybody at once and waits for all replies.

    Args:
        policy: Who is asked.
    """

    waiting: Set[int] = frozenset()

    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    def __call__(self, requests: Mapping[int, Request]) -> dict[int, Answered]:
        """The answers to all requests, by slot.

        Raises:
            PolicyError: When the policy raises or does not return one reply per request.
        """
        started = time.perf_counter()
        try:
            replies = list(self._policy(list(requests.values())))
        except Exception as error:
            raise PolicyError(f"the policy raised {type(error).__name__}: {error}") from error
        if len(replies) != len(requests):
            raise PolicyError(f"the policy returned {len(replies)} replies to {len(requests)} requests")
        seconds = (time.perf_counter() - started) / len(requests)
        return {slot: (requests[slot], _checked(reply), seconds) for slot, reply in zip(requests, replies, strict=True)}

    def close(self) -> None:
        """Nothing is left to wait for."""


class Apart:
    """Asks for everybody separately and waits for the first reply.

    Args:
        policy: Who is asked.
    """

    def __init__(self, policy: AsyncPolicy) -> None:
        self._policy = policy
        self._pending: dict[int, tuple[Request, Future[Reply], float]] = {}
        self._arrived: queue.SimpleQueue[tuple[int, float]] = queue.SimpleQueue()

    @property
    def waiting(self) -> Set[int]:
        """The slots whose reply is not there yet."""
        return self._pending.keys()

    def __call__(self, requests: Mapping[int, Request]) -> dict[int, Answered]:
        """At least one answer to these requests or earlier ones, by slot, and whatever else is there by then.

        Raises:
            PolicyError: When the policy raises or does not give a reply.
        """
        for slot, request in requests.items():
            started = time.perf_counter()
            try:
                future = self._policy.submit(request)
            except Exception as error:
                raise PolicyError(f"the policy raised {type(error).__name__}: {error}") from error
            self._pending[slot] = request, future, started
            future.add_done_callback(self._note(slot))
        arrived = [self._arrived.get()]
        while not self._arrived.empty():
            arrived.append(self._arrived.get())
        return {slot: self._take(slot, moment) for slot, moment in arrived}

    def close(self) -> None:
        """Cancel what is waited for."""
        for _, future, _ in self._pending.values():
            future.cancel()

    def _note(self, slot: int) -> Callable[[Future[Reply]], None]:
        return lambda future: self._arrived.put((slot, time.perf_counter()))

    def _take(self, slot: int, moment: float) -> Answered:
        request, future, started = self._pending.pop(slot)
        try:
            reply = future.result()
        except Exception as error:
            raise PolicyError(f"the policy raised {type(error).__name__}: {error}") from error
        return request, _checked(reply), moment - started


def _checked(reply: Reply) -> Reply:
    if not isinstance(reply, Reply):
        raise PolicyError(f"the policy returned {type(reply).__name__}; expected seed_envs.Reply")
    if not isinstance(reply.text, str):
        raise PolicyError(f"the policy returned a Reply whose text is {type(reply.text).__name__}; expected str")
    return reply


def failed_reply(error: BaseException, stop_reason: StopReason = StopReason.POLICY_ERROR) -> Reply:
    """A reply that reports an exception; ends its episode and no other."""
    return Reply(error=describe(error), stop_reason=stop_reason)
