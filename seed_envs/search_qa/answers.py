"""Scores of an answer against gold answers: exact match, substring match, token F1, and a lenient exact match.

The official numbers follow the Natural Questions convention as Search-R1 and FlashRAG compute them (see the fixed
examples in the tests). Passages are never looked at here, and nothing here knows about turns or rewards.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

_PUNCTUATION = string.punctuation.encode("ascii")
_PUNCTUATION_TO_BLANKS = {ord(c): " " for c in string.punctuation if unicodedata.category(c)[0] == "P"}
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_ARTICLE_WORDS = frozenset({"a", "an", "the"})
_CLOSED_ANSWERS = frozenset({"yes", "no", "noanswer"})


class AnswerScores(NamedTuple):
    """Scores of one answer; all between 0 and 1."""

    em: float
    sub_em: float
    f1: float
    em_lenient: float


NO_SCORES = AnswerScores(0.0, 0.0, 0.0, 0.0)


@lru_cache(maxsize=8192)
def normalise(text: str) -> str:
    """Lower-case, delete ASCII punctuation, drop the articles, collapse white space.

    >>> [normalise(t) for t in ("U.S.A.", "twenty-one", "The Velk  River")]
    ['usa', 'twentyone', 'velk river']
    """
    return _without_articles(_stripped(text))


def _stripped(text: str) -> str:
    """Lower case without ASCII punctuation, whose bytes occur in UTF-8 only as themselves."""
    return text.lower().encode("utf-8", "surrogatepass").translate(None, _PUNCTUATION).decode("utf-8", "surrogatepass")


def _without_articles(stripped: str) -> str:
    words = stripped.split()
    if "".join(words).isalnum():  # then an article is a whole word, which is several times faster to see
        return " ".join([word for word in words if word not in _ARTICLE_WORDS])
    return " ".join(_ARTICLES.sub(" ", stripped).split())


def _with_articles(text: str) -> str:
    return " ".join(_stripped(text).split())


def exact_match(answer: str, golds: Sequence[str], legacy: bool = False) -> float:
    """1.0 if the normalised answer equals a normalised gold.

    Args:
        answer: The answer.
        golds: Accepted answers.
        legacy: Also let a gold that normalises to nothing ("The") match any answer that does. Otherwise such golds are
            compared with their articles kept, and literally if nothing remains even then.
    """
    return float(any(_equal(answer, gold, legacy) for gold in golds))


def _equal(answer: str, gold: str, legacy: bool) -> bool:
    wanted = normalise(gold)
    if wanted or legacy:
        return wanted == normalise(answer)
    kept = _with_articles(gold)
    if kept:
        return kept == _with_articles(answer)
    return gold.strip() == answer.strip()


def substring_match(answer: str, golds: Sequence[str], legacy: bool = False) -> float:
    """1.0 if a normalised gold is a substring of the normalised answer; empty golds count in legacy mode only."""
    found = normalise(answer)
    wanted = [normalise(gold) for gold in golds]
    return float(any(gold in found for gold in wanted if gold or legacy))


def token_f1(answer: str, golds: Sequence[str]) -> float:
    """Bag-of-tokens F1, the best over the golds; yes, no and noanswer match only themselves.

    >>> token_f1("the Velk River bridge", ["Velk River"])
    0.8
    """
    found = normalise(answer)
    best = 0.0
    for gold in golds:
        wanted = normalise(gold)
        if found != wanted and (found in _CLOSED_ANSWERS or wanted in _CLOSED_ANSWERS):
            continue
        answer_tokens, gold_tokens = found.split(), wanted.split()
        if not set(answer_tokens).isdisjoint(gold_tokens):
            common = sum((Counter(answer_tokens) & Counter(gold_tokens)).values())
            precision, recall = common / len(answer_tokens), common / len(gold_tokens)
            best = max(best, 2 * precision * recall / (precision + recall))
    return best


@lru_cache(maxsize=4096)
def gold_forms(answers: tuple[str, ...]) -> tuple[str, ...]:
    """The normalised golds that are not empty."""
    return tuple(gold for answer in answers if (gold := normalise(answer)))


def contains_answer(passages: Sequence[str], normalised_golds: Sequence[str]) -> bool:
    """Whether a passage, normalised, has one of the golds as whole words; golds must be normalised and not empty."""
    # Dropping articles and blanks adds no word, so a gold's longest word must be in the text already.
    everything = _stripped("\n".join(passages))
    possible = [gold for gold in normalised_golds if max(gold.split(), key=len) in everything]
    return bool(possible) and any(_has_words(_stripped(passage), possible) for passage in passages)


def _has_words(stripped: str, golds: Sequence[str]) -> bool:
    if any(f" {gold} " in stripped for gold in golds):
        return True
    text = f" {_without_articles(stripped)} "
    return any(f" {gold} " in text for gold in golds)


@lru_cache(maxsize=2048)
def lenient_form(text: str) -> str:
    """A spelling-tolerant form: NFKC, accents stripped, every Unicode punctuation mark a blank, then `normalise`."""
    if text.isascii():
        return normalise(text.translate(_PUNCTUATION_TO_BLANKS))
    folded = unicodedata.normalize("NFKC", text)
    stripped = "".join(c for c in unicodedata.normalize("NFD", folded) if not unicodedata.combining(c))
    spaced = "".join(" " if unicodedata.category(c)[0] == "P" else c for c in stripped)
    return normalise(spaced)


def lenient_match(answer: str, golds: Sequence[str]) -> float:
    """1.0 if the lenient forms are equal and not empty; an additional metric, never the reward."""
    found = lenient_form(answer)
    return float(any(found and found == lenient_form(gold) for gold in golds))


def score_answer(answer: str, golds: Sequence[str], legacy: bool = False) -> AnswerScores:
    """All scores of one answer.

    Args:
        answer: What the agent answered.
        golds: Accepted answers.
        legacy: Reproduce how empty golds were treated in published numbers.
    """
    return AnswerScores(
        exact_match(answer, golds, legacy),
        substring_match(answer, golds, legacy),
        token_f1(answer, golds),
        lenient_match(answer, golds),
    )
