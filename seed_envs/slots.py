"""One environment of a pool, wherever it lives: what it is asked, what it answers, and how a fault becomes data."""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import gymnasium as gym

from seed_envs.errors import InvalidStep
from seed_envs.trajectory import EpisodeError, StopReason

MakeEnv = Callable[[], gym.Env[Any, str]]


class SlotResult(NamedTuple):
    """What one slot gave back; with an ``error`` the other fields are empty."""

    observation: Any = None
    reward: float = 0.0
    terminated: bool = False
    truncated: bool = False
    info: dict[str, Any] = {}
    error: EpisodeError | None = None


class Slot(Protocol):
    """One environment, wherever it lives."""

    def send(self, method: str, argument: Any) -> Any:
        """Run ``reset`` (argument: TaskSpec), ``step`` (argument: reply) or ``call`` (argument: method name)."""

    def close(self) -> None:
        """Release the environment."""


def serve(env: gym.Env[Any, str], method: str, argument: Any) -> Any:
    """Run one request on an environment; every back end goes through here.

    Returns:
        A :class:`SlotResult` for ``reset`` and ``step``, the method's value for ``call``.

    Raises:
        InvalidStep: When the environment returned a step that no record may hold.
    """
    if method == "reset":
        observation, info = env.reset(**argument.reset_arguments())
        return _checked(SlotResult(observation, info=info))
    if method == "step":
        observation, reward, terminated, truncated, info = env.step(argument)
        return _checked(SlotResult(observation, float(reward), bool(terminated), bool(truncated), info))
    return getattr(env.unwrapped, argument)()


def _checked(result: SlotResult) -> SlotResult:
    """The result, unless a value would spoil every sum and record it enters."""
    info = result.info
    if not math.isfinite(result.reward):
        raise InvalidStep(f"the environment returned the reward {result.reward}; expected a finite number")
    score = info.get("score", 0.0)
    if not 0 <= score <= 1:
        raise InvalidStep(f"the environment returned the score {score}; expected a number from 0 to 1")
    for name in ("task_id", "task_type", "goal"):
        if not isinstance(info.get(name, ""), str):
            raise InvalidStep(f"the environment returned the {name} {info[name]!r}; expected text")
    reason = info.get("stop_reason", "")
    if reason and reason not in _STOP_REASONS:
        raise InvalidStep(f"the environment returned the stop reason {reason!r}; expected one of {_STOP_REASONS}")
    return result


_STOP_REASONS = [reason.value for reason in StopReason]


class WorkerFailed(RuntimeError):
    """An environment in another process raised.

    Attributes:
        record: What it raised.
    """

    def __init__(self, record: EpisodeError) -> None:
        super().__init__(f"{record.type}: {record.message}\n{record.traceback}")
        self.record = record

    def __reduce__(self) -> tuple[type[WorkerFailed], tuple[EpisodeError]]:
        return WorkerFailed, (self.record,)


def describe(error: BaseException) -> EpisodeError:
    """An exception as data; one from another process is described as it was there."""
    if isinstance(error, WorkerFailed):
        return error.record
    try:
        message = str(error)
    except Exception as failure:
        message = f"(its text cannot be made: {type(failure).__name__})"
    return EpisodeError(type(error).__name__, message, "".join(traceback.format_exception(error)))


class InlineSlot:
    """An environment in this process."""

    def __init__(self, make_env: MakeEnv) -> None:
        self.env = make_env()

    def send(self, method: str, argument: Any) -> Any:
        """See :class:`Slot`."""
        return serve(self.env, method, argument)

    def close(self) -> None:
        """Close the environment."""
        self.env.close()
