"""Families: a target product and its near twins, each of which fails one of the target's constraints.

One twin satisfies everything and differs only in what nobody asked for; it is listed as equivalent.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from seed_envs.webshop.generator import text
from seed_envs.webshop.generator.product_types import PRODUCT_TYPES, ProductType
from seed_envs.webshop.generator.vocabulary import (
    ATTRIBUTES,
    OPTION_KINDS,
    PRICE_LADDER,
)

MAX_GOALS = 40
_ASIN_DIGITS = "0123456789ABCDEFGHJKLMNPQRSTUVWXYZ"
#: Above the target's price by more than the widest cap (four steps of ten dollars).
_OVER_CAP_CENTS = 4500
_TARGET_PRICE_LIMIT = 90_000


@dataclass(frozen=True)
class Draft:
    """A product before its text is written.

    Attributes:
        kind: Product type.
        attributes: Hidden attributes; the reward looks for them.
        wanted: Attributes that the goals of this product name (empty: no goals).
        options: Option name to values.
        low: Lower price in cents.
        high: Upper price in cents (equal to ``low`` for a single price).
        priced: Whether the row states a price at all (else it counts as 100 dollars).
        head: Name of the thing.
        material: Material word.
        role: What the product is for its family.
        near: Name of another thing that the texts mention, so that a search for it finds this product.
    """

    kind: ProductType
    attributes: tuple[str, ...]
    wanted: tuple[str, ...]
    options: dict[str, tuple[str, ...]]
    low: int
    high: int
    priced: bool
    head: str
    material: str
    role: str = "target"
    near: str = ""


class Registry:
    """Keeps targets unique: no other family's product may have all of a target's attributes within a group."""

    def __init__(self) -> None:
        self._products: dict[tuple[str, str], list[frozenset[str]]] = {}
        self._targets: dict[tuple[str, str], set[frozenset[str]]] = {}

    @staticmethod
    def _group(kind: ProductType) -> tuple[str, str]:
        first, second, *_ = kind.path.split(" › ")
        return first, second

    def accepts(self, kind: ProductType, wanted: Sequence[str], attributes: Sequence[Sequence[str]]) -> bool:
        """Whether a family fits in.

        Args:
            kind: Product type of the family.
            wanted: Attributes of its goals.
            attributes: Attribute lists of all its products.
        """
        group, target = self._group(kind), frozenset(wanted)
        if wanted and any(target <= other for other in self._products.get(group, ())):
            return False
        sets = [frozenset(names) for names in attributes]
        return not any(taken <= names for taken in self._targets.get(group, ()) for names in sets)

    def add(self, kind: ProductType, wanted: Sequence[str], attributes: Sequence[Sequence[str]]) -> None:
        """Records an accepted family."""
        group = self._group(kind)
        self._products.setdefault(group, []).extend(frozenset(names) for names in attributes)
        if wanted:
            self._targets.setdefault(group, set()).add(frozenset(wanted))


def draw_family(rng: Random, registry: Registry, twins: bool) -> list[Draft]:
    """Draws a target and its twins.

    Args:
        rng: Generator of this family.
        registry: What has been drawn before.
        twins: Whether the target gets twins (False: alone).
    """
    while True:
        target = _target(rng)
        family = [target, *_twins(rng, target)] if twins else [target]
        same = [draft.attributes for draft in family if draft.kind is target.kind]
        if registry.accepts(target.kind, target.wanted, same):
            registry.add(target.kind, target.wanted, same)
            return family


def draw_filler(rng: Random, registry: Registry) -> Draft:
    """Draws a product without goals that satisfies nobody's wishes by accident."""
    while True:
        draft = replace(_target(rng), wanted=(), role="filler")
        if registry.accepts(draft.kind, (), [draft.attributes]):
            registry.add(draft.kind, (), [draft.attributes])
            return draft


def _target(rng: Random) -> Draft:
    kind = rng.choice(PRODUCT_TYPES)
    wanted = tuple(rng.sample(ATTRIBUTES[kind.category], rng.choice((2, 3, 3, 4))))
    more = [name for name in ATTRIBUTES[kind.category] if name not in wanted]
    attributes = (*wanted, *rng.sample(more, rng.randrange(0, 3)))
    low, high, priced = _price(rng, kind)
    return Draft(
        kind,
        attributes,
        wanted,
        _options(rng, kind),
        low,
        high,
        priced,
        rng.choice(kind.heads),
        rng.choice(kind.materials),
    )


def _price(rng: Random, kind: ProductType) -> tuple[int, int, bool]:
    share = rng.random()
    if share < 0.12:
        return 10_000, 10_000, False
    step = rng.randrange(*kind.price_steps)
    low = rng.randrange(PRICE_LADDER[step], PRICE_LADDER[step + 1])
    high = low if share < 0.75 else low + rng.randrange(100, max(low // 3, 101))
    return low, high, True


def _options(rng: Random, kind: ProductType) -> dict[str, tuple[str, ...]]:
    chosen: dict[str, tuple[str, ...]] = {}
    room = MAX_GOALS
    for key in kind.options:
        if rng.random() < 0.12:
            continue
        pool = OPTION_KINDS[key]
        most = min(len(pool.values), 6, room)
        if most < 2:
            continue
        count = rng.randrange(min(4, most), most + 1)
        start = rng.sample(pool.values, count)
        chosen[pool.name] = tuple(value for value in pool.values if value in start)
        room //= count
    return chosen


def _twins(rng: Random, target: Draft) -> Iterator[Draft]:
    # Twins cost no more than the cheapest reading of the target's price, so only the named constraint fails.
    low = max(target.low - rng.randrange(0, max(target.low // 10, 1)), 100)
    base = replace(target, wanted=(), low=low, high=low, priced=True)
    more = [name for name in ATTRIBUTES[target.kind.category] if name not in target.attributes]
    yield replace(_reworded(rng, base), attributes=(*target.wanted, *rng.sample(more, 1)), role="equivalent")
    for missing in target.wanted:
        rest = tuple(name for name in target.wanted if name != missing)
        yield replace(_reworded(rng, base), attributes=(*rest, *rng.sample(more, 2)), role=f"without {missing}")
    for name in target.options:
        others = {**target.options, name: _other_values(rng, target, name)}
        yield replace(_reworded(rng, base), attributes=target.wanted, options=others, role=f"without {name}")
    if target.high < _TARGET_PRICE_LIMIT:
        over = target.high + _OVER_CAP_CENTS + rng.randrange(0, 2000)
        yield replace(_reworded(rng, base), attributes=target.wanted, low=over, high=over, role="over the cap")
    other = _other_type(rng, target.kind)
    yield replace(
        replace(base, kind=other, head=rng.choice(other.heads), material=rng.choice(other.materials)),
        attributes=target.wanted,
        role="other type",
        near=target.head,
    )


def _reworded(rng: Random, draft: Draft) -> Draft:
    """The same thing in other words; name or material stays, because titles without a common noun never match."""
    kind = draft.kind
    head = rng.choice(kind.heads)
    return replace(draft, head=head, material=rng.choice(kind.materials) if head == draft.head else draft.material)


def _other_values(rng: Random, target: Draft, name: str) -> tuple[str, ...]:
    pools = [OPTION_KINDS[key] for key in target.kind.options if OPTION_KINDS[key].name == name]
    others = pools[0].others
    return tuple(rng.sample(others, rng.randrange(2, len(others) + 1)))


def _other_type(rng: Random, kind: ProductType) -> ProductType:
    top = kind.path.split(" › ")[0]
    return rng.choice([other for other in PRODUCT_TYPES if other.path.split(" › ")[0] != top])


def write_row(rng: Random, draft: Draft, number: int) -> dict[str, Any]:
    """Writes the product row of a draft: texts, prices, options, reviews.

    Args:
        rng: Generator of this product.
        draft: What it is.
        number: Makes the asin unique.
    """
    kind, head, material = draft.kind, draft.head, draft.material
    extra = rng.choice(kind.extras)
    places = [rng.random() for _ in draft.attributes]
    in_title = [a for a, place in zip(draft.attributes, places, strict=True) if place < 0.14][:2]
    in_text = [a for a, place in zip(draft.attributes, places, strict=True) if place >= 0.96]
    in_bullets = [a for a in draft.attributes if a not in in_title and a not in in_text]
    name = text.brand(rng)
    code = f"{rng.choice('ABCDEHKLMNPRSTVX')}{rng.randrange(10, 1000)}"
    heading, nouns = text.title(kind, name, head, material, extra, in_title, code)
    topics: list[str | None] = [*in_bullets, *([None] * rng.randrange(1, 3))]
    rng.shuffle(topics)
    bullets = [text.bullet(rng, head, material, extra, topic) for topic in topics]
    if draft.near:
        bullets.insert(0, f"Made to go with any {draft.near}: one {draft.near} after another.")
    return {
        "asin": _asin(rng, number),
        "name": heading,
        "full_description": text.description(rng, head, material, extra, in_text),
        "small_description": bullets,
        "pricing": _price_text(draft),
        "images": [""],
        "product_category": kind.path,
        "category": kind.category,
        "query": kind.query,
        "customization_options": {
            key: [{"value": value.title()} for value in values] for key, values in draft.options.items()
        }
        or "",
        "title_nouns": nouns,
        "rating": f"{rng.randrange(30, 51) / 10}",
        "reviews": text.reviews(rng),
    }


def _price_text(draft: Draft) -> str:
    if not draft.priced:
        return ""
    low, high = (f"${cents // 100}.{cents % 100:02d}" for cents in (draft.low, draft.high))
    return low if draft.low == draft.high else f"{low} - {high}"


def _asin(rng: Random, number: int) -> str:
    digits = ""
    for _ in range(5):
        number, rest = divmod(number, len(_ASIN_DIGITS))
        digits = _ASIN_DIGITS[rest] + digits
    return "S" + "".join(rng.choice(_ASIN_DIGITS) for _ in range(4)) + digits
