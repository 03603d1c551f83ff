"""The card game itself: tokens, what each does to the formula, reward and end. No dealing, drawing or reading.

Three rule sets: ``rl4vlm`` is gym_cards of RL4VLM, ``classic`` the version of verl-agent and SEED, ``strict`` refuses
everything that could not belong to a finished formula.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

from seed_envs.vision.ezpoints.formula import FormulaError, evaluate

NUMBERS = tuple(str(number) for number in range(1, 11))
EQUALS = "="
BLANK = " "
WIN_REWARD = 10.0


@dataclass(frozen=True, slots=True)
class Puzzle:
    """What kind of formula is asked for.

    Attributes:
        name: For messages and task types.
        cards: Number of cards; every one must be used.
        target: Value of the formula.
        operators: Tokens that are not numbers or ``=``.
        max_tokens: Tokens a formula may hold; a longer one ends the episode at the next action.
    """

    name: str
    cards: int
    target: int
    operators: tuple[str, ...]
    max_tokens: int

    @property
    def tokens(self) -> tuple[str, ...]:
        """All action tokens in the order of the original."""
        return (*NUMBERS, *self.operators, EQUALS)


def ezpoints(target: int = 12) -> Puzzle:
    """Two cards, ``+`` and ``*``, five tokens."""
    return Puzzle("ezpoints", 2, target, ("+", "*"), 5)


def points24(target: int = 24) -> Puzzle:
    """Four cards, the four operations and parentheses, twenty tokens."""
    return Puzzle("points24", 4, target, ("+", "-", "*", "/", "(", ")"), 20)


@dataclass(frozen=True, slots=True)
class RuleSet:
    """How an action that leads nowhere is treated.

    Attributes:
        name: ``"rl4vlm"``, ``"classic"`` or ``"strict"``.
        failure_reward: Reward of a wrong number, an over-long formula and a wrong result.
        blank_for_wrong_number: A wrong number appends a blank instead of leaving the formula unchanged.
        random_for_unreadable: An unreadable answer becomes a random token instead of a no-op.
        grammar: Operators must fit; signs before a number are refused.
        rows: Rows in which four cards lie; the originals have one, whose cards are half as large.
    """

    name: str
    failure_reward: float
    blank_for_wrong_number: bool
    random_for_unreadable: bool
    grammar: bool
    rows: int


RULE_SETS = {
    "rl4vlm": RuleSet("rl4vlm", -1.0, True, True, False, 1),
    "classic": RuleSet("classic", 0.0, False, False, False, 1),
    "strict": RuleSet("strict", 0.0, False, False, True, 2),
}


class TokenOutcome(NamedTuple):
    """What one token did.

    Attributes:
        reward: Reward of the step.
        terminated: ``=`` was played.
        truncated: The formula had already grown too long.
        refused: Why the token was not used, or ``""``.
    """

    reward: float
    terminated: bool
    truncated: bool
    refused: str


class Game:
    """One running game.

    Attributes:
        formula: Tokens so far; under ``rl4vlm`` blanks stand for wrong numbers.
        used: Numbers recorded as used.
        won: Whether the game was won.
        result: Why ``=`` did not win, or the value; empty before.
    """

    __slots__ = ("formula", "numbers", "puzzle", "result", "rules", "used", "won")

    def __init__(self, puzzle: Puzzle, rules: RuleSet, numbers: tuple[int, ...]) -> None:
        """Starts with an empty formula.

        Args:
            puzzle: The kind of formula.
            rules: The rule set.
            numbers: Values of the cards.
        """
        self.puzzle, self.rules, self.numbers = puzzle, rules, numbers
        self.formula: tuple[str, ...] = ()
        self.used: tuple[str, ...] = ()
        self.won = False
        self.result = ""

    def clone(self) -> Game:
        """An independent copy."""
        copy = Game(self.puzzle, self.rules, self.numbers)
        copy.formula, copy.used, copy.won, copy.result = self.formula, self.used, self.won, self.result
        return copy

    def available(self) -> list[str]:
        """Numbers on the cards that are not used up, in card order."""
        left = Counter(map(str, self.numbers)) - Counter(self.used)
        return [number for number in dict.fromkeys(map(str, self.numbers)) if left[number]]

    def admissible(self) -> tuple[str, ...]:
        """Tokens that would not be refused, numbers first, ``=`` last (it always ends the game)."""
        numbers = self.available()
        if not self.rules.grammar:
            return (*numbers, *self.puzzle.operators, EQUALS)
        return (*(token for token in (*numbers, *self.puzzle.operators) if not self._misfit(token)), EQUALS)

    def _misfit(self, token: str) -> str:
        """Why ``token`` cannot come next in a formula of binary operators, or ``""``."""
        last = self.formula[-1] if self.formula else ""
        operand_next = not last or last == "(" or last in "+-*/"
        if token in NUMBERS or token == "(":
            return "" if operand_next else f"{token!r} after {last!r}: an operator must come between"
        if operand_next:
            return f"{token!r} after {last!r}: a number must come first" if last else f"{token!r} cannot come first"
        if token == ")":
            return "" if self.formula.count("(") > self.formula.count(")") else "no parenthesis is open"
        return "" if self.available() else f"{token!r}: no number is left to follow it"

    def play(self, token: str) -> TokenOutcome:
        """Plays one token.

        Args:
            token: One of the puzzle's tokens.
        """
        lose = self.rules.failure_reward
        if len(self.formula) > self.puzzle.max_tokens:
            reason = f"the formula has more than {self.puzzle.max_tokens} tokens; the game ends"
            return TokenOutcome(lose, False, True, reason)
        if token in NUMBERS and token not in self.available():
            reason = f"{token} is already used" if token in self.used else f"{token} is not on the cards"
            if self.rules.blank_for_wrong_number:
                self.formula = (*self.formula, BLANK)
            return TokenOutcome(lose, False, False, reason)
        if token == EQUALS:
            return self._finish()
        if self.rules.grammar and (reason := self._misfit(token)):
            return TokenOutcome(lose, False, False, reason)
        if token in NUMBERS:
            self.used = (*self.used, token)
        self.formula = (*self.formula, token)
        return TokenOutcome(0.0, False, False, "")

    def _finish(self) -> TokenOutcome:
        self.won, self.result = self.judge()
        self.formula = (*self.formula, EQUALS)
        return TokenOutcome(WIN_REWARD if self.won else self.rules.failure_reward, True, False, "")

    def judge(self) -> tuple[bool, str]:
        """Whether ``=`` would win now, and the value or the reason why not."""
        tokens = [token for token in self.formula if token != BLANK]
        if len(self.used) != self.puzzle.cards:
            return False, f"{len(self.used)} of {self.puzzle.cards} numbers used"
        try:
            value = evaluate(tokens, signs=not self.rules.grammar)
        except FormulaError as error:
            return False, f"not a formula: {error}"
        return value == self.puzzle.target, f"the value is {value}"

    def text(self) -> str:
        """The formula with its tokens joined by blanks."""
        return " ".join(token for token in self.formula if token != BLANK)
