"""What an import read, left out and wrote, as data and as lines to print."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from seed_envs.search_qa.importing.published import QUESTIONS
from seed_envs.search_qa.question_files import EVALUATED, check_full_evaluation, evaluation_order, questions_sha256
from seed_envs.search_qa.questions import Question


@dataclass
class Left:
    """Records that were left out for one reason; `first` says where the first one stands."""

    reason: str
    count: int
    first: str


@dataclass
class FileReceipt:
    """One file.

    Attributes:
        name: Its base name.
        sha256: Of its bytes.
        published: Where exactly this file is published, "" if that is not known.
        form: The recognised form, "" for files that are none.
        read: Records read.
        written: Questions or passages written.
        repaired: Records in which characters that no service stores were replaced.
        left_out: What was not written, by reason.
    """

    name: str
    sha256: str = ""
    published: str = ""
    form: str = ""
    read: int = 0
    written: int = 0
    repaired: int = 0
    left_out: list[Left] = field(default_factory=list)

    def leave_out(self, reason: str, place: str) -> None:
        """Counts a record, or the whole file, that is left out."""
        kept = next((left for left in self.left_out if left.reason == reason), None)
        if kept is None:
            self.left_out.append(Left(reason, 1, place))
        else:
            kept.count += 1

    def lines(self) -> Iterable[str]:
        """The receipt in words."""
        yield f"{self.name}: {self.form or 'not read'}, {self.read:,} read, {self.written:,} written"
        if self.published:
            yield f"  as published: {self.published}"
        if self.repaired:
            yield f"  repaired {self.repaired:,}: NUL or half a surrogate pair, now U+FFFD"
        for left in self.left_out:
            yield f"  left out {left.count:,}: {left.reason} (first: {left.first})"


def set_rows(questions: Iterable[Question]) -> list[dict[str, Any]]:
    """Per set and split: how many questions, their hash, and how many are published."""
    parts: dict[tuple[str, str], list[Question]] = {}
    for question in questions:
        parts.setdefault((question.data_source, question.task_id.split("/")[1]), []).append(question)
    return [
        {
            "set": name,
            "split": split,
            "questions": len(found),
            "sha256": questions_sha256(found),
            "published": list(QUESTIONS.get((name, split), ())),
            "complete": len(found) in QUESTIONS[name, split] if (name, split) in QUESTIONS else None,
        }
        for (name, split), found in parts.items()
    ]


def set_line(row: dict[str, Any]) -> str:
    """A row of `set_rows` in words."""
    published = " or ".join(f"{count:,}" for count in row["published"])
    known = "" if not published else ", complete" if row["complete"] else f", {published} are published"
    return f"{row['set']}/{row['split']}: {row['questions']:,} questions{known}, sha256 {row['sha256'][:16]}"


def full_evaluation(questions: list[Question]) -> str:
    """ "complete", or what is missing to the 51,713; "" when not all seven sets are there."""
    chosen = [question for question in questions if question.data_source in EVALUATED]
    if {question.data_source for question in chosen} != set(EVALUATED):
        return ""
    try:
        check_full_evaluation(evaluation_order(chosen))
    except ValueError as error:
        return str(error)
    return "complete"


@dataclass
class Receipt:
    """A whole import.

    Attributes:
        files: What was read.
        sets: See `set_rows`.
        full_evaluation: See there.
        written: What was written: file name to records and sha256.
    """

    files: list[FileReceipt] = field(default_factory=list)
    sets: list[dict[str, Any]] = field(default_factory=list)
    full_evaluation: str = ""
    written: dict[str, dict[str, Any]] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """For `receipt.json`."""
        return asdict(self)

    def lines(self) -> Iterable[str]:
        """The receipt in words."""
        for file in self.files:
            yield from file.lines()
        yield from map(set_line, self.sets)
        if self.full_evaluation:
            yield f"full evaluation of {sum(count for _, count in EVALUATED.values()):,}: {self.full_evaluation}"
        for name, record in self.written.items():
            yield f"wrote {name}: {record['records']:,} records, sha256 {record['sha256']}"
