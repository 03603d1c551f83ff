"""One shop per process and description: built on first use, shared by every environment, server and benchmark."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random

from seed_envs.arguments import check_choice
from seed_envs.data import data_dir
from seed_envs.data_card import DataSource, Kind, counted
from seed_envs.errors import UnknownOption
from seed_envs.webshop.catalogue import load_products
from seed_envs.webshop.files import RawCatalogue, read_catalogue
from seed_envs.webshop.goals import build_goals
from seed_envs.webshop.modes import Rules
from seed_envs.webshop.nouns import with_nouns
from seed_envs.webshop.search import build_engine
from seed_envs.webshop.shop import Shop

DEFAULT_PRODUCTS = 1000
#: SHA-256 of the unpacked files of the published 1,000-product set, by name. Other releases count as the user's own.
OFFICIAL_FILES = {
    "items_shuffle_1000.json": "74df6a840e10bbae8b34e56ca49ce09e8a207c25e5bd464bc8961129b69d753f",
    "items_ins_v2_1000.json": "f88a36314a397b53b3d9c3fa5878e5f7b26d35019a51ec83fbedeca61a948f6f",
    "items_human_ins_1000.json": "bdd25a68795e698df35b4e9c6eed05cb62fb47ad6a2f4dea914fee69ebc0f694",
}


@dataclass(frozen=True)
class ShopSpec:
    """Everything a shop depends on.

    Attributes:
        rules: Switches of the mode.
        catalogue: ``generated`` or ``files``.
        folder: Data folder for ``files`` (None: environment variable or cache).
        num_products: Catalogue size (``generated``; default 1,000) or number of rows read (``files``; default all).
        catalogue_seed: Seed of the generator.
        seed: Seed of hidden prices and price caps.
        human_goals: Whether the goals come from human instructions.
        hostile: Whether the generated catalogue includes hostile texts.
        show_attrs: Whether item pages have an Attributes button.
        reviews: Whether reviews and ratings are shown.
        search_engine: ``bm25`` or ``lucene``.
        nouns: ``auto``, ``spacy`` or ``words``.
    """

    rules: Rules
    catalogue: str = "generated"
    folder: str | None = None
    num_products: int | None = None
    catalogue_seed: int = 0
    seed: int = 0
    human_goals: bool = False
    hostile: bool = False
    show_attrs: bool = False
    reviews: bool = False
    search_engine: str = "bm25"
    nouns: str = "auto"


#: Shops kept for new environments; older ones live on in the environments that use them.
MAX_SHOPS = 16
_SHOPS: dict[tuple[ShopSpec, Path | None], Shop] = {}
_LOCK = threading.Lock()


def get_shop(spec: ShopSpec) -> Shop:
    """Returns the process's shop for a description, building it on first use.

    Raises:
        UnknownOption: See :func:`build_shop`.
        DataMissing: If the data folder or a file in it does not exist.
    """
    check_spec(spec)
    key = spec, _folder(spec)  # where nobody names the folder, another one may be found now
    shop = _SHOPS.get(key)
    if shop is None:
        with _LOCK:
            shop = _SHOPS.get(key)
            if shop is None:
                shop = build_shop(spec)
                while len(_SHOPS) >= MAX_SHOPS:
                    del _SHOPS[next(iter(_SHOPS))]
                _SHOPS[key] = shop
    return shop


def build_shop(spec: ShopSpec) -> Shop:
    """Builds a shop without caching it.

    Raises:
        UnknownOption: If ``catalogue`` is neither ``generated`` nor ``files``, or something is asked for that it does
            not have.
        DataMissing: If the data folder or a file in it does not exist.
    """
    check_spec(spec)
    folder, raw = _read(spec)
    return open_shop(spec, raw, folder)


def check_spec(spec: ShopSpec) -> None:
    """Refuses what a catalogue of that kind would ignore.

    Raises:
        UnknownOption: Naming the argument, and what to leave out or add.
    """
    check_choice("catalogue", spec.catalogue, ("generated", "files"))
    if spec.catalogue == "generated":
        if spec.folder is not None:
            raise UnknownOption(f"data_dir={spec.folder!r} is read with catalogue='files'; leave one of the two out")
        return
    for name, given in (("hostile", spec.hostile), ("catalogue_seed", spec.catalogue_seed)):
        if given:
            raise UnknownOption(f"{name}={given!r} is for catalogue='generated'; files are played as they are")


def check_content(spec: ShopSpec, raw: RawCatalogue) -> None:
    """Refuses what files do not hold.

    Raises:
        UnknownOption: For more products than there are rows, or reviews where no row has any.
    """
    name = raw.files[0][0]
    if spec.num_products is not None and spec.num_products > len(raw.rows):
        raise UnknownOption(f"num_products={spec.num_products}: {name} has {len(raw.rows)} rows; ask for at most that")
    if spec.reviews and not any(isinstance(row, Mapping) and row.get("reviews") for row in raw.rows):
        raise UnknownOption(f"reviews=True: no row of {name} has reviews; leave it out")


def open_shop(spec: ShopSpec, raw: RawCatalogue, folder: Path | None = None) -> Shop:
    """Builds a shop over a catalogue that is already in memory.

    Args:
        spec: Rules, seeds and switches (its source fields are ignored).
        raw: The catalogue.
        folder: Folder whose noun side file may be used.
    """
    rng = Random(spec.seed)
    limit = spec.num_products if spec.catalogue == "files" else None
    skipped: Counter[str] = Counter()
    products = load_products(raw.rows, raw.entries, spec.rules, rng, limit, spec.reviews, skipped)
    if spec.human_goals:
        known = {product.asin for product in products}
        skipped["human instruction for a product that is not there"] = sum(asin not in known for asin in raw.human)
    noun_source, products = with_nouns(products, folder, spec.nouns)
    goals = build_goals(products, raw.human if spec.human_goals else None, spec.rules, rng, spec.seed)
    engine = build_engine(spec.search_engine, products)
    source = DataSource(_kind(raw), raw.files, "human" if spec.human_goals else "synthetic", counted(skipped))
    return Shop(products, goals, spec.rules, engine, spec.show_attrs, spec.seed, noun_source, source)


def _kind(raw: RawCatalogue) -> Kind:
    if not raw.files:
        return "generated"
    return "real" if all(OFFICIAL_FILES.get(name) == digest for name, digest in raw.files) else "own"


ORIGINAL_FILES = (
    "the setup script of princeton-nlp/WebShop, which fetches items_shuffle_1000.json and items_ins_v2_1000.json (or "
    "the full items_shuffle.json and items_ins_v2.json) into its folder data, and name that folder; without "
    "catalogue='files' the generated catalogue needs no data"
)


def _folder(spec: ShopSpec) -> Path | None:
    return data_dir("webshop", spec.folder, "WEBSHOP_DATA", ORIGINAL_FILES) if spec.catalogue == "files" else None


def _read(spec: ShopSpec) -> tuple[Path | None, RawCatalogue]:
    folder = _folder(spec)
    if folder is not None:
        raw = read_catalogue(folder, spec.human_goals)
        check_content(spec, raw)
        return folder, raw
    from seed_envs.webshop.generator import generate

    size = DEFAULT_PRODUCTS if spec.num_products is None else spec.num_products
    return None, generate(size, spec.catalogue_seed, hostile=spec.hostile)
