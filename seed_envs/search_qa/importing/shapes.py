"""The recogniser: one table of the forms in which the field publishes questions and passages.

The first record of a file decides; the first row of the table that fits wins, so the more telling ones stand first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from seed_envs.errors import DataInvalid
from seed_envs.search_qa.importing import passage_shapes as p
from seed_envs.search_qa.importing import question_shapes as q

Holds = Literal["questions", "passages", "neither"]


@dataclass(frozen=True)
class Shape:
    """One published form.

    Attributes:
        name: For messages and receipts.
        holds: What its records are.
        needs: Fields that the first record must have.
        read: A record and its place to what it holds; lists for passages.
        when: A further condition on record and path.
    """

    name: str
    holds: Holds
    needs: frozenset[str]
    read: Callable[[Mapping[str, Any], str], Any]
    when: Callable[[Mapping[str, Any], Path], bool] = lambda record, path: True

    def fits(self, record: Mapping[str, Any], path: Path) -> bool:
        """Whether a file whose first record this is has this form."""
        return self.needs <= record.keys() and self.when(record, path)


def _shape(name: str, holds: Holds, needs: str, read: Callable[..., Any], when: Any = None) -> Shape:
    return Shape(name, holds, frozenset(needs.split()), read, *((when,) if when else ()))


def _any(*names: str) -> Callable[[Mapping[str, Any], Path], bool]:
    """At least one of these fields is there, whatever the case of its name."""
    return lambda record, path: any(key.lower() in names for key in record)


def _of_queries(record: Mapping[str, Any], path: Path) -> bool:
    return any(word in path.name.lower() for word in ("queries", "topics"))


def _trivia(record: Mapping[str, Any], path: Path) -> bool:
    lowered = {key.lower(): value for key, value in record.items()}
    return "question" in lowered and isinstance(lowered.get("answer"), Mapping)


def _columns(*counts: int) -> Callable[[Mapping[str, Any], Path], bool]:
    return lambda record, path: len(record) in counts


def _list_in_second(record: Mapping[str, Any], path: Path) -> bool:
    return len(record) == 2 and record["column_2"].strip()[:1] == "[" and record["column_2"].strip()[-1:] == "]"


def _judged(record: Mapping[str, Any], path: Path) -> bool:
    return len(record) == 4 and record["column_2"] in ("0", "Q0") and record["column_4"].strip("-").isdigit()


def _unread(reason: str) -> Callable[..., q.Skip]:
    return lambda record, place: q.Skip(reason)


SHAPES: tuple[Shape, ...] = (
    _shape("Search-R1 or verl", "questions", "data_source", q.read_verl, _any(*q.VERL_FIELDS)),
    _shape("BrowseComp-Plus", "questions", "query_id query answer", q.read_browsecomp),
    _shape("KILT task", "questions", "input output", q.read_kilt_task),
    _shape("PopQA", "questions", "question possible_answers", q.read_popqa),
    _shape("SimpleQA", "questions", "problem answer", q.read_simpleqa),
    _shape("MuSiQue", "questions", "question paragraphs", q.read_paragraphs),
    _shape("HotpotQA or 2WikiMultihopQA", "questions", "question context", q.read_hotpot, _any(*q.HOTPOT_FIELDS)),
    _shape("TriviaQA", "questions", "", q.read_trivia, _trivia),
    _shape("FlashRAG", "questions", "question golden_answers", q.read_flashrag),
    _shape("listed questions", "questions", "question answers dataset", q.read_flashrag),
    _shape("questions and answers", "questions", "", q.read_plain, _any("question")),
    _shape("KILT pages", "passages", "wikipedia_title text", p.read_kilt_page),
    _shape("passages in one string", "passages", "contents", p.read_contents),
    _shape("BrowseComp-Plus documents", "passages", "docid text url", p.read_browsecomp_document),
    _shape("MS MARCO segments", "passages", "docid segment", p.read_marco_segment),
    _shape("MS MARCO documents", "passages", "docid title body", p.read_marco_document),
    _shape("MS MARCO passages", "passages", "pid passage", p.read_marco_passage),
    _shape("BEIR queries", "questions", "_id text", q.read_beir_queries, _of_queries),
    _shape("passages with titles", "passages", "text", p.read_titled, _any("title", *p.IDS)),
    _shape("relevance judgements", "neither", "query-id corpus-id score", _unread("relevance judgements")),
    _shape("relevance judgements", "neither", "column_1 column_4", _unread("relevance judgements"), _judged),
    _shape("queries", "neither", "column_1 column_2", _unread("queries without answers"), _of_queries),
    _shape("DPR questions", "questions", "column_1 column_2", q.read_dpr_pair, _list_in_second),
    _shape("tables of passages", "passages", "column_1", p.read_columns, _columns(2, 3, 4)),
)  # fmt: skip
"""The forms, the more telling ones first."""

_COLUMNS = frozenset({
    *(name for shape in SHAPES for name in shape.needs if not name.startswith("column_")),
    *p.IDS, "title", "url", "answer", "metadata", "prop", "subj", "obj",
})  # fmt: skip


def is_header(fields: Sequence[str]) -> bool:
    """Whether the first line of a table names its columns: two names that published tables use, and no prose."""
    names = [field.strip().lower() for field in fields]
    return sum(name in _COLUMNS for name in names) >= 2 and all(len(name) <= 40 and " " not in name for name in names)


def recognise(record: Any, path: Path, place: str) -> Shape:
    """The form of a file.

    Args:
        record: Its first record.
        path: The file; some forms differ by name alone.
        place: Where the record stands, for the message.

    Raises:
        DataInvalid: The record has no known form; its fields are named.
    """
    if not isinstance(record, Mapping):
        raise DataInvalid(f"{place}: expected an object, got {type(record).__name__}")
    shape = next((shape for shape in SHAPES if shape.fits(record, path)), None)
    if shape is None:
        known = ", ".join(dict.fromkeys(shape.name for shape in SHAPES if shape.holds != "neither"))
        raise DataInvalid(f"{place}: fields {q.short(sorted(record))} fit no known form ({known})")
    return shape
