"""Real question files, unchanged: whatever the field publishes, recognised by `importing`.

Every row becomes a `Question` with a stable id, or an error that names the row. Nothing is downloaded, and gold
passages are linked to a collection only on request.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from seed_envs.errors import DataInvalid, DataMissing
from seed_envs.hashing import content_hash
from seed_envs.search_qa.corpus import Corpus, iterate
from seed_envs.search_qa.importing.question_shapes import Skip
from seed_envs.search_qa.importing.reading import read_file
from seed_envs.search_qa.questions import Question

SETS = ("nq", "triviaqa", "popqa", "hotpotqa", "2wikimultihopqa", "musique", "bamboogle")
"""The seven evaluated sets in the order in which results are printed."""
EVALUATED = {
    "nq": ("test", 3610), "triviaqa": ("test", 11313), "popqa": ("test", 14267), "hotpotqa": ("dev", 7405),
    "2wikimultihopqa": ("dev", 12576), "musique": ("dev", 2417), "bamboogle": ("test", 125),
}  # fmt: skip
"""Split and number of questions of the full evaluation, 51,713 in all."""


def read_questions(path: str | os.PathLike[str]) -> list[Question]:
    """Reads a question file in order, in any of the published forms that `importing.shapes` lists.

    Args:
        path: The file.

    Raises:
        DataMissing: No such file.
        DataInvalid: It holds passages, no question, or a row that is none; the message names it.
    """
    file = Path(path)
    if not file.is_file():
        raise DataMissing(f"questions: expected a .parquet, .jsonl or .jsonl.gz file at {str(path)!r}, found none")
    shape, found = read_file(file)
    if shape is None:
        raise DataInvalid(f"{file}: holds no question")
    if shape.holds != "questions":
        raise DataInvalid(f"{file}: holds {shape.name}, no questions; passages are given as collection=")
    questions = []
    for place, item in found:
        if isinstance(item, Skip):
            raise DataInvalid(
                f"{place}: expected a list of gold answers, but {item.reason}; to leave such rows out, run: "
                f"python -m seed_envs.search_qa import {file} --output FOLDER"
            )
        if isinstance(item, Question):
            questions.append(item)
    return questions


def questions_sha256(questions: Iterable[Question]) -> str:
    """sha256 over ids, texts and answers in order: two people with the same one ask the same questions."""
    lines = (json.dumps([question.task_id, question.text, *question.answers]) for question in questions)
    return content_hash(f"{line}\n".encode() for line in lines)


def evaluation_order(questions: Iterable[Question]) -> list[Question]:
    """The questions that are evaluated, set by set in printed order: test where there is one, else dev.

    Raises:
        DataInvalid: A set has neither; training questions are never evaluated in silence.
    """
    by_set: dict[str, dict[str, list[Question]]] = {}
    for question in questions:
        split = question.task_id.split("/")[1]
        by_set.setdefault(question.data_source, {}).setdefault(split, []).append(question)
    ordered: list[Question] = []
    for name in sorted(by_set, key=lambda name: (SETS.index(name) if name in SETS else len(SETS), name)):
        splits = by_set[name]
        if "test" not in splits and "dev" not in splits:
            raise DataInvalid(f"{name}: has only train questions; give its test or dev file to evaluate on it")
        ordered += splits.get("test") or splits["dev"]
    return ordered


def check_full_evaluation(questions: Sequence[Question]) -> None:
    """Compares the numbers of questions per set with the full evaluation of 51,713.

    Raises:
        DataInvalid: A number differs; all differences are named.
    """
    counts = dict.fromkeys(EVALUATED, 0)
    for question in questions:
        counts[question.data_source] = counts.get(question.data_source, 0) + 1
    wrong = [
        f"{name}: expected {EVALUATED.get(name, ('', 0))[1]}, found {count}"
        for name, count in counts.items()
        if count != EVALUATED.get(name, ("", 0))[1]
    ]
    if wrong:
        raise DataInvalid("not the full evaluation of 51,713 questions; " + "; ".join(wrong))


def link_gold_passages(questions: Sequence[Question], corpus: Corpus) -> list[Question]:
    """Fills `hops` from gold titles: all passages of a title count as one gold. Reads the whole collection once."""
    wanted = {title for question in questions for title in question.gold_titles}
    ids: dict[str, set[str]] = {}
    for hit in iterate(corpus) if wanted else ():
        if hit.title in wanted:
            ids.setdefault(hit.title, set()).add(hit.id)
    return [
        replace(question, hops=tuple(frozenset(ids.get(title, ())) for title in question.gold_titles))
        if question.gold_titles
        else question
        for question in questions
    ]
