"""Products: from rows of the original file format to read-only records.

Knows prices, options and attributes. Does not know goals, search or pages, and never fetches an image.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from random import Random
from typing import Any

from seed_envs.errors import DataInvalid
from seed_envs.webshop.modes import Rules

DEFAULT_PRICE = 100.0
MAX_ASIN_LENGTH = 10
_NOT_NUMERIC = re.compile(r"[^\d.]")


@dataclass(frozen=True, slots=True)
class Review:
    """One customer review (shown only when reviews are switched on)."""

    title: str
    score: str
    body: str


@dataclass(frozen=True, slots=True, eq=False)
class Product:
    """One product as the shop shows it.

    Attributes:
        prices: Displayed price (one value, dollars) or range (two values).
        price: The hidden price that goals and the original reward use, dollars.
        options: Option name to values, lower case, in display order.
        attributes: Hidden attributes that the reward compares.
        nouns: Nouns of the title, lower case, in order, with repeats.
    """

    asin: str
    title: str
    description: str
    bullets: tuple[str, ...]
    category: str
    query: str
    product_category: str
    prices: tuple[float, ...]
    price_tag: str
    price: float
    options: Mapping[str, tuple[str, ...]]
    attributes: tuple[str, ...]
    image: str
    rating: str
    reviews: tuple[Review, ...]
    nouns: tuple[str, ...] | None
    instruction: str | None
    instruction_attributes: tuple[str, ...]

    @property
    def displayed_price(self) -> float:
        """Highest price a customer sees, dollars."""
        return max(self.prices)

    @property
    def option_text(self) -> str:
        """Options as they appear in the searched document."""
        return ", and ".join(f"{name}: {', '.join(values)}" for name, values in self.options.items())

    @property
    def document(self) -> str:
        """The text that search sees."""
        first_bullet = self.bullets[0] if self.bullets else ""
        return " ".join((self.title, self.description, first_bullet, self.option_text)).lower()


def parse_price(text: str) -> tuple[float, ...]:
    """Reads a price string: nothing, one value, or the first two of several.

    Raises:
        ValueError: If a non-empty string has no dollar sign or an unreadable amount.

    >>> parse_price("$5.00 - $7.25 - $9.00"), parse_price("$1,985.00"), parse_price("")
    ((5.0, 7.25), (1985.0,), (100.0,))
    """
    if not text:
        return (DEFAULT_PRICE,)
    pieces = text.split("$")[1:]
    if not pieces:
        raise ValueError("no dollar sign")
    try:
        values = tuple(float(Decimal(_NOT_NUMERIC.sub("", piece))) for piece in pieces)
    except InvalidOperation:
        raise ValueError("unreadable amount") from None
    return values[:2]


def price_tag(prices: Sequence[float]) -> str:
    """Displayed form of a price or price range."""
    return f"${prices[0]}" if len(prices) == 1 else f"${prices[0]} to ${prices[1]}"


def parse_options(raw: Any) -> dict[str, tuple[str, ...]]:
    """Cleans option groups: lower case, ``/`` spelled ``" | "``, groups without content dropped.

    >>> parse_options({"Color": [{"value": "Black/White "}], "Style": None})
    {'color': ('black | white',)}
    """
    options: dict[str, tuple[str, ...]] = {}
    for name, contents in (raw or {}).items():
        if contents is not None:
            options[name.lower()] = tuple(item["value"].strip().replace("/", " | ").lower() for item in contents)
    return options


def load_products(
    rows: Iterable[Mapping[str, Any]],
    entries: Mapping[str, Mapping[str, Any]],
    rules: Rules,
    rng: Random,
    num_products: int | None = None,
) -> tuple[Product, ...]:
    """Turns file rows into products, in file order.

    Args:
        rows: Rows of the product file.
        entries: Attribute entries by asin (attributes, instruction).
        rules: The switches ``prices``, ``options`` and ``lenient_files`` are read.
        rng: Source of the hidden price of products with a price range; drawn in product order.
        num_products: Only the first so many rows.

    Raises:
        DataInvalid: If a row is malformed, naming its asin.
    """
    products: list[Product] = []
    seen: set[str] = set()
    for number, row in enumerate(rows):
        if num_products is not None and number >= num_products:
            break
        try:
            asin = str(row["asin"])
            if asin == "nan" or len(asin) > MAX_ASIN_LENGTH or asin in seen:
                continue
            seen.add(asin)
            products.append(_product(row, entries.get(asin, {}), rules, rng))
        except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
            shown = row.get("asin") if isinstance(row, Mapping) else "?"
            raise DataInvalid(
                f"product row {number} (asin {shown!r}) is not in the WebShop format: {error!r}"
            ) from error
    return tuple(products)


def _product(row: Mapping[str, Any], entry: Mapping[str, Any], rules: Rules, rng: Random) -> Product:
    bullets = row["small_description"]
    prices = _prices(row, rules)
    options = parse_options(row.get("customization_options"))
    if rules.options == "nonempty":
        for name in [name for name, values in options.items() if not values]:
            warnings.warn(f"product {row['asin']}: empty option group {name!r} dropped", stacklevel=4)
            del options[name]
    if len(prices) == 1:
        price = prices[0]
    else:
        price = rng.uniform(*prices) if rules.prices == "drawn" else max(prices)
    images = row.get("images") or [""]
    reviews = tuple(Review(str(r["title"]), str(r["score"]), str(r["body"])) for r in row.get("reviews", ()))
    nouns = row.get("title_nouns")
    return Product(
        asin=str(row["asin"]),
        title=row["name"],
        description=row["full_description"],
        bullets=(bullets,) if isinstance(bullets, str) else tuple(bullets),
        category=row["category"],
        query=row["query"].lower().strip(),
        product_category=row["product_category"],
        prices=prices,
        price_tag=price_tag(prices),
        price=price,
        options=options,
        attributes=tuple(entry["attributes"]) if "attributes" in entry else ("DUMMY_ATTR",),
        image=str(images[0]),
        rating=str(row["rating"]) if reviews and "rating" in row else "N.A.",
        reviews=reviews,
        nouns=None if nouns is None else tuple(nouns),
        instruction=entry.get("instruction"),
        instruction_attributes=tuple(entry.get("instruction_attributes") or ()),
    )


def _prices(row: Mapping[str, Any], rules: Rules) -> tuple[float, ...]:
    text = row.get("pricing") or ""
    try:
        return parse_price(text)
    except ValueError as error:
        if not rules.lenient_files:
            raise ValueError(f"price {text!r}: {error}") from None
        warnings.warn(f"product {row['asin']}: price {text!r} counts as missing ({error})", stacklevel=5)
        return (DEFAULT_PRICE,)
