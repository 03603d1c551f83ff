"""One spelling for question sets and splits, whatever files and folders call them."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

_SPELLINGS = {
    "nq": ("nq_open", "nq-open", "natural_questions", "natural-questions", "naturalquestions"),
    "triviaqa": ("trivia_qa", "trivia", "tq"),
    "popqa": (),
    "hotpotqa": ("hotpot_qa", "hotpot"),
    "2wikimultihopqa": ("2wikimultihop", "2wikimqa", "2wiki"),
    "musique": (),
    "bamboogle": (),
    "simpleqa": ("simple_qa", "simple-qa"),
    "browsecomp-plus": ("browsecomp_plus", "browsecompplus"),
}
_ALIASES = {spelling: name for name, others in _SPELLINGS.items() for spelling in (name, *others)}
_PREFIX = re.compile(r"searchr1_", re.IGNORECASE)
_SPLIT_WORDS = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("dev", "devel", "development", "val", "valid", "validation"), "dev"),
    **dict.fromkeys(("test", "testing"), "test"),
}
_SUFFIXES = (".gz", ".jsonl", ".json", ".parquet", ".tsv", ".csv", ".txt", ".qa")


@lru_cache(maxsize=256)
def split_in(text: str) -> str:
    """train, dev or test, by the first whole word in a name that says so; "" where none does.

    >>> [split_in(name) for name in ("validation", "nq_dev7405", "train-stage_1", "trainspotting_test", "r1s")]
    ['dev', 'dev', 'train', 'test', '']
    """
    found = (_SPLIT_WORDS.get(word) for word in re.findall(r"[a-z]+", text.lower()))
    return next((name for name in found if name), "")


@lru_cache(maxsize=256)
def set_name(text: str) -> str:
    """A set's name as the first part of task ids, which a slash would end.

    >>> [set_name(name) for name in ("searchR1_nq", "Bamboogle", "tq", "owner/set")]
    ['nq', 'bamboogle', 'triviaqa', 'owner_set']
    """
    bare = _PREFIX.sub("", text, count=1)
    return _ALIASES.get(bare.lower(), bare).replace("/", "_")


@lru_cache(maxsize=256)
def set_in(stem: str) -> str:
    """The known set that a file name mentions as a word, or "".

    >>> [set_in(stem) for stem in ("2wiki_500", "NQ-open.dev", "hotpot_dev_distractor_v1", "test")]
    ['2wikimultihopqa', 'nq', 'hotpotqa', '']
    """
    lowered = stem.lower()
    for spelling in sorted(_ALIASES, key=len, reverse=True):
        if re.search(rf"(?<![a-z0-9]){re.escape(spelling)}(?![a-z0-9])", lowered):
            return _ALIASES[spelling]
    return ""


def stem_of(path: Path) -> str:
    """A file's name without the suffixes of its format."""
    name = path.name
    while suffix := next((s for s in _SUFFIXES if name.lower().endswith(s) and len(name) > len(s)), ""):
        name = name[: -len(suffix)]
    return name
