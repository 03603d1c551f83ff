"""The small invented catalogue of the WebShop tests, in the original file format."""

from __future__ import annotations

from typing import Any

from seed_envs.webshop.files import RawCatalogue
from seed_envs.webshop.modes import resolve_rules
from seed_envs.webshop.shop import Shop
from seed_envs.webshop.store import ShopSpec, open_shop


def _options(**groups: list[str] | None) -> dict[str, Any]:
    return {
        name.replace("_", " "): None if values is None else [{"value": value} for value in values]
        for name, values in groups.items()
    }


def _row(asin: str, name: str, path: str, description: str, bullets: Any, price: str, query: str, options: Any) -> dict:
    return {
        "asin": asin,
        "name": name,
        "product_category": path,
        "full_description": description,
        "small_description": bullets,
        "pricing": price,
        "query": query,
        "customization_options": options,
        "category": "fashion",
        "images": ["https://example.org/a.jpg"],
    }


ROWS: list[dict[str, Any]] = [
    _row(
        "ZA00000001",
        "Orlo Canvas Backpack with Laptop Sleeve",
        "Luggage › Bags › Backpacks",
        "A roomy bag for school & work.",
        ["WATER RESISTANT shell. ", "Padded straps"],
        "$24.50",
        " Backpacks ",
        _options(Color=["Navy Blue ", "Black/White"], Size=["Large", "X-Large"]),
    ),
    _row(
        "ZA00000002",
        "Orlo Canvas Tote",
        "Luggage › Bags › Totes",
        "Folds flat.",
        "Machine washable",
        "$10.00 - $15.50",
        "totes",
        "",
    ),
    _row(
        "ZA00000003",
        "Quill Ceramic Mug",
        "Kitchen › Drinkware › Mugs",
        "",
        [""],
        "",
        "mugs",
        _options(Style=None, Flavor_Name=["café crème", "tan"]),
    ),
    _row(
        "ZA00000004",
        "Veld Linen Shirt",
        "Clothing › Men › Shirts",
        "   ",
        ["100% linen", "Slim fit"],
        "$1,985.00",
        "men's shirts",
        _options(Special_Size=["standard", "big"], Color=["black"]),
    ),
    _row(
        "ZA00000005",
        'Brim <b>Hat</b> & "Co"',
        "Clothing › Men › Hats",
        "Shade for sunny days.\nLine two.",
        ["UPF 50+", "a < b"],
        "$5.00 - $7.25 - $9.00",
        "hats",
        _options(Size=["128 gb [wifi]", "description", "size"]),
    ),
    _row("ZA00000001", "A repeated product", "A › B", "", [], "$1.00", "x", ""),
    _row("nan", "No asin", "A › B", "", [], "$1.00", "x", ""),
    _row("ZA000000006", "Long asin", "A › B", "", [], "$1.00", "x", ""),
]

ENTRIES: dict[str, dict[str, Any]] = {
    "ZA00000001": {
        "attributes": ["water resistant", "padded straps"],
        "instruction": "Find me water resistant backpacks",
        "instruction_attributes": ["water resistant"],
    },
    "ZA00000002": {
        "attributes": ["machine washable"],
        "instruction": "Find me machine washable totes",
        "instruction_attributes": ["machine washable"],
    },
    "ZA00000003": {"attributes": ["dishwasher safe"]},
    "ZA00000004": {
        "attributes": ["slim fit"],
        "instruction": "Find me slim fit men's shirts",
        "instruction_attributes": ["slim fit"],
    },
}

HUMAN: dict[str, list[dict[str, Any]]] = {
    "ZA00000001": [
        {
            "instruction": "i need a navy backpack..",
            "instruction_attributes": ["water resistant"],
            "instruction_options": ["navy blue"],
        },
        {"instruction": "anything", "instruction_attributes": [], "instruction_options": []},
    ],
    "ZA00000003": [
        {
            "instruction": "a mug. please",
            "instruction_attributes": ["dishwasher safe"],
            "instruction_options": [],
        }
    ],
}


def open_small_shop(
    mode: str = "original",
    human: bool = False,
    rows: list[dict[str, Any]] | None = None,
    show_attrs: bool = True,
    **rules: Any,
) -> Shop:
    """A shop over the invented catalogue, seed 7."""
    spec = ShopSpec(resolve_rules(mode, rules), seed=7, human_goals=human, show_attrs=show_attrs, nouns="words")
    return open_shop(spec, RawCatalogue(ROWS if rows is None else rows, ENTRIES, HUMAN))
