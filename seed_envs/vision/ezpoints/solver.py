"""Formulas over several numbers with the four operations: whether one has a given value, and which. All exact."""

from __future__ import annotations

from functools import lru_cache
from math import gcd

Ratio = tuple[int, int]
"""Numerator and denominator in lowest terms, the denominator positive."""
_Item = tuple[Ratio, tuple[str, ...], str]
"""(value, tokens, operator applied last or "")."""


@lru_cache(maxsize=4096)
def solve(values: tuple[int, ...], target: int) -> tuple[str, ...]:
    """Finds a formula that uses every value once.

    Args:
        values: Whole numbers, ascending.
        target: Value wanted.

    Returns:
        Tokens without redundant parentheses; empty if there is no such formula.
    """
    return _combine(tuple(((value, 1), (str(value),), "") for value in values), target)


def _combine(items: tuple[_Item, ...], target: int) -> tuple[str, ...]:
    """Replaces two items by a result from which the target can be reached, until one item is left."""
    if len(items) == 1:
        return items[0][1] if items[0][0] == (target, 1) else ()
    for i, left in enumerate(items):
        for j, right in enumerate(items):
            if i == j:
                continue
            rest = tuple(item for k, item in enumerate(items) if k not in (i, j))
            for operator, value in _results(left[0], right[0]):
                if reachable(tuple(sorted((*(item[0] for item in rest), value))), target):
                    tokens = (*_operand(left, operator, False), operator, *_operand(right, operator, True))
                    return _combine((*rest, (value, tokens, operator)), target)
    return ()


@lru_cache(maxsize=200_000)
def reachable(values: tuple[Ratio, ...], target: int) -> bool:
    """Whether some formula over all of ``values`` (sorted) equals ``target``."""
    if len(values) == 1:
        return values[0] == (target, 1)
    for i, left in enumerate(values):
        for j, right in enumerate(values):
            if i != j:
                rest = [value for k, value in enumerate(values) if k not in (i, j)]
                if any(reachable(tuple(sorted((*rest, value))), target) for _, value in _results(left, right)):
                    return True
    return False


@lru_cache(maxsize=100_000)
def _results(left: Ratio, right: Ratio) -> tuple[tuple[str, Ratio], ...]:
    """The operations on two values."""
    (a, b), (c, d) = left, right
    found = [("+", _ratio(a * d + c * b, b * d)), ("*", _ratio(a * c, b * d)), ("-", _ratio(a * d - c * b, b * d))]
    if c:
        found.append(("/", _ratio(a * d, b * c)))
    return tuple(found)


def _ratio(numerator: int, denominator: int) -> Ratio:
    divisor = gcd(numerator, denominator) * (1 if denominator > 0 else -1)
    return numerator // divisor, denominator // divisor


def _operand(item: _Item, operator: str, on_right: bool) -> tuple[str, ...]:
    """The tokens of an item, in parentheses where leaving them out would change the value."""
    _, tokens, inner = item
    weaker = inner in ("+", "-") and operator in ("*", "/")
    same_level = bool(inner) and (inner in ("+", "-")) == (operator in ("+", "-"))
    return ("(", *tokens, ")") if weaker or (same_level and on_right and operator in ("-", "/")) else tokens
