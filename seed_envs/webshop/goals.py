"""Goals: what a simulated customer wants, built from products and human instructions.

The order of the list and the price caps follow the original rule by rule; splits live in ``tasks``.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from seed_envs.errors import DataInvalid
from seed_envs.webshop.catalogue import Product, checked_text, checked_texts
from seed_envs.webshop.modes import Rules

PRICE_CAPS: tuple[float, ...] = tuple(10.0 * step for step in range(1, 100))
NO_CAP = 1_000_000.0
SHUFFLE_SEED = 233
_CAP_CHOICES = 4
_UNPLACED = -1


@dataclass(frozen=True, slots=True, eq=False)
class Goal:
    """One shopping task.

    Attributes:
        task_id: ``ASIN/n`` (synthetic) or ``ASIN/hn`` (human); n counts inside the product, before the shuffle.
        index: Position in the shuffled list (the session number of the original).
        product: The product the goal was made from.
        instruction: The full text, price cap included.
        options: (name, value) pairs; the name is empty for values of human goals whose name is unknown.
        named_options: Whether the original compares pairs (synthetic) or bare values (human).
        price_upper: Price cap in dollars; 1,000,000 when there is none.
        weight: Sampling weight.
    """

    task_id: str
    index: int
    product: Product
    instruction: str
    attributes: tuple[str, ...]
    options: tuple[tuple[str, str], ...]
    named_options: bool
    price_upper: float
    weight: float = 1.0


def cap_candidates(price: float) -> tuple[float, ...]:
    """The caps a price may get: the first four above it.

    >>> cap_candidates(969.99), cap_candidates(980.0)
    ((970.0, 980.0, 990.0), (990.0,))
    """
    return tuple(cap for cap in PRICE_CAPS if cap > price)[:_CAP_CHOICES]


def draw_cap(price: float, rng: Random) -> tuple[float, str]:
    """Draws a cap; no draw is made where fewer than two candidates exist.

    Returns:
        The cap in dollars and the words that announce it.
    """
    candidates = cap_candidates(price)
    if len(candidates) < 2:
        return NO_CAP, ""
    cap = max(rng.sample(candidates, 2))
    return cap, f", and price lower than {cap:.2f} dollars"


def build_goals(
    products: Sequence[Product],
    human: Mapping[str, Sequence[Mapping[str, Any]]] | None,
    rules: Rules,
    rng: Random,
    seed: int,
) -> tuple[Goal, ...]:
    """Builds the shuffled goal list.

    Args:
        products: The catalogue in file order.
        human: Human instructions by asin for human goals; None for synthetic goals.
        rules: The switches ``prices`` and ``caps`` are read.
        rng: Stream of cap draws in goal order (``caps="stream"``), positioned after the price draws.
        seed: Root of the per-goal generators (``caps="keyed"``).

    Raises:
        DataInvalid: If an instruction is malformed, or has no attributes where the format demands them.
    """
    caps = _CapSource(rules, rng, seed)
    drafts = _weighed(_synthetic(products, caps)) if human is None else list(_human(products, human, caps))
    Random(SHUFFLE_SEED).shuffle(drafts)
    return tuple(replace(draft, index=index) for index, draft in enumerate(drafts))


class _CapSource:
    """Chooses the price a cap refers to and the generator it is drawn from."""

    def __init__(self, rules: Rules, rng: Random, seed: int) -> None:
        self._rules, self._rng, self._seed = rules, rng, seed

    def draw(self, product: Product, number: int) -> tuple[float, str]:
        price = product.price if self._rules.prices == "drawn" else product.displayed_price
        rng = self._rng
        if self._rules.caps == "keyed":
            # A string seed goes through SHA-512, so it does not depend on the process.
            rng = Random(f"{self._seed}/{product.asin}/{number}")
        return draw_cap(price, rng)


def _synthetic(products: Iterable[Product], caps: _CapSource) -> Iterator[Goal]:
    for product in products:
        if product.instruction is None:
            continue
        if not product.instruction_attributes:
            raise DataInvalid(f"product {product.asin}: 'instruction' needs a non-empty 'instruction_attributes'")
        cap, cap_text = caps.draw(product, 0)
        names = sorted(product.options)
        for number, values in enumerate(itertools.product(*(product.options[name] for name in names))):
            options = tuple(zip(names, values, strict=True))
            wanted = ", and ".join(f"{name}: {value}" for name, value in options)
            text = f"{product.instruction}{' with ' + wanted if wanted else ''}{cap_text}"
            attributes = product.instruction_attributes
            yield Goal(f"{product.asin}/{number}", _UNPLACED, product, text, attributes, options, True, cap)


def _human(
    products: Iterable[Product], human: Mapping[str, Sequence[Mapping[str, Any]]], caps: _CapSource
) -> Iterator[Goal]:
    for product in products:
        entries = human.get(product.asin, ())
        if not isinstance(entries, (list, tuple)):
            raise DataInvalid(f"human instructions of product {product.asin}: {entries!r:.60}, expected a list")
        for number, entry in enumerate(entries):
            try:
                attributes = checked_texts(entry["instruction_attributes"], "instruction_attributes")
                if not attributes:
                    continue
                values = checked_texts(entry["instruction_options"], "instruction_options")
                instruction = checked_text(entry["instruction"], "instruction")
            except (KeyError, TypeError, ValueError) as error:
                raise DataInvalid(f"human instruction {number} of product {product.asin}: {error!r}") from error
            cap, cap_text = caps.draw(product, number)
            options = tuple((_option_name(product, value), value) for value in values)
            text = instruction.strip(".") + cap_text
            yield Goal(f"{product.asin}/h{number}", _UNPLACED, product, text, attributes, options, False, cap)


def _option_name(product: Product, value: str) -> str:
    for name, values in product.options.items():
        if value in values:
            return name
    return ""


def _weighed(drafts: Iterable[Goal]) -> list[Goal]:
    """Goals weighted by how rare their attributes are."""
    drafts = list(drafts)
    counts = Counter(attribute for draft in drafts for attribute in draft.attributes)
    return [replace(d, weight=sum(1.0 / counts[a] for a in d.attributes) / len(d.attributes)) for d in drafts]
