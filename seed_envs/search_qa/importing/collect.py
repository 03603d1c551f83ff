"""Published files to one collection and one question file, with a receipt."""

from __future__ import annotations

import hashlib
import json
import os
import re
from array import array
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from seed_envs.errors import DataInvalid, DataMissing
from seed_envs.search_qa.hashing import file_sha256
from seed_envs.search_qa.importing.passage_shapes import Passage
from seed_envs.search_qa.importing.published import FILES
from seed_envs.search_qa.importing.question_shapes import Skip
from seed_envs.search_qa.importing.reading import read_file
from seed_envs.search_qa.importing.receipt import FileReceipt, Receipt, full_evaluation, set_rows
from seed_envs.search_qa.questions import Question
from seed_envs.whole_files import whole_file

PASSAGES, QUESTIONS, RECEIPT = "passages.jsonl", "questions.jsonl", "receipt.json"
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
"""NUL and halves of surrogate pairs, which PostgreSQL, Redis and UTF-8 itself refuse."""
_DATA_SUFFIXES = (".jsonl", ".json", ".ndjson", ".parquet", ".tsv", ".csv", ".txt")


def import_files(
    paths: Sequence[str | os.PathLike[str]], output: str | os.PathLike[str], renumber: bool = False
) -> Receipt:
    """Reads published files and folders and writes `passages.jsonl`, `questions.jsonl` and `receipt.json`.

    Args:
        paths: Files in any form that `shapes` lists, or folders of such files (BEIR, Anserini, shards), read by name.
        output: Folder to write to; files are replaced as a whole at the end, or not at all.
        renumber: Give passages their position as id, for files whose ids collide.

    Raises:
        DataMissing: No such file.
        DataInvalid: A file of unknown form, a faulty record, an id that stands for two different records, or nothing
            to write.
    """
    receipt, target = Receipt(), Path(output)
    with ExitStack() as stack:
        passages = _Passages(stack, target / PASSAGES, renumber)
        questions = _Questions()
        for path, inside in _files(paths):
            _import_file(path, inside, passages, questions, receipt)
        if not passages.count and not questions.listed:
            left = "; ".join(line for file in receipt.files for line in file.lines())
            raise DataInvalid(f"nothing to write: no question and no passage in {len(receipt.files)} files. {left}")
        passages.finish(receipt)
        questions.write(stack, target / QUESTIONS, receipt)
        line = json.dumps(receipt.as_json(), indent=1, ensure_ascii=False)
        stack.enter_context(whole_file(target / RECEIPT)).write_text(line + "\n", encoding="utf-8")
    return receipt


def _files(paths: Sequence[str | os.PathLike[str]]) -> Iterator[tuple[Path, bool]]:
    """The files, and whether each was found in a folder."""
    for given in paths:
        path = Path(given).expanduser()
        if path.is_dir():
            yield from ((found, True) for found in sorted(path.rglob("*")) if found.is_file())
        elif path.is_file():
            yield path, False
        else:
            raise DataMissing(f"import: expected a file or a folder at {str(given)!r}, found none")


def _import_file(path: Path, inside: bool, passages: _Passages, questions: _Questions, receipt: Receipt) -> None:
    entry = FileReceipt(path.name)
    receipt.files.append(entry)
    if inside and not path.name.lower().removesuffix(".gz").endswith(_DATA_SUFFIXES):
        entry.leave_out("no data file by its name", path.name)
        return
    entry.sha256 = file_sha256(path)
    entry.published = FILES.get(entry.sha256, "")
    shape, found = read_file(path)
    if shape is None:
        if not inside:
            raise DataInvalid(f"{path}: is empty")
        entry.leave_out("the file is empty", path.name)
        return
    entry.form = shape.name
    for place, found_item in found:
        entry.read += 1
        item = _repaired(found_item)
        entry.repaired += item is not found_item
        left = item.reason if isinstance(item, Skip) else ""
        if isinstance(item, Passage):
            left = passages.add(item, place)
        elif isinstance(item, Question):
            left = questions.add(item, place)
        if left:
            entry.leave_out(left, place.removeprefix(f"{path}, "))
        else:
            entry.written += 1


def _cleaned(text: str) -> str:
    return _UNSTORABLE.sub("\ufffd", text)


def _repaired(item: Question | Passage | Skip) -> Question | Passage | Skip:
    """The same object, or one without characters that no service stores."""
    if isinstance(item, Passage):
        contents = None if item.contents is None else _cleaned(item.contents)
        made: Passage = Passage(item.id and _cleaned(item.id), _cleaned(item.title), _cleaned(item.text), contents)
        return item if made == item else made
    if isinstance(item, Question):
        text, answers = _cleaned(item.text), tuple(map(_cleaned, item.answers))
        same = text == item.text and answers == item.answers
        return item if same else replace(item, text=text, answers=answers)
    return item


class _Passages:
    """Writes passages as they come; ids must differ, or the passages be the same."""

    def __init__(self, stack: ExitStack, target: Path, renumber: bool) -> None:
        self._stack, self._target, self._renumber = stack, target, renumber
        self._sink: IO[bytes] | None = None
        self._digest = hashlib.sha256()
        # Ids that count the passages, as most do, need no table: only what they stand for is kept.
        self._counted = array("Q")
        self._named: dict[str, int] = {}
        self.count = 0

    def add(self, passage: Passage, place: str) -> str:
        """Writes a passage; returns why not, or ""."""
        identifier = str(self.count) if passage.id is None or self._renumber else passage.id
        data = json.dumps(passage.stored(identifier), ensure_ascii=False).encode() + b"\n"
        key = int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little")
        kept = self._kept(identifier, key)
        if kept is not None:
            if kept == key:
                return "the same passage again"
            raise DataInvalid(
                f"{place}: the id {identifier!r} stands for another passage already; --renumber gives new ids"
            )
        if self._sink is None:
            self._sink = self._stack.enter_context(whole_file(self._target)).open("wb")
            self._stack.callback(self._sink.close)
        self._sink.write(data)
        self._digest.update(data)
        self.count += 1
        return ""

    def _kept(self, identifier: str, key: int) -> int | None:
        """The key of the passage that has this id; notes the id where none has."""
        if identifier == str(self.count) == str(len(self._counted)):
            self._counted.append(key)
            return self._named.get(identifier)
        if identifier.isdecimal() and str(int(identifier)) == identifier and int(identifier) < len(self._counted):
            return self._counted[int(identifier)]
        kept = self._named.setdefault(identifier, key)
        return None if kept is key else kept

    def finish(self, receipt: Receipt) -> None:
        """Closes the file and notes it."""
        if self._sink is not None:
            self._sink.close()
            receipt.written[PASSAGES] = {"records": self.count, "sha256": self._digest.hexdigest()}


class _Questions:
    """Keeps questions; the same one again is left out, another one under the same id is refused."""

    def __init__(self) -> None:
        self.listed: dict[str, Question] = {}

    def add(self, question: Question, place: str) -> str:
        """Keeps a question; returns why not, or ""."""
        kept = self.listed.setdefault(question.task_id, question)
        if kept is question:
            return ""
        if kept == question:
            return "the same question again"
        raise DataInvalid(f"{place}: the task id {question.task_id!r} stands for another question already")

    def write(self, stack: ExitStack, target: Path, receipt: Receipt) -> None:
        """Writes the questions so that reading them gives the same ones."""
        if not self.listed:
            return
        questions = list(self.listed.values())
        data = question_lines(questions)
        stack.enter_context(whole_file(target)).write_bytes(data)
        receipt.sets = set_rows(questions)
        receipt.full_evaluation = full_evaluation(questions)
        receipt.written[QUESTIONS] = {"records": len(questions), "sha256": hashlib.sha256(data).hexdigest()}


def question_lines(questions: Sequence[Question]) -> bytes:
    """A question file's content: one JSON object a line, which is read as the same questions."""
    return "".join(json.dumps(_as_record(question), ensure_ascii=False) + "\n" for question in questions).encode()


def _as_record(question: Question) -> dict[str, Any]:
    source, split, identifier = question.task_id.split("/", 2)
    record: dict[str, Any] = {"dataset": source, "split": split, "id": identifier, "question": question.text}
    record["golden_answers"] = list(question.answers)
    if question.gold_titles:
        record["metadata"] = {"supporting_facts": {"title": list(question.gold_titles)}}
    return record
