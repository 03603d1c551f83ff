"""The score of a purchase: type, attributes, options and price, in the original's form and in the repaired one.

Pure functions of a product, chosen options and a goal. Fuzzy matching and colours have their own modules.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from seed_envs.webshop.catalogue import Product
from seed_envs.webshop.colours import normalise_colour, normalise_pair
from seed_envs.webshop.fuzzy import token_set_ratio
from seed_envs.webshop.goals import Goal

FUZZY_LIMIT = 85
_SPELLINGS = {"grey": "gray", "colour": "color"}
_PIECES = re.compile(r"\w+(?:(?<=\d)[.,](?=\d)\w+)*")


class TypeScore(NamedTuple):
    """How well the kind of product fits: the factor ``r_type`` and what it was made of."""

    r_type: float
    title_score: float
    query_match: bool
    category_match: bool


class Score(NamedTuple):
    """A purchase judged.

    Attributes:
        total: 0 to 1; 1.0 is success.
        type: The type part.
        attributes: Share of goal attributes met (``r_att``).
        options: Share of goal options met (``r_option``), None if the goal has none.
        price: Whether the price is within the cap (``r_price``).
        weights: Shares of the denominator for attributes, options, price.
    """

    total: float
    type: TypeScore
    attributes: float
    options: float | None
    price: bool
    weights: tuple[float, float, float]

    def details(self) -> dict[str, float | bool]:
        """The sub-scores under the names of the original."""
        parts: dict[str, float | bool] = {
            **self.type._asdict(),
            "r_att": self.attributes,
            "w_att": self.weights[0],
            "r_price": self.price,
            "w_price": self.weights[2],
        }
        if self.options is not None:
            parts |= {"r_option": self.options, "w_option": self.weights[1]}
        return parts


def score_original(product: Product, chosen: Mapping[str, str], goal: Goal) -> Score:
    """Scores a purchase by the original's rules, one-sided colour rule included."""
    type_score = _type_score(product, goal, distinct=False)
    attributes = sum(_has_attribute(product, wanted, borders=False) for wanted in goal.attributes)
    options = _options_original(tuple(chosen.values()), goal)
    return _total(type_score, attributes, options, product.price <= goal.price_upper, goal)


def score_fixed(product: Product, chosen: Mapping[str, str], goal: Goal) -> Score:
    """Scores a purchase by the repaired rules: named options, displayed price, word borders, distinct nouns."""
    type_score = _type_score(product, goal, distinct=True)
    attributes = sum(_has_attribute(product, wanted, borders=True) for wanted in goal.attributes)
    options = sum(_option_met(name, value, chosen) for name, value in goal.options)
    return _total(type_score, attributes, options, product.displayed_price <= goal.price_upper, goal)


SCORERS = {"original": score_original, "fixed": score_fixed}


def _total(type_score: TypeScore, attributes: int, options: int, price: bool, goal: Goal) -> Score:
    wanted_attributes, wanted_options = len(goal.attributes), len(goal.options)
    parts = wanted_attributes + wanted_options + 1
    return Score(
        total=(attributes + options + price) / parts * type_score.r_type,
        type=type_score,
        attributes=attributes / wanted_attributes,
        options=options / wanted_options if wanted_options else None,
        price=price,
        weights=(wanted_attributes / parts, wanted_options / parts, 1 / parts),
    )


def title_score(bought: Sequence[str], wanted: Sequence[str], distinct: bool) -> float:
    """Share of the goal title's nouns that the bought title has.

    Args:
        bought: Nouns of the bought title.
        wanted: Nouns of the goal title, with repeats.
        distinct: Whether repeats in the denominator are dropped.
    """
    if not wanted:
        return 0.2
    return len(set(bought) & set(wanted)) / len(set(wanted) if distinct else wanted)


def _type_score(product: Product, goal: Goal, distinct: bool) -> TypeScore:
    nouns = title_score(product.nouns or (), goal.product.nouns or (), distinct)
    query_match = product.query == goal.product.query
    category_match = len(_path(product.product_category) & _path(goal.product.product_category)) >= 2
    factor = 1.0 if query_match or category_match or nouns > 0.2 else 0.5
    if nouns < 0.1:
        factor = 0.1
    if nouns == 0.0:
        factor = 0.0
    return TypeScore(factor, nouns, query_match, category_match)


@lru_cache(maxsize=16384)
def _path(product_category: str) -> frozenset[str]:
    return frozenset(part.strip() for part in product_category.split("›"))


@lru_cache(maxsize=65536)
def _has_attribute(product: Product, wanted: str, borders: bool) -> bool:
    if any(token_set_ratio(attribute, wanted) > FUZZY_LIMIT for attribute in product.attributes):
        return True
    texts = (product.title, " ".join(product.bullets), product.description)
    if not borders:
        return any(wanted in text.lower() for text in texts)
    pattern = _bordered(wanted)
    return any(pattern.search(text.lower()) is not None for text in texts)


@lru_cache(maxsize=16384)
def _bordered(wanted: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(wanted.lower())}(?!\w)")


def met_conditions(product: Product, goal: Goal) -> tuple[bool, bool, bool] | None:
    """Which conditions a product can meet by the repaired rules, whatever options are chosen.

    Returns:
        Attributes, options (it offers all of the goal's values), price; None for a product of another kind.
    """
    if _type_score(product, goal, distinct=True).r_type < 1.0:
        return None
    attributes = all(_has_attribute(product, wanted, borders=True) for wanted in goal.attributes)
    offered = {(canonical(name), canonical(value)) for name, values in product.options.items() for value in values}
    options = all((canonical(name), canonical(value)) in offered for name, value in goal.options)
    return attributes, options, max(product.displayed_price, product.price) <= goal.price_upper


def _options_original(chosen: Iterable[str], goal: Goal) -> int:
    bought = [normalise_colour(value) for value in chosen]
    if goal.named_options:
        wanted = [normalise_pair(pair) for pair in goal.options]
    else:
        wanted = [normalise_colour(value) for _, value in goal.options]
    return sum(any(token_set_ratio(value, target) > FUZZY_LIMIT for value in bought) for target in wanted)


@lru_cache(maxsize=65536)
def canonical(value: str) -> str:
    """Spelling-independent form of an option name or value.

    >>> canonical("Light Grey") == canonical("light-gray"), canonical("6") == canonical("6.5")
    (True, False)
    """
    words = _PIECES.findall(unicodedata.normalize("NFKC", value).casefold())
    return " ".join(_SPELLINGS.get(word, word) for word in words) or value


def _option_met(name: str, value: str, chosen: Mapping[str, str]) -> bool:
    target = canonical(value)
    if not name:
        return any(canonical(other) == target for other in chosen.values())
    key = canonical(name)
    return any(canonical(other) == key and canonical(got) == target for other, got in chosen.items())
