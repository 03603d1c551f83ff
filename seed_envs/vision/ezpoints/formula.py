"""Exact value of a formula given as tokens: recursive descent over fractions. Text is never evaluated.

Grammar (``signed`` only where asked for)::

    sum     = product {("+" | "-") product}
    product = factor {("*" | "/") factor}
    factor  = number | "(" sum ")" | signed
    signed  = ("+" | "-") factor

Digits are not joined (``1 0`` is not ten), there is no power and no floor division.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

MAX_TOKENS = 64
MAX_DEPTH = 20


class FormulaError(ValueError):
    """The tokens are not a formula; the message says why."""


class _Parser:
    """One pass over the tokens; every method consumes what it parses."""

    def __init__(self, tokens: Sequence[str], signs: bool) -> None:
        self._tokens = tokens
        self._signs = ("+", "-") if signs else ()
        self._position = 0
        self._depth = 0

    def _peek(self) -> str:
        return self._tokens[self._position] if self._position < len(self._tokens) else ""

    def whole(self) -> Fraction:
        value = self._sum()
        if self._position < len(self._tokens):
            raise FormulaError(f"unexpected {self._peek()!r} at token {self._position + 1}")
        return value

    def _sum(self) -> Fraction:
        value = self._product()
        while (operator := self._peek()) in ("+", "-"):
            self._position += 1
            right = self._product()
            value = value + right if operator == "+" else value - right
        return value

    def _product(self) -> Fraction:
        value = self._factor()
        while (operator := self._peek()) in ("*", "/"):
            self._position += 1
            right = self._factor()
            if operator == "/" and right == 0:
                raise FormulaError("division by zero")
            value = value * right if operator == "*" else value / right
        return value

    def _factor(self) -> Fraction:
        token = self._peek()
        if not token:
            raise FormulaError("the formula ends where a number is needed")
        self._position += 1
        if token.isascii() and token.isdigit():
            return Fraction(int(token))
        if token != "(" and token not in self._signs:
            raise FormulaError(f"{token!r} at token {self._position} where a number is needed")
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise FormulaError(f"nested more than {MAX_DEPTH} deep")
        if token in self._signs:
            value = self._factor() if token == "+" else -self._factor()
        else:
            value = self._sum()
            if self._peek() != ")":
                raise FormulaError("a parenthesis is not closed")
            self._position += 1
        self._depth -= 1
        return value


def evaluate(tokens: Sequence[str], signs: bool = False) -> Fraction:
    """Computes the value of a formula.

    Args:
        tokens: Numbers as decimal digits, ``+ - * / ( )``; blanks must have been removed.
        signs: Whether plus and minus signs may stand before a number or a parenthesis.

    Raises:
        FormulaError: If the tokens are not a formula, divide by zero, or exceed the caps.
    """
    if len(tokens) > MAX_TOKENS:
        raise FormulaError(f"{len(tokens)} tokens; at most {MAX_TOKENS} are read")
    return _Parser(tokens, signs).whole()
