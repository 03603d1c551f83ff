"""From text to index terms, equal to Anserini's default English analyzer on Lucene 9.

The chain: words (`tokenizer`), drop a final possessive 's, lower-case each code point, drop 33 stop words, Porter stem.
It deliberately has no query syntax, no synonyms and no other language.
"""

from __future__ import annotations

from functools import lru_cache

from seed_envs.lucene.porter import stem
from seed_envs.lucene.tokenizer import tokenize

_STOP_WORD_LIST = """a an and are as at be but by for if in into is it no not of on or such that the their then there
these they this to was will with"""
STOP_WORDS = frozenset(_STOP_WORD_LIST.split())
ANALYZER_ID = "standard-unicode12.1+possessive+lowercase+stop33+porter/1"
"""Names the analyzer in fingerprints; changes whenever any token could."""

_APOSTROPHES = "'\u2019\uff07"


def _lower(word: str) -> str:
    """Simple lower-casing per code point: no final-sigma rule, and U+0130 becomes a plain i."""
    lowered = word.lower()
    if word.isascii() or ("\u0130" not in word and "\u03a3" not in word):
        return lowered
    return "".join("i" if character == "\u0130" else character.lower() for character in word)


@lru_cache(maxsize=1 << 17)
def term_of(word: str) -> str:
    """The index term of one word, or an empty string when the word is not indexed.

    Args:
        word: one token as `tokenize` returns it.

    Returns:
        The term, "" for stop words.
    """
    if len(word) >= 2 and word[-1] in "sS" and word[-2] in _APOSTROPHES:
        word = word[:-2]
    word = _lower(word)
    if not word or word in STOP_WORDS:
        return ""
    return stem(word)


def analyze(text: str) -> list[str]:
    """Analyses text as Lucene does.

    Args:
        text: a passage or a query.

    Returns:
        Terms in order, repeats kept.

    >>> analyze("The QUILL's generalization of news")
    ['quill', 'gener', 'new']
    """
    return [term for word in tokenize(text) if (term := term_of(word))]
