"""Relations between entities: how a sentence states one, and how a reader gets the fact back out of a sentence.

Each relation has several wordings with the subject `{s}` and the object `{o}`. Writing and reading use the same table,
so that every stated fact can be read, and a reader needs nothing but the text. Padding never uses these wordings.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

NAME = r"[A-Z][\w'’-]*(?: [A-Z][\w'’-]*)*"
YEAR = r"\d{4}"
WORD = r"[a-z][a-z -]*[a-z]"


@dataclass(frozen=True)
class Relation:
    """One relation.

    Attributes:
        name: Its name.
        wordings: Sentences that state it.
        pattern: Regular expression of an object.
        query: Words to search for beside the subject.
        subject_pattern: Regular expression of a subject, for reading backwards.
    """

    name: str
    wordings: tuple[str, ...]
    pattern: str
    query: str
    subject_pattern: str = NAME


_UNIVERSITY = r"University of [A-Z]\w*"

_TABLE = (
    Relation("author", ("{s} is a novel by {o}.", "{s} is a novel that was written by {o}."), NAME, "novel"),
    Relation("director", ("{s} is a film directed by {o}.", "{s} is a film that {o} directed."), NAME, "film"),
    Relation("performer", ("{s} is an album by {o}.", "{s} is an album recorded by {o}."), NAME, "album"),
    Relation("year", ("{s} came out in {o}.", "{s} was first released in {o}."), YEAR, "released"),
    Relation("occupation", ("{s} is a {o} by profession.", "{s} works as a {o}."), WORD, "profession"),
    Relation("birth_city", ("{s} was born in {o}.", "The birthplace of {s} is {o}."), NAME, "born birthplace"),
    Relation(
        "birth_year", ("{s} came into the world in {o}.", "The year of birth of {s} is {o}."), YEAR, "year of birth"
    ),
    Relation("father", ("{s} is a child of {o}.", "The father of {s} is {o}."), NAME, "father child"),
    Relation("university", ("{s} studied at the {o}.", "{s} has a degree of the {o}."), _UNIVERSITY, "studied degree"),
    Relation("country", ("{s} is a city in {o}.", "{s} is one of the cities of {o}."), NAME, "city"),
    Relation("river", ("{s} lies on the {o}.", "The {o} flows through {s}."), r"[A-Z]\w* River", "river"),
    Relation(
        "city_founded", ("{s} was settled in {o}.", "The town charter of {s} dates from {o}."), YEAR, "settled charter"
    ),
    Relation("capital", ("The capital of {s} is {o}.", "{s} is governed from its capital {o}."), NAME, "capital"),
    Relation(
        "currency", ("The currency of {s} is the {o}.", "People in {s} pay with the {o}."), r"[a-z]+", "currency pay"
    ),
    Relation(
        "language", ("The official language of {s} is {o}.", "Most people of {s} speak {o}."), r"[A-Z]\w*", "language"
    ),
    Relation("founder", ("{s} was founded by {o}.", "{s} was started by {o}."), NAME, "founded"),
    Relation("industry", ("{s} makes {o}.", "{s} is a producer of {o}."), WORD, "company makes"),
    Relation("seat", ("{s} has its seat in {o}.", "The head office of {s} is in {o}."), NAME, "seat head office"),
    Relation("company_year", ("{s} opened for business in {o}.", "{s} has traded since {o}."), YEAR, "opened traded"),
    Relation(
        "university_city",
        ("The {s} is a university in {o}.", "The {s} has its campus in {o}."),
        NAME,
        "university campus",
        _UNIVERSITY,
    ),
    Relation(
        "university_year",
        ("The {s} admitted its first students in {o}.", "The {s} received its royal seal in {o}."),
        YEAR,
        "admitted seal",
        _UNIVERSITY,
    ),
)
RELATIONS = {relation.name: relation for relation in _TABLE}
"""All relations by name. Sentences begin a text or follow a full stop, which is how a reader finds them."""


def state(relation: str, subject: str, value: str, wording: int) -> str:
    """A sentence that states a fact."""
    wordings = RELATIONS[relation].wordings
    return wordings[wording % len(wordings)].format(s=subject, o=value)


@lru_cache(maxsize=4096)
def _readers(relation: str, known: str, forward: bool) -> tuple[re.Pattern[str], ...]:
    entry = RELATIONS[relation]
    unknown = f"(?P<found>{entry.pattern if forward else entry.subject_pattern})"
    patterns = []
    for wording in entry.wordings:
        text = re.escape(wording).replace(r"\{s\}", "{s}").replace(r"\{o\}", "{o}")
        fixed = re.escape(known)
        body = text.replace("{s}", fixed if forward else unknown).replace("{o}", unknown if forward else fixed)
        patterns.append(re.compile(rf"(?:^|(?<=\. )){body}"))
    return tuple(patterns)


def read_object(relation: str, subject: str, texts: Iterable[str]) -> str | None:
    """The object of a fact about a subject, as the first of the texts states it; None if none does."""
    return _read(_readers(relation, subject, True), texts)


def read_subject(relation: str, value: str, texts: Iterable[str]) -> str | None:
    """The subject of which the texts state that it has this object."""
    return _read(_readers(relation, value, False), texts)


def _read(patterns: tuple[re.Pattern[str], ...], texts: Iterable[str]) -> str | None:
    for text in texts:
        for pattern in patterns:
            if match := pattern.search(text):
                return match["found"]
    return None
