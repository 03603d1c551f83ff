"""How published passage collections are read: a record to passages with id, title and text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from seed_envs.errors import DataInvalid
from seed_envs.search_qa.importing.question_shapes import Skip, as_list, short

IDS = ("id", "_id", "docid", "pid", "idx", "passage_id", "psg_id", "doc_id")
"""Names under which ids are published, in the order in which they are looked for."""
_SECTION = "Section::::"
_FRONT_MATTER = re.compile(r"---\n(?:.*\n)*?title:[ \t]*(.+)\n(?:.*\n)*?---\n")


class Passage(NamedTuple):
    """A passage as a record states it.

    Attributes:
        id: Its id, None where it has none.
        title: Its title, "" where it has none.
        text: The rest.
        contents: The whole passage as one string, where it is published so.
    """

    id: str | None
    title: str
    text: str
    contents: str | None = None

    def stored(self, identifier: str) -> dict[str, str]:
        """The line of a collection under an id."""
        if self.contents is not None:
            return {"id": identifier, "contents": self.contents}
        return {"id": identifier, "title": self.title, "text": self.text}


Record = Mapping[str, Any]


def _string(record: Record, key: str, place: str) -> str:
    """A field as text; null counts as empty."""
    value = record.get(key)
    if value is not None and not isinstance(value, str):
        raise DataInvalid(f"{place}: expected text under {key!r}, got {short(value)}")
    return value or ""


def _id(record: Record, place: str, names: tuple[str, ...] = IDS) -> str | None:
    key = next((name for name in names if record.get(name) is not None), None)
    if key is None:
        return None
    if isinstance(record[key], bool) or not isinstance(record[key], (str, int)) or record[key] == "":
        raise DataInvalid(f"{place}: expected an id under {key!r}, got {short(record[key])}")
    return str(record[key])


def _made(passage: Passage) -> list[Passage | Skip]:
    blank = not (passage.contents or f"{passage.title}{passage.text}").strip()
    return [Skip("the passage is empty") if blank else passage]


def read_contents(record: Record, place: str) -> list[Passage | Skip]:
    """wiki-18, Search-R1, Anserini's JsonCollection: title line and text in one string."""
    return _made(Passage(_id(record, place), "", "", _string(record, "contents", place)))


def read_kilt_page(record: Record, place: str) -> list[Passage | Skip]:
    """A page of KILT's knowledge source: one passage per paragraph, numbered as KILT's provenance counts them."""
    page, title = _id(record, place, ("wikipedia_id", "_id", "id")), _string(record, "wikipedia_title", place)
    paragraphs = as_list(record["text"])
    if paragraphs is None or not all(isinstance(paragraph, str) for paragraph in paragraphs):
        raise DataInvalid(f"{place}: expected a list of paragraphs under 'text', got {short(record['text'])}")
    return [
        Passage(f"{page}:{number}" if page else None, title, paragraph.strip())
        for number, paragraph in enumerate(paragraphs)
        if paragraph.strip() not in ("", title) and not paragraph.startswith(_SECTION)
    ] or [Skip("the page has no paragraph")]


def read_browsecomp_document(record: Record, place: str) -> list[Passage | Skip]:
    """BrowseComp-Plus: the title stands in the front matter of the text."""
    text = _string(record, "text", place)
    head = _FRONT_MATTER.match(text[:4096])
    return _made(Passage(_id(record, place), head[1].strip() if head else "", text))


def read_titled(record: Record, place: str) -> list[Passage | Skip]:
    """BEIR, DPR and all others with a text and perhaps a title."""
    return _made(Passage(_id(record, place), _string(record, "title", place), _string(record, "text", place)))


def read_marco_passage(record: Record, place: str) -> list[Passage | Skip]:
    """MS MARCO v2 passages."""
    return _made(Passage(_id(record, place, ("pid",)), "", _string(record, "passage", place)))


def read_marco_segment(record: Record, place: str) -> list[Passage | Skip]:
    """MS MARCO v2.1 segments."""
    return _made(Passage(_id(record, place), _string(record, "title", place), _string(record, "segment", place)))


def read_marco_document(record: Record, place: str) -> list[Passage | Skip]:
    """MS MARCO v2 documents."""
    return _made(Passage(_id(record, place), _string(record, "title", place), _string(record, "body", place)))


def read_columns(record: Record, place: str) -> list[Passage | Skip]:
    """Tables without a header: id and text (MS MARCO), with a title behind (ColBERT), or id, address, title, body."""
    fields = list(record.values())
    title, text = {2: ("", 1), 3: (fields[-1], 1), 4: (fields[-2], 3)}[len(fields)]
    return _made(Passage(fields[0], title, fields[text]))
