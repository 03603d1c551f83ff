"""A published file as questions or passages: recognised by its first record, then read row by row."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from seed_envs.errors import DataInvalid
from seed_envs.search_qa.importing.containers import Row, read_rows
from seed_envs.search_qa.importing.names import set_in, set_name, split_in, stem_of
from seed_envs.search_qa.importing.passage_shapes import Passage
from seed_envs.search_qa.importing.question_shapes import Draft, Skip, as_list, short
from seed_envs.search_qa.importing.shapes import Shape, is_header, recognise
from seed_envs.search_qa.questions import Question

NO_GOLD = "no gold answer"


class Found(NamedTuple):
    """What stands at a place of a file: a question, a passage, or something that is left out."""

    place: str
    item: Question | Passage | Skip


def read_file(path: Path) -> tuple[Shape | None, Iterator[Found]]:
    """Recognises a file and reads it.

    Args:
        path: The file.

    Returns:
        Its form, None for an empty file, and an iterator over what it holds.

    Raises:
        DataInvalid: No known form, or, while reading, a faulty record; the message names file, line and reason.
    """
    rows = read_rows(path, is_header)
    first = next(rows, None)
    if first is None:
        return None, iter(())
    shape = recognise(first.record, path, first.place)
    return shape, _read(shape, path, first, rows)


def _read(shape: Shape, path: Path, first: Row, rows: Iterator[Row]) -> Iterator[Found]:
    located = path.absolute()
    for row in _again(first, rows):
        if not isinstance(row.record, dict):
            raise DataInvalid(f"{row.place}: expected an object, got {type(row.record).__name__}")
        try:
            found = shape.read(row.record, row.place)
        except KeyError as error:
            raise DataInvalid(f"{row.place}: {error} is missing; the file began as {shape.name}") from error
        if isinstance(found, Draft):
            yield Found(row.place, question_of(found, located, row))
        else:
            for item in found if isinstance(found, list) else [found]:
                yield Found(row.place, item)


def _again(first: Row, rows: Iterator[Row]) -> Iterator[Row]:
    yield first
    yield from rows


def question_of(draft: Draft, path: Path, row: Row) -> Question | Skip:
    """A question with its names settled: what the record says goes before what file and folder are called.

    Args:
        draft: What the record says.
        path: Its file, absolute.
        row: The record and where it stands.

    Raises:
        DataInvalid: Without a question text, or with answers that are none.
    """
    if not isinstance(draft.text, str) or not draft.text.strip():
        raise DataInvalid(f"{row.place}: expected a question, got {short(draft.text)}")
    answers = _answers(draft.answers, row.place, draft.choices)
    if not answers:
        return Skip(NO_GOLD)
    stem = stem_of(path)
    source = set_name(draft.source or set_in(stem) or path.parent.name or "questions")
    given = draft.split or stem
    split = split_in(given) or (not draft.split and split_in(path.parent.name)) or "test"
    # Without an id, the named part of a set and the row's number identify a question.
    unnamed = f"{re.sub(r'[^A-Za-z0-9_.-]', '_', given)}_{row.number}"
    identifier = unnamed if draft.id is None else str(draft.id)
    return Question(f"{source}/{split}/{identifier}", source, draft.text, answers, gold_titles=draft.titles)


def _answers(value: Any, place: str, choices: Any) -> tuple[str, ...]:
    """Gold answers without blank ones."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        value = [value]
    golds = as_list(value)
    options = as_list(choices) if choices is not None else None
    if golds and options and all(isinstance(gold, int) for gold in golds):
        if not all(0 <= gold < len(options) for gold in golds):
            raise DataInvalid(f"{place}: gold answers {short(value)} are no positions among {len(options)} choices")
        golds = [options[gold] for gold in golds]
    if golds is None or not all(isinstance(gold, (str, int, float)) for gold in golds):
        raise DataInvalid(f"{place}: expected a list of gold answers, got {short(value)}")
    return tuple(str(gold) for gold in golds if str(gold).strip())
