"""The panel of goals in which attributes, options and price each decide: no two of them are enough.

Chosen from the test goals of a catalogue by looking at all its products, which takes a second for a thousand and grows
with their number. Both scorers must pay the exact purchase in full, so that an oracle wins every goal in either mode.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from seed_envs.webshop.catalogue import Product
from seed_envs.webshop.goals import NO_CAP, Goal
from seed_envs.webshop.reward import met_conditions, score_fixed, score_original

PANEL_SIZE = 128
GOALS_PER_PRODUCT = 4
_MIN_OPTIONS = 2
_NEAR_MISSES = {(False, True, True), (True, False, True), (True, True, False)}
"""What products that fail one condition alone meet: attributes, options, price."""


def combined(goals: Sequence[Goal], products: Sequence[Product]) -> list[Goal]:
    """The goals of the panel, in listed order.

    Args:
        goals: Where to choose from.
        products: The whole catalogue.

    Returns:
        At most ``PANEL_SIZE`` goals, at most ``GOALS_PER_PRODUCT`` of one product.
    """
    chosen: list[Goal] = []
    taken: Counter[str] = Counter()
    for goal in goals:
        if len(chosen) == PANEL_SIZE:
            break
        if taken[goal.product.asin] < GOALS_PER_PRODUCT and _has_choices(goal) and _all_decide(goal, products):
            taken[goal.product.asin] += 1
            chosen.append(goal)
    return chosen


def _has_choices(goal: Goal) -> bool:
    """A capped goal with several options of several values each, which the exact purchase meets in full."""
    several = all(len(goal.product.options.get(name, ())) > 1 for name, _ in goal.options)
    if len(goal.options) < _MIN_OPTIONS or not several or goal.price_upper >= NO_CAP:
        return False
    exact = dict(goal.options)
    return all(score(goal.product, exact, goal).total == 1.0 for score in (score_fixed, score_original))


def _all_decide(goal: Goal, products: Sequence[Product]) -> bool:
    """Whether each condition alone rules out a product of the kind."""
    return {met_conditions(product, goal) for product in products} >= _NEAR_MISSES
