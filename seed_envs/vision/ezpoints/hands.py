"""Cards and how hands are dealt: the framework's seeded deal, uniform deals, and lists of all hands."""

from __future__ import annotations

import random
from functools import lru_cache
from itertools import combinations_with_replacement, product
from typing import NamedTuple

import numpy as np

from seed_envs.vision.ezpoints.solver import solve

SUITS = "HSDC"
RANK_LETTERS = "A23456789TJQK"
HANDS = ("classic", "uniform")


class Card(NamedTuple):
    """A playing card.

    Attributes:
        rank: 1 (ace) to 13 (king).
        suit: One of ``H S D C``.
    """

    rank: int
    suit: str

    @property
    def value(self) -> int:
        """The number the card stands for: aces 1, face cards 10."""
        return min(self.rank, 10)

    @property
    def name(self) -> str:
        """Suit letter and rank letter, such as ``HT`` for the ten of hearts."""
        return self.suit + RANK_LETTERS[self.rank - 1]


Hand = tuple[Card, ...]


def deal_classic(seed: int) -> Hand:
    """Deals two cards exactly as verl-agent's EZPoints does from this seed (target 12; aces never occur).

    Args:
        seed: Seed of a private ``random.Random``.
    """
    rng = random.Random(seed)
    first = Card(rng.randint(2, 13), rng.choice(SUITS))
    value = first.value
    partner = 12 // value if value in (2, 3, 4, 6) and rng.random() <= 0.5 else 12 - value
    cards = (first, Card(partner, rng.choice(SUITS)))
    return cards[::-1] if rng.random() <= 0.5 else cards


@lru_cache(maxsize=256)
def winning_pairs(target: int) -> tuple[tuple[int, int], ...]:
    """All pairs of card values (smaller first, aces included) whose sum or product is ``target``."""
    pairs = combinations_with_replacement(range(1, 11), 2)
    return tuple(pair for pair in pairs if target in (pair[0] + pair[1], pair[0] * pair[1]))


def ranks_of(value: int) -> tuple[int, ...]:
    """The ranks that stand for a value."""
    return (10, 11, 12, 13) if value == 10 else (value,)


def deal_uniform(rng: np.random.Generator, target: int) -> Hand:
    """Deals two cards, every winning pair of values being equally likely.

    Args:
        rng: Source of randomness.
        target: Value of the formula; at least one pair must reach it.
    """
    pairs = winning_pairs(target)
    pair = pairs[int(rng.integers(len(pairs)))]
    hand = tuple(_any_card(rng, value) for value in pair)
    return hand[::-1] if rng.random() < 0.5 else hand


def _any_card(rng: np.random.Generator, value: int) -> Card:
    ranks = ranks_of(value)
    return Card(ranks[int(rng.integers(len(ranks)))], SUITS[int(rng.integers(4))])


def all_pairs(target: int) -> list[Hand]:
    """Every ordered pair of ranks that can reach ``target``, once, with suits taken in turn."""
    ordered = sorted({pair for low, high in winning_pairs(target) for pair in ((low, high), (high, low))})
    ranks = [both for first, second in ordered for both in product(ranks_of(first), ranks_of(second))]
    return [(Card(a, SUITS[i % 4]), Card(b, SUITS[(i // 4 + 1) % 4])) for i, (a, b) in enumerate(ranks)]


def deal_four(rng: np.random.Generator, target: int) -> Hand:
    """Deals four cards of any rank, again until some formula reaches ``target``."""
    while True:
        ranks = rng.integers(1, 14, size=4).tolist()
        suits = rng.integers(4, size=4).tolist()
        hand = tuple(Card(rank, SUITS[suit]) for rank, suit in zip(ranks, suits, strict=True))
        if solve(values_of(hand), target):
            return hand


def values_of(hand: Hand) -> tuple[int, ...]:
    """The values of a hand, ascending."""
    return tuple(sorted(card.value for card in hand))


def parse_hand(text: str, cards: int) -> Hand | None:
    """Reads card names such as ``H5-S7``; None if they are not ``cards`` cards."""
    names = text.split("-")
    if len(names) != cards or any(len(n) != 2 or n[0] not in SUITS or n[1] not in RANK_LETTERS for n in names):
        return None
    return tuple(Card(RANK_LETTERS.index(name[1]) + 1, name[0]) for name in names)
