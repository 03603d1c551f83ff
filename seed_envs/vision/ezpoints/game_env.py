"""The Gymnasium environment shared by EZPoints and Points24. It joins the parts and has no rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from gymnasium import spaces

from seed_envs.arguments import check_choice, refuse_ignored
from seed_envs.base import SeedEnv
from seed_envs.errors import InvalidState, OracleUnavailable
from seed_envs.outcomes import LazyActions, Outcome, TaskStatus
from seed_envs.spaces import UnicodeText, picture_space
from seed_envs.vision.ezpoints import oracle
from seed_envs.vision.ezpoints.hands import Card, Hand
from seed_envs.vision.ezpoints.reading import read_classic, read_exact
from seed_envs.vision.ezpoints.render import SIZES, Board
from seed_envs.vision.ezpoints.rules import BLANK, RULE_SETS, Game, Puzzle, TokenOutcome
from seed_envs.vision.ezpoints.tasks import SPLITS, HandSource

OBS_MODES = ("both", "image", "text")
PARSINGS = ("exact", "substring")
FEEDBACKS = ("verbose", "plain")
_SUIT_NAMES = {"H": "hearts", "S": "spades", "D": "diamonds", "C": "clubs"}
_RANK_NAMES = {1: "ace", 11: "jack", 12: "queen", 13: "king"}
_NO_OUTCOME = TokenOutcome(0.0, False, False, "")

Observation = str | dict[str, Any]


class CardState(NamedTuple):
    """Snapshot of an episode."""

    task_id: str
    hand: Hand
    formula: tuple[str, ...]
    used: tuple[str, ...]
    won: bool
    result: str
    refused: str
    running: bool


class CardGameEnv(SeedEnv[Observation]):
    """What EZPoints and Points24 have in common; see the two classes for the games."""

    metadata: dict[str, Any] = {"render_modes": ["ansi", "rgb_array"], "render_fps": 4}
    splits = SPLITS

    def __init__(
        self,
        puzzle: Puzzle,
        hands: str,
        rules: str,
        obs_mode: str,
        size: int,
        parsing: str,
        feedback: str,
        split: str,
        render_mode: str | None,
    ) -> None:
        """Makes the environment; the arguments are explained in the subclasses."""
        for label, value, known in (
            ("rules", rules, RULE_SETS),
            ("obs_mode", obs_mode, OBS_MODES),
            ("parsing", parsing, PARSINGS),
            ("feedback", feedback, FEEDBACKS),
            ("size", size, SIZES),
        ):
            check_choice(label, value, known)
        if obs_mode == "text" and render_mode != "rgb_array":
            refuse_ignored("obs_mode='text'", size=(size, SIZES[0]))
        super().__init__(split=split, render_mode=render_mode)
        self.puzzle, self.source = puzzle, HandSource(puzzle, hands)
        self._rules, self._size = RULE_SETS[rules], size
        self._explains = feedback == "verbose"
        self._read = read_classic if parsing == "substring" else read_exact
        self._text_mode, self._shows_cards = obs_mode == "text", obs_mode != "image"
        if not self._text_mode:
            self.observation_space = spaces.Dict({"text": UnicodeText(), "image": picture_space(size, size)})
        self._start(())

    def task_ids(self, split: str) -> Sequence[str]:
        """The tasks of a finite split in listed order."""
        return self.source.task_ids(split)

    def _choose_task(self, options: dict[str, Any]) -> str:
        return self.source.choose(self.np_random, options.get("split", self.split))

    def _begin(self, task_id: str, options: dict[str, Any]) -> Observation:
        self._start(self.source.load(task_id))
        return self._observe("")

    def _start(self, hand: Hand) -> None:
        self._hand = hand
        self._game = Game(self.puzzle, self._rules, tuple(card.value for card in hand))
        self._board = None if self._text_mode or not hand else Board(hand, self._size, self._rules.rows)
        self._cards_text = ", ".join(_describe(card) for card in hand)
        self._refused = ""

    def _act(self, action: str) -> Outcome:
        token, reason = self._read(action, self.puzzle.tokens)
        if not token and self._rules.random_for_unreadable:
            token = self.puzzle.tokens[int(self.np_random.integers(len(self.puzzle.tokens)))]
        before = self._game.formula
        reward, terminated, truncated, refused = self._game.play(token) if token else _NO_OUTCOME
        self._refused = refused
        if self._board is not None and self._game.formula is not before:
            self._board.update(self._game.text())
        invalid = reason or refused
        observation = self._observe(invalid)
        stop_reason = "turn_limit" if truncated else ""
        return Outcome(observation, reward, terminated, not invalid, invalid, truncated, stop_reason, not reason)

    def _observe(self, reason: str) -> Observation:
        formula = "".join(token for token in self._game.formula if token != BLANK)
        text = f"Cards: {self._cards_text}\nFormula: {formula}" if self._shows_cards else formula
        if reason and self._explains:
            text = f"{text}\nAction refused: {reason}"
        return text if self._board is None else {"text": text, "image": self._board.pixels.copy()}

    def _status(self) -> TaskStatus:
        return TaskStatus(self._task_type(), self._goal(), self._game.won, 1.0 if self._game.won else 0.0)

    def _task_type(self) -> str:
        return self.puzzle.name

    def _goal(self) -> str:
        cards = {2: "both", 4: "all four"}[self.puzzle.cards]
        return f"Build a formula with the value {self.puzzle.target} that uses {cards} cards exactly once."

    def _admissible(self) -> Sequence[str]:
        snapshot = self._game.clone()
        return LazyActions(snapshot.admissible)

    def _extras(self) -> dict[str, Any]:
        game = self._game
        snapshot = game.clone()
        return {
            "cards": tuple(card.name for card in self._hand),
            "numbers": game.numbers,
            "formula": game.formula,
            "used": game.used,
            "refused": self._refused,
            "result": game.result,
            "oracle": {"best_actions": LazyActions(lambda: _best_actions(snapshot))},
        }

    def oracle_action(self) -> str:
        """The next token on a shortest way to win.

        Raises:
            OracleUnavailable: If the formula cannot be completed any more.
            EpisodeEnded: Before the first reset.
        """
        self._require_task()
        return oracle.next_token(self._game)

    def rule_action(self) -> str:
        """The next token of a player that adds all cards, whatever they are."""
        self._require_task()
        numbers = self._game.numbers
        tokens = [str(numbers[0]), *(token for number in numbers[1:] for token in ("+", str(number))), "="]
        return tokens[min(len(self._game.formula), len(tokens) - 1)]

    def random_action(self) -> str:
        """A token drawn from all there are: which ones would be used is known only to who has read the cards."""
        self._require_task()
        return self.puzzle.tokens[int(self.np_random.integers(len(self.puzzle.tokens)))]

    def get_state(self) -> CardState:
        """A snapshot of the episode."""
        game = self._game
        return CardState(
            self.task_id, self._hand, game.formula, game.used, game.won, game.result, self._refused, self._running
        )

    def set_state(self, state: Any) -> None:
        """Continues from a snapshot.

        Raises:
            InvalidState: If it is not a snapshot of this environment.
        """
        if not isinstance(state, CardState) or len(state.hand) != self.puzzle.cards:
            raise InvalidState(f"expected the CardState of a {self.puzzle.name} episode, got {type(state).__name__}")
        self.task_id, self._running = state.task_id, state.running
        self._action_valid, self._invalid_reason, self._stop_reason = True, "", ""
        self._start(state.hand)
        game = self._game
        game.formula, game.used, game.won, game.result = state.formula, state.used, state.won, state.result
        self._refused = state.refused
        if self._board is not None:
            self._board.update(game.text())

    def render(self) -> Any:
        """The cards and the formula as text (``"ansi"``) or as an RGB array; changes nothing.

        Raises:
            EpisodeEnded: Before the first reset.
        """
        self._require_task()
        if self.render_mode == "ansi":
            return f"Cards: {self._cards_text}\nFormula: {self._game.text()}"
        if self.render_mode == "rgb_array":
            board = Board(self._hand, self._size, self._rules.rows)
            board.update(self._game.text())
            return board.pixels
        return None


def _describe(card: Card) -> str:
    return f"{_RANK_NAMES.get(card.rank, card.rank)} of {_SUIT_NAMES[card.suit]}"


def _best_actions(game: Game) -> tuple[str, ...]:
    try:
        return (oracle.next_token(game),)
    except OracleUnavailable:
        return ()
