"""One shop per process and description: built on first use, shared by every environment, server and benchmark."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path
from random import Random

from seed_envs.arguments import check_choice
from seed_envs.data import data_dir
from seed_envs.webshop.catalogue import load_products
from seed_envs.webshop.files import RawCatalogue, read_catalogue
from seed_envs.webshop.goals import build_goals
from seed_envs.webshop.modes import Rules
from seed_envs.webshop.nouns import with_nouns
from seed_envs.webshop.search import build_engine
from seed_envs.webshop.shop import Shop

DEFAULT_PRODUCTS = 1000


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
_SHOPS: dict[ShopSpec, Shop] = {}
_LOCK = threading.Lock()


def get_shop(spec: ShopSpec) -> Shop:
    """Returns the process's shop for a description, building it on first use."""
    shop = _SHOPS.get(spec)
    if shop is None:
        with _LOCK:
            shop = _SHOPS.get(spec)
            if shop is None:
                shop = build_shop(spec)
                while len(_SHOPS) >= MAX_SHOPS:
                    del _SHOPS[next(iter(_SHOPS))]
                _SHOPS[spec] = shop
    return shop


def build_shop(spec: ShopSpec) -> Shop:
    """Builds a shop without caching it.

    Raises:
        UnknownOption: If ``catalogue`` is neither ``generated`` nor ``files``.
        DataMissing: If the data folder or a file in it does not exist.
    """
    folder, raw = _read(spec)
    return open_shop(spec, raw, folder)


def open_shop(spec: ShopSpec, raw: RawCatalogue, folder: Path | None = None) -> Shop:
    """Builds a shop over a catalogue that is already in memory.

    Args:
        spec: Rules, seeds and switches (its source fields are ignored).
        raw: The catalogue.
        folder: Folder whose noun side file may be used.
    """
    rng = Random(spec.seed)
    limit = spec.num_products if spec.catalogue == "files" else None
    products = load_products(raw.rows, raw.entries, spec.rules, rng, limit, spec.reviews)
    noun_source, products = with_nouns(products, folder, spec.nouns)
    goals = build_goals(products, raw.human if spec.human_goals else None, spec.rules, rng, spec.seed)
    engine = build_engine(spec.search_engine, products)
    return Shop(products, goals, spec.rules, engine, spec.show_attrs, spec.seed, noun_source)


def _read(spec: ShopSpec) -> tuple[Path | None, RawCatalogue]:
    check_choice("catalogue", spec.catalogue, ("generated", "files"))
    if spec.catalogue == "files":
        folder = data_dir("webshop", spec.folder, "WEBSHOP_DATA", "python -m seed_envs.webshop generate FOLDER")
        return folder, read_catalogue(folder, spec.human_goals)
    from seed_envs.webshop.generator import generate

    size = DEFAULT_PRODUCTS if spec.num_products is None else spec.num_products
    return None, generate(size, spec.catalogue_seed, hostile=spec.hostile)
