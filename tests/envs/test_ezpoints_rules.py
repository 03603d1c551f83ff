"""Rule sets, readings, deals and oracle of EZPoints."""

from __future__ import annotations

import hashlib
import random
from collections import Counter

import numpy as np
import pytest

from seed_envs.errors import OracleUnavailable
from seed_envs.vision.ezpoints import oracle
from seed_envs.vision.ezpoints.hands import (
    Card,
    all_pairs,
    deal_classic,
    deal_uniform,
    parse_hand,
    values_of,
    winning_pairs,
)
from seed_envs.vision.ezpoints.reading import read_classic, read_exact
from seed_envs.vision.ezpoints.rules import RULE_SETS, Game, ezpoints
from seed_envs.vision.ezpoints.tasks import id_of_hand

TOKENS = ezpoints().tokens


def play(rules: str, tokens: str, hand: tuple[int, ...] = (5, 7)) -> tuple[list[tuple[float, bool, bool, bool]], Game]:
    game = Game(ezpoints(), RULE_SETS[rules], hand)
    outcomes = [game.play(token) for token in tokens.split()]
    return [(o.reward, o.terminated, o.truncated, bool(o.refused)) for o in outcomes], game


FINE = (0.0, False, False, False)


@pytest.mark.parametrize("rules", ["rl4vlm", "classic", "strict"])
def test_the_shortest_win_takes_four_steps_and_pays_ten(rules: str) -> None:
    outcomes, game = play(rules, "5 + 7 =")
    assert outcomes == [FINE, FINE, FINE, (10.0, True, False, False)]
    assert game.won
    assert play(rules, "2 * 6 =", (6, 2))[1].won
    assert play(rules, "6 + 6 =", (6, 6))[1].won


@pytest.mark.parametrize(("rules", "lose"), [("rl4vlm", -1.0), ("classic", 0.0), ("strict", 0.0)])
def test_a_wrong_result_ends_the_game(rules: str, lose: float) -> None:
    for tokens in ("5 * 7 =", "5 =", "="):
        outcomes, game = play(rules, tokens)
        assert outcomes[-1] == (lose, True, False, False)
        assert not game.won


def test_a_wrong_number_appends_a_blank_under_rl4vlm_and_nothing_otherwise() -> None:
    for token in ("9 ", "5 5 "):
        outcomes, game = play("rl4vlm", token)
        assert outcomes[-1] == (-1.0, False, False, True)
        assert game.formula[-1] == " "
        for rules in ("classic", "strict"):
            outcomes, game = play(rules, token)
            assert outcomes[-1] == (0.0, False, False, True)
            assert len(game.formula) == len(token.split()) - 1
    assert play("rl4vlm", "9 5 + 7 =")[1].won
    assert play("classic", "9 5 5 + 7 =")[1].won


def test_operators_are_checked_under_strict_only() -> None:
    for rules in ("rl4vlm", "classic"):
        assert play(rules, "+ 5 + + 7")[0] == [FINE] * 5
        assert play(rules, "+ 5 + 7 =")[1].won
    outcomes, game = play("strict", "+ 5 7 + * 7 + =")
    assert [outcome[3] for outcome in outcomes] == [True, False, True, False, True, False, True, False]
    assert game.won


@pytest.mark.parametrize(("rules", "lose"), [("rl4vlm", -1.0), ("classic", 0.0)])
def test_more_than_five_tokens_truncate_at_the_next_action_even_equals(rules: str, lose: float) -> None:
    outcomes, game = play(rules, "+ + + 5 + 7 =")
    assert outcomes[:6] == [FINE] * 6
    assert outcomes[6] == (lose, False, True, True)
    assert not game.won
    assert play(rules, "+ + 5 + 7 =")[1].won


def test_formulas_in_info_cannot_change_later() -> None:
    _, game = play("classic", "5")
    kept = game.formula
    game.play("+")
    assert kept == ("5",)


@pytest.mark.parametrize("rules", ["rl4vlm", "classic", "strict"])
def test_admissible_tokens_are_exactly_those_not_refused(rules: str) -> None:
    rng = random.Random(0)
    for _ in range(400):
        game = Game(ezpoints(), RULE_SETS[rules], rng.choice([(5, 7), (6, 6), (2, 10)]))
        for _ in range(rng.randrange(5)):
            game.play(rng.choice(TOKENS[:-1]))
        if len(game.formula) > 5:
            continue
        admissible = game.admissible()
        assert len(set(admissible)) == len(admissible)
        for token in TOKENS:
            assert bool(game.clone().play(token).refused) == (token not in admissible), (game.formula, token)


@pytest.mark.parametrize(
    ("answer", "token"),
    [
        ('{"thoughts": "5 and 7", "action": "5"}', "5"), ('{"action": "10"}', "10"), ('{"action": 11}', "1"),
        ('{"action": 12}', ""), ('{"action": "+"} I used 3', ""), ("the answer is 5", "5"), ("10", ""), ("", ""),
        ('{"ACTION": "="}', "="), ('{"action": "10"} 10', "10"), ('{"action": "none"}', ""), ("5 +", "+"),
    ],
)  # fmt: skip
def test_the_framework_reading(answer: str, token: str) -> None:
    found, reason = read_classic(answer, TOKENS)
    assert found == token
    assert bool(reason) == (not token)


@pytest.mark.parametrize(
    ("action", "token"), [("5", "5"), (" 10 ", "10"), ("11", ""), ("5 +", ""), ("", ""), ("=" * 40, ""), ("٥", "")]
)
def test_the_exact_reading(action: str, token: str) -> None:
    found, reason = read_exact(action, TOKENS)
    assert found == token
    assert bool(reason) == (not token)


def test_random_answers_never_raise() -> None:
    rng = random.Random(0)
    for _ in range(10_000):
        text = "".join(rng.choice('{}":action 0123456789+*=\n') for _ in range(rng.randrange(60)))
        for read in (read_classic, read_exact):
            token, reason = read(text, TOKENS)
            assert (token in TOKENS) != bool(reason)


def test_the_deal_of_1000_seeds_is_fixed() -> None:
    digest = hashlib.sha256("".join(id_of_hand(deal_classic(seed)) for seed in range(1000)).encode()).hexdigest()
    assert digest == "3744630ae7cc9cbe358893e146d9db55a0453564aa5cc3684444ae20ca8fca9f"
    assert [id_of_hand(deal_classic(seed)) for seed in range(4)] == [
        "cards/H4-C8", "cards/H4-C3", "cards/H2-S6", "cards/S5-D7",
    ]  # fmt: skip


def test_the_deal_gives_seven_hands_in_the_known_shares() -> None:
    counts = Counter(values_of(deal_classic(seed)) for seed in range(20_000))
    shares = {
        (2, 10): 0.375,
        (5, 7): 1 / 6,
        (3, 9): 0.125,
        (4, 8): 0.125,
        (2, 6): 1 / 12,
        (3, 4): 1 / 12,
        (6, 6): 1 / 24,
    }
    assert set(counts) == set(shares) == set(winning_pairs(12))
    for hand, share in shares.items():
        assert counts[hand] / 20_000 == pytest.approx(share, abs=0.012)
    ranks = Counter(card.rank for seed in range(5_000) for card in deal_classic(seed))
    assert ranks[1] == 0
    assert min(ranks[rank] for rank in (10, 11, 12, 13)) > 0


def test_every_hand_is_solved_by_the_oracle_in_four_steps() -> None:
    hands = [hand for target in (12, 11, 10, 20, 36) for hand in all_pairs(target) if target == 12 or hand]
    assert {values_of(hand) for hand in all_pairs(12)} == set(winning_pairs(12))
    assert any(card.rank == 1 for hand in all_pairs(11) for card in hand)
    for rules in RULE_SETS.values():
        for hand in all_pairs(12):
            game = Game(ezpoints(), rules, tuple(card.value for card in hand))
            steps = 0
            while not game.won:
                game.play(oracle.next_token(game))
                steps += 1
            assert steps == 4
    assert len(hands) > 60


def test_the_oracle_completes_odd_beginnings_or_says_it_cannot() -> None:
    _, game = play("classic", "+ 7")
    for _ in range(3):
        game.play(oracle.next_token(game))
    assert game.won
    for tokens, hand in (("5 *", (5, 7)), ("5 7", (5, 7)), ("+ + + + + +", (5, 7)), ("5 + 7 =", (5, 7))):
        with pytest.raises(OracleUnavailable):
            oracle.next_token(play("classic", tokens, hand)[1])


def test_uniform_hands_are_uniform_and_reach_any_target() -> None:
    rng = np.random.default_rng(0)
    counts = Counter(values_of(deal_uniform(rng, 12)) for _ in range(7_000))
    assert set(counts) == set(winning_pairs(12))
    assert all(abs(count - 1000) < 150 for count in counts.values())
    assert winning_pairs(101) == ()
    for _ in range(200):
        low, high = values_of(deal_uniform(rng, 11))
        assert 11 in (low + high, low * high)


def test_card_names_round_trip() -> None:
    for hand in all_pairs(12):
        assert parse_hand("-".join(card.name for card in hand), 2) == hand
    assert Card(10, "H").name == "HT"
    for text in ("", "H5", "H5-S7-D2", "X5-S7", "H5-S1", "H5_S7"):
        assert parse_hand(text, 2) is None
