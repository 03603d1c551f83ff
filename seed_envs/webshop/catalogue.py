"""Products: from rows of the original file format to read-only records.

Knows prices, options and attributes. Does not know goals, search or pages, and never fetches an image.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
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
            values = [checked_text(item["value"], f"option {name!r}") for item in contents]
            options[checked_text(name, "option name").lower()] = tuple(
                value.strip().replace("/", " | ").lower() for value in values
            )
    return options


def checked_text(value: object, what: str) -> str:
    """A string of a file, unless it is none or holds half a character pair, which no page could carry.

    Raises:
        ValueError: Naming what it is.
    """
    if not isinstance(value, str):
        raise ValueError(f"{what} is {value!r:.60}, expected a text")
    if not value.isascii():
        value.encode()
    return value


def checked_texts(values: object, what: str) -> tuple[str, ...]:
    """A list of strings of a file.

    Raises:
        ValueError: Naming what it is.
    """
    if not isinstance(values, (list, tuple)):
        raise ValueError(f"{what} is {values!r:.60}, expected a list of texts")
    return tuple(checked_text(value, what) for value in values)


def load_products(
    rows: Iterable[Mapping[str, Any]],
    entries: Mapping[str, Mapping[str, Any]],
    rules: Rules,
    rng: Random,
    num_products: int | None = None,
    with_reviews: bool = True,
    skipped: Counter[str] | None = None,
) -> tuple[Product, ...]:
    """Turns file rows into products, in file order.

    Args:
        rows: Rows of the product file.
        entries: Attribute entries by asin (attributes, instruction).
        rules: The switches ``prices``, ``options`` and ``lenient_files`` are read.
        rng: Source of the hidden price of products with a price range; drawn in product order.
        num_products: Only the first so many rows.
        with_reviews: Whether reviews and the rating are read.
        skipped: Counts the rows that are left out, as the original leaves them out, by reason.

    Raises:
        DataInvalid: If a row is malformed, naming its asin.
    """
    products: list[Product] = []
    seen: set[str] = set()
    for number, row in enumerate(rows):
        if num_products is not None and number >= num_products:
            break
        try:
            asin = checked_text(row["asin"], "asin")
            reason = _left_out(asin, seen)
            if reason:
                if skipped is not None:
                    skipped[reason] += 1
                continue
            seen.add(asin)
            products.append(_product(row, entries.get(asin, {}), rules, rng, with_reviews))
        except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
            shown = row.get("asin") if isinstance(row, Mapping) else "?"
            raise DataInvalid(
                f"product row {number} (asin {shown!r}) is not in the WebShop format: {error!r}"
            ) from error
    return tuple(products)


def _left_out(asin: str, seen: Container[str]) -> str:
    """Why the original passes over a row, or an empty string."""
    if asin == "nan" or len(asin) > MAX_ASIN_LENGTH:
        return "asin missing or too long"
    return "the same asin again" if asin in seen else ""


def _product(
    row: Mapping[str, Any], entry: Mapping[str, Any], rules: Rules, rng: Random, with_reviews: bool
) -> Product:
    if not isinstance(entry, Mapping):
        raise ValueError(f"its attribute entry is {entry!r:.60}, expected an object")
    bullets = row["small_description"]
    instruction = entry.get("instruction")
    prices = _prices(row, rules)
    options = parse_options(row.get("customization_options"))
    if rules.options == "nonempty":
        options = _nonempty(options, row["asin"])
    if len(prices) == 1:
        price = prices[0]
    else:
        price = rng.uniform(*prices) if rules.prices == "drawn" else max(prices)
    images = row.get("images") or [""]
    reviews = tuple(
        Review(*(checked_text(str(review[key]), f"review {key}") for key in ("title", "score", "body")))
        for review in (row.get("reviews", ()) if with_reviews else ())
    )
    nouns = row.get("title_nouns")
    return Product(
        asin=row["asin"],
        title=checked_text(row["name"], "name"),
        description=checked_text(row["full_description"], "full_description"),
        bullets=checked_texts([bullets] if isinstance(bullets, str) else bullets, "small_description"),
        category=checked_text(row["category"], "category"),
        query=checked_text(row["query"], "query").lower().strip(),
        product_category=checked_text(row["product_category"], "product_category"),
        prices=prices,
        price_tag=price_tag(prices),
        price=price,
        options=options,
        attributes=checked_texts(entry.get("attributes", ("DUMMY_ATTR",)), "attributes"),
        image=str(images[0]),
        rating=checked_text(str(row["rating"]), "rating") if reviews and "rating" in row else "N.A.",
        reviews=reviews,
        nouns=None if nouns is None else checked_texts(nouns, "title_nouns"),
        instruction=None if instruction is None else checked_text(instruction, "instruction"),
        instruction_attributes=checked_texts(entry.get("instruction_attributes") or (), "instruction_attributes"),
    )


def _nonempty(options: Mapping[str, tuple[str, ...]], asin: str) -> dict[str, tuple[str, ...]]:
    """Options without values that no click could name, and without groups that have none."""
    kept: dict[str, tuple[str, ...]] = {}
    for name, values in options.items():
        named = tuple(value for value in values if value)
        if len(named) < len(values):
            warnings.warn(f"product {asin}: empty value of option {name!r} dropped", stacklevel=5)
        if named:
            kept[name] = named
        else:
            warnings.warn(f"product {asin}: empty option group {name!r} dropped", stacklevel=5)
    return kept


def _amount(number: float) -> tuple[float, ...]:
    """A price that a file gives as a number, dollars."""
    if not 0 <= number < float("inf"):
        raise ValueError("no amount of money")
    return (float(number),)


def _prices(row: Mapping[str, Any], rules: Rules) -> tuple[float, ...]:
    text = row.get("pricing") or ""
    try:
        if rules.lenient_files and isinstance(text, (int, float)) and not isinstance(text, bool):
            return _amount(text)
        return parse_price(text)
    except (ValueError, AttributeError) as error:
        if not rules.lenient_files:
            raise ValueError(f"price {text!r}: {error}") from None
        warnings.warn(f"product {row['asin']}: price {text!r} counts as missing ({error})", stacklevel=5)
        return (DEFAULT_PRICE,)
