"""``EpisodeRecord``: one line of ``episodes.jsonl``, with the whole transcript of the episode behind it.

The line is one JSON object: the outcome first, the key ``transcript`` last, so that statistics over many episodes read
the heads alone. Nothing is judged here.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, NamedTuple

from seed_envs.journal import read_lines
from seed_envs.redaction import conceal, redact
from seed_envs.trajectory import EpisodeError, Step, StopReason, Trajectory

from .errors import RecordsInvalid
from .fields import find_fault
from .plan import Planned
from .transcripts import Pictures, expand_messages, plain_json, steps_to_json

SCHEMA_VERSION = 1
_SPLIT = b', "transcript": {'


@dataclass
class EpisodeRecord:
    """The outcome of one episode.

    Attributes:
        index: Place in the plan.
        task_id: The task.
        repeat: 0-based repeat.
        seed: Seed of the episode.
        attempt: Which start of the run played it, counted from 1.
        env_id: The environment.
        task_type: Family of the task.
        goal: Its goal.
        success: Whether it was solved.
        score: Score in [0, 1].
        reward: Sum of the step rewards.
        stop_reason: A ``StopReason`` value.
        steps: Turns taken.
        invalid_formats: Turns whose reply could not be read in the profile's format.
        invalid_actions: Turns whose action the environment refused.
        cut_replies: Replies that ended at the length limit.
        filtered_replies: Replies that a content filter withheld or cut.
        optimal_steps: Fewest steps that solve the task, where the environment knows it.
        by: What else the environment groups its tasks by (``info[NAME]["by"]``), such as ``{"hops": 2}``.
        measures: What else it measures of an episode, in 0..1 (``info[NAME]["measures"]``), such as recall.
        prompt_tokens: Tokens read, where the agent counts them.
        completion_tokens: Tokens written, where the agent counts them.
        cost: Price of the tokens.
        started: Start in UTC, ISO 8601.
        seconds: Wall time from start to end.
        policy_seconds: Part spent waiting for the agent (a share of each batch).
        env_seconds: Part spent in the environment.
        error: ``type``, ``message`` and ``traceback`` of the fault that ended it, or None.
        data: What the task is made of, as its environment told at reset (``info["data"]``).
        schema_version: Version of this layout.
    """

    index: int
    task_id: str
    repeat: int
    seed: int
    attempt: int
    env_id: str
    task_type: str = ""
    goal: str = ""
    success: bool = False
    score: float = 0.0
    reward: float = 0.0
    stop_reason: str = StopReason.ENV_ERROR.value
    steps: int = 0
    invalid_formats: int = 0
    invalid_actions: int = 0
    cut_replies: int = 0
    filtered_replies: int = 0
    optimal_steps: int | None = None
    by: dict[str, int | str] = field(default_factory=dict)
    measures: dict[str, float] = field(default_factory=dict)
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0
    started: str = ""
    seconds: float = 0.0
    policy_seconds: float = 0.0
    env_seconds: float = 0.0
    error: dict[str, str] | None = None
    data: dict[str, Any] = field(default_factory=dict)
    schema_version: int = SCHEMA_VERSION

    @property
    def key(self) -> tuple[str, int]:
        """Task and repeat."""
        return self.task_id, self.repeat

    @property
    def scored(self) -> bool:
        """Whether the outcome says something about the agent."""
        return StopReason(self.stop_reason).scored

    @property
    def outcome(self) -> tuple[Any, ...]:
        """What two records of one episode must agree on."""
        return (self.seed, self.success, self.score, self.steps, self.stop_reason)


_FIELDS = frozenset(item.name for item in fields(EpisodeRecord))


class FinishedEpisode(NamedTuple):
    """An episode ready to be stored: its head, its line, and the pictures the line refers to (file name to PNG)."""

    record: EpisodeRecord
    line: bytes
    images: dict[str, bytes]


def finish_episode(
    planned: Planned, trajectory: Trajectory, *, attempt: int, started: str, seconds: float
) -> FinishedEpisode:
    """Turn a trajectory into its line.

    Args:
        planned: What was to be played.
        trajectory: What came out.
        attempt: Which start of the run this is.
        started: Start in UTC, ISO 8601.
        seconds: Wall time.
    """
    images = Pictures()
    steps = list(steps_to_json(trajectory.steps, images))
    usage = [step.meta.get("usage") or {} for step in trajectory.steps]
    record = EpisodeRecord(
        index=planned.index,
        task_id=planned.task_id,
        repeat=planned.repeat,
        seed=planned.seed,
        attempt=attempt,
        env_id=trajectory.env_id,
        task_type=trajectory.task_type,
        goal=trajectory.goal,
        success=trajectory.success,
        score=trajectory.score,
        reward=trajectory.total_reward,
        stop_reason=trajectory.stop_reason.value,
        steps=len(steps),
        invalid_formats=sum(not step.format_valid for step in trajectory.steps),
        invalid_actions=sum(not step.action_valid for step in trajectory.steps),
        cut_replies=sum(step.meta.get("finish_reason") == "length" for step in trajectory.steps),
        filtered_replies=sum(step.meta.get("finish_reason") == "content_filter" for step in trajectory.steps),
        optimal_steps=_optimal_steps(trajectory.extras),
        by=_told(trajectory.extras, "by"),
        measures=_told(trajectory.extras, "measures"),
        prompt_tokens=sum(int(part.get("prompt_tokens", 0)) for part in usage),
        completion_tokens=sum(int(part.get("completion_tokens", 0)) for part in usage),
        cost=math.fsum(float(part.get("cost", 0.0)) for part in usage),
        started=started,
        seconds=round(seconds, 6),
        policy_seconds=round(math.fsum(step.seconds.get("policy", 0.0) for step in trajectory.steps), 6),
        env_seconds=round(math.fsum(step.seconds.get("env", 0.0) for step in trajectory.steps), 6),
        error=None if trajectory.error is None else dict(vars(trajectory.error)),
        data=trajectory.data,
    )
    transcript = {"steps": steps, "final_observation": trajectory.final_observation, "extras": trajectory.extras}
    return FinishedEpisode(record, encode_line(record, transcript), images.files)


def _optimal_steps(extras: dict[str, Any]) -> int | None:
    """Of the environments' privileged extras; each keeps its own under ``oracle``."""
    oracles = (part.get("oracle") for part in extras.values() if isinstance(part, dict))
    found = (oracle.get("optimal_steps") for oracle in oracles if isinstance(oracle, dict))
    return next((int(steps) for steps in found if isinstance(steps, int) and not isinstance(steps, bool)), None)


def _told(extras: dict[str, Any], key: str) -> dict[str, Any]:
    """What the environments tell for reports under one key."""
    told = (part.get(key) for part in extras.values() if isinstance(part, dict))
    return {name: value for part in told if isinstance(part, dict) for name, value in part.items()}


def faulty_episode(
    planned: Planned,
    env_id: str,
    error: EpisodeError,
    stop_reason: StopReason,
    *,
    attempt: int,
    started: str,
    seconds: float,
    replies: list[str] | None = None,
) -> FinishedEpisode:
    """The line of an episode whose process was lost; ``replies`` is what is known of its turns."""
    trajectory = Trajectory(env_id, planned.task_id, seed=planned.seed, error=error, stop_reason=stop_reason)
    trajectory.steps = [Step("", [], reply, "", False, "the process was lost", 0.0) for reply in replies or []]
    return finish_episode(planned, trajectory, attempt=attempt, started=started, seconds=seconds)


def encode_line(record: EpisodeRecord, transcript: dict[str, Any]) -> bytes:
    """One line without newline, ASCII only, the transcript last."""
    whole = {**vars(record), "error": redact(record.error), "transcript": transcript}
    try:
        return json.dumps(conceal(whole), allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError):
        return json.dumps(conceal(plain_json(whole)), allow_nan=False).encode()


def read_heads(path: Path) -> Iterator[EpisodeRecord]:
    """The outcomes in a journal in written order, without their transcripts.

    Raises:
        RecordsInvalid: For a line that is no record.
    """
    for number, line in enumerate(read_lines(path), 1):
        yield parse_head(line, path, number)


def read_transcripts(path: Path) -> Iterator[tuple[EpisodeRecord, dict[str, Any]]]:
    """Outcomes and transcripts, with every turn's messages complete again.

    Raises:
        RecordsInvalid: For a line that is no record.
    """
    for number, line in enumerate(read_lines(path), 1):
        record = parse_head(line, path, number)
        try:
            transcript = json.loads(line)["transcript"]
            transcript["steps"] = list(expand_messages(transcript["steps"]))
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise RecordsInvalid(f"{path}, line {number}: not an episode record (transcript: {error!r})") from error
        yield record, transcript


class LineIndex(NamedTuple):
    """Where a record is in its journal.

    Attributes:
        record: Its head.
        offset: First byte.
        length: Bytes without the newline.
        number: Line, counted from 1.
    """

    record: EpisodeRecord
    offset: int
    length: int
    number: int


def index_lines(path: Path) -> dict[tuple[str, int], LineIndex]:
    """The record that counts for each episode (see :func:`latest`), and where its line is."""
    found: dict[tuple[str, int], LineIndex] = {}
    offset = 0
    for number, (record, line) in enumerate(zip(read_heads(path), read_lines(path), strict=True), 1):
        earlier = found.get(record.key)
        if earlier is None or not earlier.record.scored:
            found[record.key] = LineIndex(record, offset, len(line), number)
        offset += len(line) + 1
    return found


def latest(records: Iterable[EpisodeRecord]) -> dict[tuple[str, int], EpisodeRecord]:
    """The record that counts for each episode: a scored one, else the last one written."""
    kept: dict[tuple[str, int], EpisodeRecord] = {}
    for record in records:
        earlier = kept.get(record.key)
        if earlier is None or not earlier.scored:
            kept[record.key] = record
    return kept


def parse_head(line: bytes, path: Path, number: int) -> EpisodeRecord:
    """The outcome in one line.

    Raises:
        RecordsInvalid: When it is no record; ``path`` and ``number`` are for the message.
    """
    head, split, _ = line.partition(_SPLIT)
    try:
        values = json.loads(head + b"}" if split else line)
        if not isinstance(values, dict):
            raise ValueError(f"expected an object, got {type(values).__name__}")
        if fault := find_fault(values):
            raise ValueError(fault)
        if not split and "transcript" not in values:
            raise ValueError("transcript: missing")
        values.pop("transcript", None)
        if values.keys() - _FIELDS:
            raise ValueError(f"unknown keys {sorted(values.keys() - _FIELDS)}")
        if values.get("schema_version") != SCHEMA_VERSION:
            raise ValueError(f"schema_version {values.get('schema_version')!r}, expected {SCHEMA_VERSION}")
        record = EpisodeRecord(**values)
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise RecordsInvalid(f"{path}, line {number}: not an episode record ({error})") from error
    return record
