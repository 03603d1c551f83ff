"""Regular expressions over sets of properties, compiled to a table-driven automaton with longest-match semantics.

The word segmentation rules need the *longest* match of several alternatives, which a backtracking engine does not give.
This module knows nothing of Unicode or of words: symbols are strings of property letters.
It deliberately offers no syntax: expressions are built by calling functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias


class _Symbol(NamedTuple):
    any_of: frozenset[str]
    none_of: frozenset[str]


class _Sequence(NamedTuple):
    parts: tuple[Expr, ...]


class _Choice(NamedTuple):
    parts: tuple[Expr, ...]


class _Star(NamedTuple):
    part: Expr


Expr: TypeAlias = "_Symbol | _Sequence | _Choice | _Star"


def symbol(any_of: str, none_of: str = "") -> Expr:
    """One symbol that has any property of `any_of` and none of `none_of`."""
    return _Symbol(frozenset(any_of), frozenset(none_of))


def seq(*parts: Expr) -> Expr:
    """All parts, one after the other."""
    return _Sequence(parts)


def alt(*parts: Expr) -> Expr:
    """One of the parts."""
    return _Choice(parts)


def star(part: Expr) -> Expr:
    """Any number of repeats, none included."""
    return _Star(part)


def plus(part: Expr) -> Expr:
    """One or more repeats."""
    return seq(part, star(part))


def opt(part: Expr) -> Expr:
    """The part or nothing."""
    return alt(part, seq())


class Automaton(NamedTuple):
    """A deterministic automaton: `rows[state][symbol class]` is the next state, -1 when no match can go on."""

    rows: list[list[int]]
    accepting: list[bool]


class _Nfa:
    def __init__(self) -> None:
        self.jumps: list[list[int]] = []
        self.moves: list[list[tuple[_Symbol, int]]] = []

    def _state(self) -> int:
        self.jumps.append([])
        self.moves.append([])
        return len(self.jumps) - 1

    def add(self, expr: Expr) -> tuple[int, int]:
        """Adds states for `expr`; returns its first and last state."""
        start = self._state()
        if isinstance(expr, _Symbol):
            end = self._state()
            self.moves[start].append((expr, end))
        elif isinstance(expr, _Sequence):
            end = start
            for part in expr.parts:
                first, last = self.add(part)
                self.jumps[end].append(first)
                end = last
        elif isinstance(expr, _Choice):
            end = self._state()
            for part in expr.parts:
                first, last = self.add(part)
                self.jumps[start].append(first)
                self.jumps[last].append(end)
        else:
            end = self._state()
            first, last = self.add(expr.part)
            self.jumps[start] += [first, end]
            self.jumps[last] += [first, end]
        return start, end

    def closure(self, states: Iterable[int]) -> frozenset[int]:
        reached = set(states)
        stack = list(reached)
        while stack:
            for state in self.jumps[stack.pop()]:
                if state not in reached:
                    reached.add(state)
                    stack.append(state)
        return frozenset(reached)


def compile_expr(expr: Expr, classes: Sequence[str]) -> Automaton:
    """Compiles an expression by subset construction.

    Args:
        expr: the expression.
        classes: property letters of each symbol class, by class number.

    Returns:
        The automaton; state 0 is the start.
    """
    nfa = _Nfa()
    first, last = nfa.add(expr)
    properties = [frozenset(letters) for letters in classes]
    numbers: dict[frozenset[int], int] = {}
    rows: list[list[int]] = []
    accepting: list[bool] = []
    todo = [nfa.closure([first])]
    numbers[todo[0]] = 0
    while todo:
        states = todo.pop(0)
        moves = [move for state in sorted(states) for move in nfa.moves[state]]
        row = []
        for has in properties:
            targets = {to for want, to in moves if want.any_of & has and not want.none_of & has}
            if not targets:
                row.append(-1)
                continue
            reached = nfa.closure(targets)
            if reached not in numbers:
                numbers[reached] = len(numbers)
                todo.append(reached)
            row.append(numbers[reached])
        rows.append(row)
        accepting.append(last in states)
    return Automaton(rows, accepting)
