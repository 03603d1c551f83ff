"""Real question files, unchanged: Search-R1 and verl-agent parquet, FlashRAG JSON lines, and plain listed questions.

Every row becomes a `Question` with a stable id, or an error that names the row. Nothing is downloaded, and gold
passages are linked to a collection only on request.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from seed_envs.errors import DataInvalid, DataMissing, require
from seed_envs.search_qa.corpus import Corpus, iterate
from seed_envs.search_qa.questions import Question

SETS = ("nq", "triviaqa", "popqa", "hotpotqa", "2wikimultihopqa", "musique", "bamboogle")
"""The seven evaluated sets in the order in which results are printed."""
EVALUATED = {
    "nq": ("test", 3610), "triviaqa": ("test", 11313), "popqa": ("test", 14267), "hotpotqa": ("dev", 7405),
    "2wikimultihopqa": ("dev", 12576), "musique": ("dev", 2417), "bamboogle": ("test", 125),
}  # fmt: skip
"""Split and number of questions of the full evaluation, 51,713 in all."""

_ALIASES = {"tq": "triviaqa", "2wiki": "2wikimultihopqa", "hotpot": "hotpotqa", "natural_questions": "nq"}
_SPLIT_WORDS = re.compile(r"(?<![a-z])(train|dev|val)")


def split_name(text: str) -> str:
    """train, dev or test, by the beginnings of words in the names that files use.

    >>> [split_name(name) for name in ("validation", "nq_dev7405", "train-stage_1", "retrieval_test")]
    ['dev', 'dev', 'train', 'test']
    """
    found = _SPLIT_WORDS.search(text.lower())
    return "test" if found is None else "train" if found[1] == "train" else "dev"


def _set_name(text: str) -> str:
    """A set's name as the first part of task ids, which a slash would end."""
    return _ALIASES.get(text, text).replace("/", "_")


def _mapping(row: Mapping[str, Any], key: str, where: str) -> Mapping[str, Any]:
    value = row.get(key)
    if value is not None and not isinstance(value, Mapping):
        raise DataInvalid(f"{where}: expected fields under {key!r}, got {_short(value)}")
    return value or {}


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}..."


def _as_list(value: Any) -> list[Any] | None:
    """Lists, tuples and numpy arrays as lists, a bare string as a list of one."""
    if isinstance(value, str):
        return [value]
    if hasattr(value, "tolist"):
        value = value.tolist()
    return list(value) if isinstance(value, (list, tuple)) else None


def _answers(value: Any, where: str, choices: Any = None) -> tuple[str, ...]:
    golds = _as_list(value)
    options = _as_list(choices) if choices is not None else None
    if golds and options and all(isinstance(gold, int) for gold in golds):
        if not all(0 <= gold < len(options) for gold in golds):
            raise DataInvalid(f"{where}: gold answers {_short(value)} are no positions among {len(options)} choices")
        golds = [options[gold] for gold in golds]
    if not golds or not all(isinstance(gold, (str, int, float)) for gold in golds):
        raise DataInvalid(f"{where}: expected a list of gold answers, got {_short(value)}")
    return tuple(str(gold) for gold in golds)


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise DataInvalid(f"{where}: expected a question, got {_short(value)}")
    return value


def _gold_titles(metadata: Any) -> tuple[str, ...]:
    facts = metadata.get("supporting_facts") if isinstance(metadata, Mapping) else None
    titles = facts.get("title") if isinstance(facts, Mapping) else None
    listed = _as_list(titles) if titles is not None else None
    return tuple(dict.fromkeys(str(title) for title in listed)) if listed else ()


def _from_parquet(row: Mapping[str, Any], where: str) -> Question:
    extra = _mapping(row, "extra_info", where)
    model = _mapping(row, "reward_model", where)
    verl = _mapping(row, "env_kwargs", where)
    source = _set_name(str(row.get("data_source") or verl.get("data_source") or ""))
    truth = verl.get("ground_truth") if model.get("ground_truth") is None else model["ground_truth"]
    target = truth.get("target") if isinstance(truth, Mapping) else truth
    golds = row.get("golden_answers") if target is None else target
    text = row.get("question") or verl.get("question")
    name = row.get("id")
    identifier = extra.get("index") if name is None else name
    if not source or identifier is None:
        raise DataInvalid(f"{where}: expected data_source and an id (or extra_info.index)")
    return Question(
        f"{source}/{split_name(str(extra.get('split', 'test')))}/{identifier}", source,
        _text(text, where), _answers(golds, where),
        gold_titles=_gold_titles(row.get("metadata")),
    )  # fmt: skip


def _from_json(row: Mapping[str, Any], where: str, data_source: str, split: str, number: int) -> Question:
    source = _set_name(str(row.get("dataset") or row.get("data_source") or data_source))
    given = str(row.get("split") or split)
    # Listed questions carry no id: the named part of a set and the line number identify them.
    unnamed = f"{re.sub(r'[^A-Za-z0-9_.-]', '_', given)}_{number}"
    identifier = unnamed if row.get("id") is None else row["id"]
    golds = row.get("golden_answers", row.get("answers"))
    return Question(
        f"{source}/{split_name(given)}/{identifier}", source, _text(row.get("question"), where),
        _answers(golds, where, row.get("choices")), gold_titles=_gold_titles(row.get("metadata")),
    )  # fmt: skip


def _parquet_rows(path: Path) -> Iterator[Mapping[str, Any]]:
    require("pyarrow", "search", "reading parquet question files")
    import pyarrow
    import pyarrow.parquet as parquet

    try:
        for batch in parquet.ParquetFile(path).iter_batches():
            yield from batch.to_pylist()
    except (pyarrow.ArrowException, OSError) as error:
        raise DataInvalid(f"{path}: not a readable parquet file ({error})") from error


def _json_rows(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for number, line in enumerate(_lines(path)):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DataInvalid(f"{path}, line {number + 1}: not JSON in UTF-8 ({error})") from error
        if not isinstance(row, dict):
            raise DataInvalid(f"{path}, line {number + 1}: expected an object, got {type(row).__name__}")
        yield number, row


def _lines(path: Path) -> Iterator[bytes]:
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as stream:
            yield from stream
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataInvalid(f"{path}: a damaged .gz file ({error}); fetch it again") from error


def read_questions(path: str | os.PathLike[str]) -> list[Question]:
    """Reads a question file in order.

    Args:
        path: `.parquet` (Search-R1, verl-agent), or `.jsonl[.gz]` (FlashRAG: `SET/SPLIT.jsonl`, or rows that name their
            set and split).

    Raises:
        DataMissing: No such file.
        DataInvalid: A row is no question; the message names it.
    """
    file = Path(path)
    if not file.is_file():
        raise DataMissing(f"questions: expected a .parquet, .jsonl or .jsonl.gz file at {str(path)!r}, found none")
    if file.suffix == ".parquet":
        rows = enumerate(_parquet_rows(file))
        found = [_from_parquet(row, f"{file}, row {number + 1}") for number, row in rows]
    else:
        stem = file.name.split(".")[0]
        found = [
            _from_json(row, f"{file}, line {number + 1}", file.absolute().parent.name or "questions", stem, number)
            for number, row in _json_rows(file)
        ]
    if not found:
        raise DataInvalid(f"{file}: holds no question")
    return found


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
