"""Product types of the generated catalogue: five categories, 36 kinds of things, all invented for this package."""

from __future__ import annotations

from importlib import resources
from typing import NamedTuple

from seed_envs.webshop.generator.vocabulary import words


class ProductType(NamedTuple):
    """A kind of product.

    Attributes:
        category: One of the five top-level names.
        path: Category path; types that share two parts are siblings.
        query: Search category the goals name.
        heads: Names of the thing, interchangeable.
        materials: What it is made of or based on.
        extras: What it comes with.
        options: Option groups it may have.
        price_steps: Range of steps on the price ladder.
    """

    category: str
    path: str
    query: str
    heads: tuple[str, ...]
    materials: tuple[str, ...]
    extras: tuple[str, ...]
    options: tuple[str, ...]
    price_steps: tuple[int, int]


def _read(line: str) -> ProductType:
    category, path, query, heads, materials, extras, options, steps = line.split("\t")
    low, high = map(int, steps.split("-"))
    return ProductType(
        category, path, query, words(heads), words(materials), words(extras), words(options), (low, high)
    )


_FILE = resources.files("seed_envs.webshop") / "data" / "product_types.tsv"
PRODUCT_TYPES = tuple(map(_read, _FILE.read_text(encoding="utf-8").splitlines()[1:]))
