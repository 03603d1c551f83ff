"""Stored episodes turn by turn, whoever wrote them: ``seed-bench run``, ``seed-train rl`` and ``data``, demonstrations.

A line of any of their files becomes the same pages. What is in them was written by models and environments: it is
text, nothing here is trusted, and of pictures only files are read whose name is a hash beside the episodes.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from seed_envs.errors import DataInvalid, DataMissing
from seed_envs.journal import read_lines
from seed_envs.pages import gate_colour

FILES = ("episodes.jsonl", "trajectories.jsonl")
"""What a folder's episodes are called."""
_PICTURE = re.compile(r"(images/[0-9a-f]{24}|pictures/[0-9a-f]{64})\.png")
_LARGEST_PICTURE = 4_000_000

Record = Mapping[str, Any]


@dataclass(frozen=True)
class Token:
    """One token of a reply: ``colour`` is that of its gate, ``""`` where it had none."""

    text: str
    colour: str = ""
    tip: str = ""
    sampled: bool = True


@dataclass(frozen=True)
class Turn:
    """What was shown and what was answered; the last turn of an episode may have no answer.

    Attributes:
        observation: What the environment showed.
        picture: A PNG file, None without.
        reply: What the policy wrote.
        action: What was read from it.
        refusal: Why the reply could not be read or the action was refused.
        reward: What the turn earned, None where it was not kept.
    """

    observation: str
    picture: Path | None = None
    reply: str = ""
    action: str = ""
    refusal: str = ""
    reward: float | None = None


@dataclass(frozen=True)
class Stored:
    """One stored episode: ``tokens`` are its trained rows, one a turn or one for all."""

    task_id: str
    goal: str
    success: bool
    turns: Sequence[Turn]
    title: str = ""
    skill: str = ""
    tokens: Sequence[Sequence[Token]] = field(default_factory=tuple)


def find_file(path: Path) -> Path:
    """The file of episodes that a path names, as a file or as the folder of a run.

    Raises:
        DataMissing: When there is none.
    """
    for candidate in (path, *(path / name for name in FILES)):
        if candidate.is_file():
            return candidate
    raise DataMissing(
        f"{str(path)!r} holds no stored episodes; give a file of them, or a folder with {' or '.join(FILES)}, as "
        "`seed-bench run`, `seed-train rl` and `seed-train data` write it"
    )


class Episodes:
    """The episodes of a file, read when asked for.

    Args:
        path: File, or folder of a run.

    Raises:
        DataMissing: When there is none.
        DataInvalid: When it holds no episode.
    """

    def __init__(self, path: Path) -> None:
        self.path = find_file(path)
        self.titles = [episode.title for episode in self]
        if not self.titles:
            raise DataInvalid(f"{self.path} holds no episode yet")

    def __len__(self) -> int:
        return len(self.titles)

    def __getitem__(self, number: int) -> Stored:
        """An episode by its number, from 0.

        Raises:
            DataInvalid: When there is none of that number.
        """
        for at, episode in enumerate(self):
            if at == number:
                return episode
        raise DataInvalid(f"{self.path} holds episodes 0 to {len(self.titles) - 1}; there is no episode {number}")

    def __iter__(self) -> Iterator[Stored]:
        """The episodes in the order of the file."""
        for number, line in enumerate(read_lines(self.path), 1):
            try:
                yield _read(json.loads(line), self.path.parent)
            except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
                raise DataInvalid(f"{self.path}, line {number}: no stored episode ({error!r})") from error


def picture_source(path: Path | None) -> str:
    """A picture as a ``data:`` address, ``""`` without."""
    return "" if path is None else "data:image/png;base64," + base64.b64encode(path.read_bytes()).decode()


def _read(record: Record, folder: Path) -> Stored:
    for key, reader in _READERS.items():
        if key in record:
            return reader(record, folder)
    raise ValueError(f"none of {', '.join(_READERS)}")


def _of_harness(record: Record, folder: Path) -> Stored:
    transcript = record["transcript"]
    return _stored(record, _steps(transcript["steps"], transcript["final_observation"], folder))


def _of_trajectory(record: Record, folder: Path) -> Stored:
    return _stored(record, _steps(record["steps"], record["final_observation"], folder))


def _of_collection(record: Record, folder: Path) -> Stored:
    return _of_trajectory(record["trajectory"], folder)


def _of_training(record: Record, folder: Path) -> Stored:
    turns = [
        Turn(str(turn["observation"]), None, str(turn["reply"]), str(turn.get("action", "")), str(turn["reason"]))
        for turn in record["turns"]
    ]
    tokens = [list(_tokens(row)) for row in record.get("rows", []) if row]
    return _stored(record, turns, str(record["skill"]), tokens, f"round {record['round']}: ")


_READERS: dict[str, Callable[[Record, Path], Stored]] = {
    "transcript": _of_harness,
    "trajectory": _of_collection,
    "turns": _of_training,
    "steps": _of_trajectory,
}
"""By the key that only the lines of one kind have; the harness's own ``steps`` is a number."""


def _stored(
    record: Record, turns: list[Turn], skill: str = "", tokens: Sequence[Sequence[Token]] = (), when: str = ""
) -> Stored:
    success = bool(record["success"])
    title = f"{when}{record['task_id']}, {'solved' if success else 'not solved'}"
    return Stored(str(record["task_id"]), str(record["goal"]), success, turns, title, skill, tokens)


def _steps(steps: Sequence[Record], final: Any, folder: Path) -> list[Turn]:
    turns: list[Turn] = []
    picture: Path | None = None
    for step in steps:
        # Of a conversation only what a turn added is stored; a prompt that added nothing showed the same picture.
        picture = _last_picture(step.get("messages", ()), folder) or picture
        refusal = "" if step["action_valid"] and step.get("format_valid", True) else str(step["invalid_reason"])
        reply = str(step["reply"])
        turns.append(
            Turn(str(step["observation"]), picture, reply, str(step["action"]), refusal, float(step["reward"]))
        )
    return [*turns, Turn(str(final))] if final else turns


def _last_picture(messages: Sequence[Record], folder: Path) -> Path | None:
    contents = [message["content"] for message in messages if isinstance(message["content"], list)]
    names = [str(part.get("file", "")) for content in contents for part in content if part.get("type") == "image"]
    for name in reversed(names):
        path = folder / name
        if _PICTURE.fullmatch(name) and path.is_file() and path.stat().st_size <= _LARGEST_PICTURE:
            return path
    return None


def _tokens(row: Record) -> Iterator[Token]:
    for at, token in enumerate(row["tokens"]):
        if not row["mask"][at]:
            yield Token(str(token), sampled=False)
        elif "gate" in row:
            student, teacher, gate = (float(row[name][at]) for name in ("student", "teacher", "gate"))
            tip = f"student {student:.3f}, teacher {teacher:.3f}, gate {gate:.3f}"
            yield Token(str(token), gate_colour(gate), tip)
        else:
            yield Token(str(token), tip="no gate: this turn was not distilled")
