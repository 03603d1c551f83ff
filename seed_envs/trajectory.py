"""One finished episode as data: steps, the one reason it ended, and JSON.

A trajectory is strings and numbers. It knows no tokenizer: whatever a policy attaches to its replies (token ids,
log-probs, costs) travels in ``Step.meta`` and is left out of the JSON unless it is JSON itself.
"""

from __future__ import annotations

import enum
import json
from dataclasses import dataclass, field
from typing import Any, Literal

SCHEMA_VERSION = 1


class StopReason(str, enum.Enum):
    """Why an episode ended; every episode has exactly one."""

    SUCCESS = "success"  #: the task was solved
    FAILURE = "failure"  #: the environment ended the episode without success (wrong answer, wrong purchase)
    MAX_STEPS = "max_steps"  #: the step limit of the environment
    TURN_LIMIT = "turn_limit"  #: the protocol's own last turn passed without an answer
    RETRIEVAL_ERROR = "retrieval_error"  #: a search back end failed; the episode is not scored
    CONTEXT_OVERFLOW = "context_overflow"  #: the next prompt would not fit the policy
    TIMEOUT = "timeout"  #: the episode or step ran past its deadline
    ENV_ERROR = "env_error"  #: the environment raised
    POLICY_ERROR = "policy_error"  #: the policy raised or answered nonsense

    @property
    def scored(self) -> bool:
        """Whether the outcome says something about the policy (faults of the machinery do not)."""
        return self not in _FAULTS


_FAULTS = frozenset({StopReason.RETRIEVAL_ERROR, StopReason.TIMEOUT, StopReason.ENV_ERROR, StopReason.POLICY_ERROR})


@dataclass
class EpisodeError:
    """What went wrong, kept as text so that it survives JSON and processes."""

    type: str
    message: str
    traceback: str = ""


@dataclass
class Step:
    """One turn of an episode.

    Attributes:
        observation: The environment's own text before the action (without prompt or history).
        messages: What the policy was given.
        reply: What the policy answered, unchanged.
        action: What was sent to the environment.
        action_valid: Whether the environment accepted the action.
        invalid_reason: Why the reply could not be read or the action was refused, or ``""``.
        reward: Reward of the step as the wrapped environment gave it.
        seconds: Wall time of policy and environment for this turn.
        context: The ``TurnContext`` the prompt was rendered from (not part of the JSON).
        meta: Whatever the policy attached to its reply.
        format_valid: Whether the reply could be read in the profile's format.
    """

    observation: str
    messages: list[dict[str, Any]]
    reply: str
    action: str
    action_valid: bool
    invalid_reason: str
    reward: float
    seconds: dict[str, float] = field(default_factory=dict)
    context: Any = None
    meta: dict[str, Any] = field(default_factory=dict)
    format_valid: bool = True

    def is_valid(self, what: Literal["format", "action"]) -> bool:
        """Whether the turn is valid in the sense that a profile or a method penalises."""
        return self.format_valid if what == "format" else self.action_valid


@dataclass
class Trajectory:
    """One episode, finished.

    Attributes:
        env_id: Registered id of the environment.
        task_id: The task that was played.
        task_type: Its family.
        goal: The goal as the environment states it.
        seed: The seed given to ``reset`` (None when the task id alone decided).
        group: Index of the group of episodes that share this task.
        steps: The turns in order.
        final_observation: The text after the last action.
        stop_reason: The one reason why it ended.
        success: Whether the task was solved.
        score: The environment's score in [0, 1].
        total_reward: Sum of the step rewards.
        error: Set when a fault ended the episode.
        extras: The environment's extras of the last info, under the environment's name.
        data: What the task is made of (the run card of ``reset``).
    """

    env_id: str
    task_id: str
    task_type: str = ""
    goal: str = ""
    seed: int | None = None
    group: int = 0
    steps: list[Step] = field(default_factory=list)
    final_observation: str = ""
    stop_reason: StopReason = StopReason.MAX_STEPS
    success: bool = False
    score: float = 0.0
    total_reward: float = 0.0
    error: EpisodeError | None = None
    extras: dict[str, Any] = field(default_factory=dict)
    data: dict[str, Any] = field(default_factory=dict)

    @property
    def num_steps(self) -> int:
        """Number of turns taken."""
        return len(self.steps)

    def to_json(self) -> dict[str, Any]:
        """A JSON-ready dictionary; images become the note ``{"type": "image", "size": [w, h]}``."""
        steps = [
            {
                "observation": step.observation,
                "messages": [_json_message(message) for message in step.messages],
                "reply": step.reply,
                "action": step.action,
                "format_valid": step.format_valid,
                "action_valid": step.action_valid,
                "invalid_reason": step.invalid_reason,
                "reward": step.reward,
                "seconds": step.seconds,
                "meta": {key: value for key, value in step.meta.items() if _is_json(value)},
            }
            for step in self.steps
        ]
        error = None if self.error is None else vars(self.error)
        return {
            "schema_version": SCHEMA_VERSION,
            **vars(self),
            "steps": steps,
            "stop_reason": self.stop_reason.value,
            "error": error,
            "extras": {key: value for key, value in self.extras.items() if _is_json(value)},
        }

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> Trajectory:
        """Rebuild a trajectory from :meth:`to_json` (contexts, images and non-JSON meta are gone).

        Raises:
            ValueError: When the record has another schema version.
        """
        if record.get("schema_version") != SCHEMA_VERSION:
            raise ValueError(
                f"trajectory record has schema_version {record.get('schema_version')!r}, expected {SCHEMA_VERSION}"
            )
        fields = {key: value for key, value in record.items() if key != "schema_version"}
        fields["steps"] = [Step(**step) for step in record["steps"]]
        fields["stop_reason"] = StopReason(record["stop_reason"])
        fields["error"] = None if record["error"] is None else EpisodeError(**record["error"])
        return cls(**fields)


def _json_message(message: dict[str, Any]) -> dict[str, Any]:
    content = message["content"]
    if isinstance(content, str):
        return message
    parts = [
        part if part["type"] == "text" else {"type": "image", "size": _image_size(part["image"])} for part in content
    ]
    return {**message, "content": parts}


def _image_size(image: Any) -> list[int]:
    """Width and height of a picture or of a height x width x channels array."""
    shape = getattr(image, "shape", None)
    return [int(side) for side in (image.size if shape is None else (shape[1], shape[0]))]


def _is_json(value: Any) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return False
    return True
