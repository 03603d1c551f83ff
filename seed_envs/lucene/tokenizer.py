"""Word segmentation equal to Lucene 9's StandardTokenizer: Unicode Standard Annex 29 with Unicode 12.1 data.

Text of ASCII characters takes a regular expression; everything else an automaton over Unicode property classes.
It does not lower-case, stem or drop anything (see `analyzer`), and the classes are frozen: a newer Python or Unicode
version never changes a token.
"""

from __future__ import annotations

import re
from array import array
from functools import lru_cache
from importlib import resources
from typing import NamedTuple

from seed_envs.lucene.automaton import Automaton, Expr, alt, compile_expr, opt, plus, seq, star, symbol

MAX_TOKEN_UNITS = 255
"""Longest token in UTF-16 code units; the scanner sees no further than this from the start of a token."""

_ASCII_WORD = re.compile(r"\w+(?:(?:(?<=[A-Za-z])[:.'](?=[A-Za-z])|(?<=[0-9])[,;.'](?=[0-9]))\w+)*", re.ASCII)
_ASCII_BREAK = re.compile(r"[ \n\r\t]+")


class _Tables(NamedTuple):
    class_of: array[int]
    words: Automaton


def _grammar() -> Expr:
    """The token rules; property letters are explained at the top of the class table."""
    extend = star(symbol("x"))
    extend_no_selector = star(symbol("x", "v"))

    def ex(letters: str) -> Expr:
        return seq(symbol(letters), extend)

    zwj = symbol("z")
    join = star(ex("_"))
    emoji_char = seq(star(zwj), symbol("E"), extend_no_selector, opt(symbol("V")))
    emoji_modified = seq(opt(seq(star(zwj), symbol("B"), extend_no_selector)), symbol("M"), extend_no_selector)
    emoji = alt(emoji_char, emoji_modified)
    emoji_token = alt(
        seq(emoji, alt(star(seq(zwj, emoji)), seq(plus(symbol("t")), symbol("T")))),
        seq(symbol("k"), extend_no_selector, opt(symbol("V")), symbol("c"), extend_no_selector),
        seq(ex("R"), ex("R")),
    )
    numbers = seq(ex("N"), star(seq(alt(join, ex("n")), ex("N"))))
    letters = seq(ex("LH"), star(seq(alt(join, ex("m")), ex("LH"))))
    hebrew = seq(ex("H"), alt(ex("q"), seq(ex("Q"), ex("H"))))
    katakana = seq(ex("K"), star(seq(join, ex("K"))))
    group = alt(katakana, plus(alt(hebrew, numbers, letters)))
    word = seq(join, group, star(seq(plus(ex("_")), group)), join)
    return alt(emoji_token, word, plus(ex("C")), ex("J"), ex("I"))


@lru_cache(maxsize=1)
def _tables() -> _Tables:
    classes = [""]
    class_of = array("B", bytes(0x110000))
    source = resources.files("seed_envs.lucene") / "data" / "unicode_12_1.txt"
    for line in source.read_text(encoding="ascii").splitlines():
        if line.startswith("#"):
            continue
        letters, *ranges = line.split()
        for item in ranges:
            first, _, last = item.partition("-")
            start, stop = int(first, 16), int(last or first, 16) + 1
            class_of[start:stop] = array("B", bytes([len(classes)])) * (stop - start)
        classes.append(letters)
    return _Tables(class_of, compile_expr(_grammar(), classes))


def _scan(text: str) -> list[str]:
    """Longest-match scan of one piece of text by the automaton."""
    class_of, (rows, accepting) = _tables()
    tokens = []
    size = len(text)
    start = 0
    while start < size:
        state, end, position, units = 0, start, start, 0
        while position < size:
            code = ord(text[position])
            units += 1 if code < 0x10000 else 2
            if units > MAX_TOKEN_UNITS:
                break
            state = rows[state][class_of[code]]
            if state < 0:
                break
            position += 1
            if accepting[state]:
                end = position
        if end > start:
            tokens.append(text[start:end])
            start = end
        elif text[start] == "_":
            start = _after_joiners(text, start)
        else:
            start += 1
    return tokens


def _after_joiners(text: str, start: int) -> int:
    """The next start that can give a token when underscores at `start` gave none: the last ones before the run ends."""
    end = start
    while end < len(text) and text[end] == "_":
        end += 1
    return max(start + 1, end - MAX_TOKEN_UNITS + 1)


def tokenize(text: str) -> list[str]:
    """Splits text into words.

    Args:
        text: any text; lone surrogates are treated as separators.

    Returns:
        The tokens in order, unchanged in spelling, each at most 255 UTF-16 units long.

    >>> tokenize("O'Neil paid 1,742.5 for snake_case")
    ["O'Neil", 'paid', '1,742.5', 'for', 'snake_case']
    """
    if text.isascii():
        return _ascii(text)
    tokens: list[str] = []
    for piece in _ASCII_BREAK.split(text):
        tokens += _ascii(piece) if piece.isascii() else _scan(piece)
    return tokens


def _ascii(text: str) -> list[str]:
    tokens = _ASCII_WORD.findall(text)
    if "_" in text:
        tokens = [token for token in tokens if token.strip("_")]
    if len(text) > MAX_TOKEN_UNITS and any(len(token) > MAX_TOKEN_UNITS for token in tokens):
        return _scan(text)
    return tokens
