"""The exact parser against Python's own grammar over fractions, and the winning formulas in closed form."""

from __future__ import annotations

import ast
import random
import re
from fractions import Fraction
from itertools import product

import pytest

from seed_envs.vision.ezpoints.formula import MAX_DEPTH, MAX_TOKENS, FormulaError, evaluate
from seed_envs.vision.ezpoints.rules import BLANK, RULE_SETS, Game, ezpoints

HANDS = [(2, 10), (5, 7), (3, 9), (4, 8), (2, 6), (3, 4), (6, 6)]


def reference(source: str, signs: bool, power: bool = False) -> Fraction | None:
    """Value of Python source under Python's grammar, in fractions; None if it is no formula."""
    try:
        tree = ast.parse(source.strip(), mode="eval").body
        return _value(tree, signs, power)
    except (SyntaxError, ZeroDivisionError, _NoFormula):
        return None


class _NoFormula(Exception):
    pass


def _value(node: ast.expr, signs: bool, power: bool) -> Fraction:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return Fraction(node.value)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.UAdd, ast.USub)) and signs:
        value = _value(node.operand, signs, power)
        return value if isinstance(node.op, ast.UAdd) else -value
    if isinstance(node, ast.BinOp):
        left, right = _value(node.left, signs, power), _value(node.right, signs, power)
        if isinstance(node.op, ast.Add):
            return left + right
        if isinstance(node.op, ast.Sub):
            return left - right
        if isinstance(node.op, ast.Mult):
            return left * right
        if isinstance(node.op, ast.Div):
            return left / right
        if isinstance(node.op, ast.Pow) and power:
            return Fraction(left**right)
    raise _NoFormula


def value_or_none(tokens: list[str], signs: bool) -> Fraction | None:
    try:
        return evaluate(tokens, signs)
    except FormulaError:
        return None


@pytest.mark.parametrize("signs", [False, True])
@pytest.mark.filterwarnings("ignore::SyntaxWarning")
def test_20000_random_token_sequences_equal_the_reference(signs: bool) -> None:
    """Blanks between tokens keep Python from joining digits or stars; one half is built to be mostly well formed."""
    rng, formulas = random.Random(7), 0
    for trial in range(20_000):
        if trial % 2:
            tokens = [rng.choice("1 2 3 8 10 + - * / ( )".split()) for _ in range(rng.randrange(1, 12))]
        else:
            tokens = _sentence(rng, 4)
            if rng.random() < 0.2:
                tokens[rng.randrange(len(tokens))] = rng.choice("5 + * ( )".split())
        expected = reference(" ".join(tokens), signs)
        assert value_or_none(tokens, signs) == expected, tokens
        formulas += expected is not None
    assert formulas > 5_000


def _sentence(rng: random.Random, depth: int) -> list[str]:
    if depth == 0 or rng.random() < 0.3:
        return [str(rng.randint(1, 10))]
    whole = [*_sentence(rng, depth - 1), rng.choice("+-*/"), *_sentence(rng, depth - 1)]
    return ["(", *whole, ")"] if rng.random() < 0.5 else whole


def test_exact_division_and_caps() -> None:
    assert evaluate("8 / ( 3 - 8 / 3 )".split()) == 24
    assert evaluate("1 / 3 + 1 / 3 + 1 / 3".split()) == 1
    nested = ["("] * MAX_DEPTH + ["1"] + [")"] * MAX_DEPTH
    assert evaluate(nested) == 1
    for tokens in (["(", *nested, ")"], ["1"] * (MAX_TOKENS + 1), [], ["1", "0"], ["2", "*", "*", "3"], ["7", "/", "0"],
                   ["x"], ["-", "1"], ["(", ")"], ["²"], ["1.5"], ["1e3"], ["__import__"]):  # fmt: skip
        with pytest.raises(FormulaError):
            evaluate(tokens)


def test_signs_in_a_row_are_capped_not_recursed_forever() -> None:
    with pytest.raises(FormulaError, match="deep"):
        evaluate(["+"] * (MAX_TOKENS - 1) + ["1"], signs=True)


def closed_form(tokens: list[str], hand: tuple[int, int]) -> bool:
    """``+...+ a op +...+ b`` with the two card numbers and one operator, by a pattern instead of a parser."""
    match = re.fullmatch(r"(?:\+ )*(\d+) ([+*])(?: \+)* (\d+)", " ".join(tokens))
    if match is None:
        return False
    one, other = int(match[1]), int(match[3])
    value = one + other if match[2] == "+" else one * other
    return sorted((one, other)) == sorted(hand) and value == 12


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
def test_all_24801_sequences_win_exactly_when_the_original_pays() -> None:
    """The original joins the tokens, removes nothing, and evaluates the text; blanks stand for wrong numbers."""
    checked = wins = 0
    for hand in HANDS:
        alphabet = [*dict.fromkeys(map(str, hand)), "+", "*", BLANK]
        for length in range(6):
            for sequence in product(alphabet, repeat=length):
                checked += 1
                numbers = [token for token in sequence if token.isdigit()]
                if any(numbers.count(number) > list(map(str, hand)).count(number) for number in numbers):
                    continue
                game = Game(ezpoints(), RULE_SETS["classic"], hand)
                game.formula, game.used = sequence, tuple(numbers)
                pays = len(numbers) == 2 and reference("".join(sequence), True, power=True) == 12
                tokens = [token for token in sequence if token != BLANK]
                assert game.judge()[0] == pays == closed_form(tokens, hand), sequence
                wins += pays
    assert checked == 24_801
    assert wins > 100
