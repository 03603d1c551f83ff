"""The next token of a player who knows everything: the shortest way to complete the current formula."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from fractions import Fraction
from itertools import chain, permutations, product

from seed_envs.errors import OracleUnavailable
from seed_envs.vision.ezpoints.formula import FormulaError, evaluate
from seed_envs.vision.ezpoints.rules import BLANK, EQUALS, Game
from seed_envs.vision.ezpoints.solver import solve

_SHAPES = tuple(shape.split() for shape in (
    "n o n o n o n", "( n o n ) o n o n", "n o ( n o n ) o n", "n o n o ( n o n )", "( n o n o n ) o n",
    "n o ( n o n o n )", "( n o n ) o ( n o n )", "( ( n o n ) o n ) o n", "( n o ( n o n ) ) o n",
    "n o ( ( n o n ) o n )", "n o ( n o ( n o n ) )",
))  # fmt: skip
"""All ways to write four numbers with non-redundant parentheses, shortest first."""


def next_token(game: Game) -> str:
    """The next token on a shortest way to win.

    Args:
        game: A running game.

    Raises:
        OracleUnavailable: If the formula cannot be completed to the target any more.
    """
    if EQUALS in game.formula or len(game.formula) > game.puzzle.max_tokens:
        raise OracleUnavailable("the game is over")
    if game.judge()[0]:
        return EQUALS
    token = _four_numbers(game) if game.puzzle.cards == 4 else _two_numbers(game)
    if not token:
        raise OracleUnavailable(f"the formula {game.text()!r} cannot be completed to {game.puzzle.target}")
    return token


def _two_numbers(game: Game) -> str:
    """Breadth-first over the few tokens that still fit."""
    queue = deque([(game, "")])
    while queue:
        current, first = queue.popleft()
        for token in current.admissible()[:-1]:
            after = current.clone()
            outcome = after.play(token)
            if outcome.refused or len(after.formula) > game.puzzle.max_tokens:
                continue
            if after.judge()[0]:
                return first or token
            queue.append((after, first or token))
    return ""


def _four_numbers(game: Game) -> str:
    """Looks for a finished formula that begins with the current one."""
    prefix = tuple(token for token in game.formula if token != BLANK)
    blanks = len(game.formula) - len(prefix)
    values = tuple(sorted(game.numbers))
    if not prefix:
        return solve(values, game.puzzle.target)[0]
    room = game.puzzle.max_tokens - blanks
    for formula in chain([solve(values, game.puzzle.target)], completions(prefix, values, game.puzzle.target)):
        if len(prefix) < len(formula) <= room and formula[: len(prefix)] == prefix:
            return formula[len(prefix)]
    return ""


def completions(prefix: tuple[str, ...], values: tuple[int, ...], target: int) -> Iterator[tuple[str, ...]]:
    """Formulas over four values, without redundant parentheses, that begin with ``prefix`` and equal ``target``."""
    orders = sorted(set(permutations(map(str, values))))
    for skeleton in _SHAPES:
        for numbers, operators in product(orders, product("+-*/", repeat=3)):
            number, operator = iter(numbers), iter(operators)
            tokens = tuple(next(number) if t == "n" else next(operator) if t == "o" else t for t in skeleton)
            if tokens[: len(prefix)] == prefix and _value(tokens) == target:
                yield tokens


def _value(tokens: tuple[str, ...]) -> Fraction | None:
    try:
        return evaluate(tokens)
    except FormulaError:
        return None
