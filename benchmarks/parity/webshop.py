"""WebShop beside a clone of princeton-nlp/WebShop on the 1,000-product set: goals, pages, buttons, rewards.

``--against CLONE`` takes a clone of princeton-nlp/WebShop; the extra ``parity`` brings what it parses pages and matches
words with. Its text environment runs as it is on the user's catalogue. Two parts come from us: the ranking (Lucene and
our own engine are compared in the tests) and the title nouns that spaCy tags (stored ones of its small model). Its
prices and caps are drawn without a seed; here its generator is seeded as ours.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import random
import sys
import tempfile
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from seed_envs.data import data_dir
from seed_envs.errors import DataMissing, require
from seed_envs.registration import make
from seed_envs.webshop.files import read_json
from seed_envs.webshop.shop import Shop

from .clones import clone_of
from .rows import Documented, Options, ParityRow

ORIGINAL = "WebShop, clone"
EPISODES, TURNS = 100, 25
_PRODUCTS = 1_000
SEARCH_BUTTON = Documented("search-button", "webshop", "which the original lists and no click reaches")
_FILE = "web_agent_site/envs/web_agent_text_env.py"


def _silent(*_: Any, **__: Any) -> None:
    """The original reports its loading and registers its ids."""


_STAND_INS: dict[str, dict[str, Any]] = {
    "torch": {},
    "gym": {"Env": object},
    "gym.envs": {},
    "gym.envs.registration": {"register": _silent},
    "web_agent_site.envs.web_agent_site_env": {"WebAgentSiteEnv": object},
    "cleantext": {},
    "rank_bm25": {"BM25Okapi": object},
    "rich": {"print": _silent},
    "tqdm": {"tqdm": lambda things, total=None: things},
    "pyserini": {},
    "pyserini.search": {},
    "pyserini.search.lucene": {"LuceneSearcher": object},
}


def compare(options: Options) -> list[ParityRow]:
    """All goals, and ``episodes`` walks through pages.

    Raises:
        DataMissing: Without a clone or the catalogue.
        DependencyMissing: Without the extra ``parity``.
    """
    clone = clone_of(options, "https://github.com/princeton-nlp/WebShop")
    for name in ("bs4", "thefuzz", "flask"):
        require(name, "parity", "the original WebShop")
    ours: Any = make("seed/WebShop-v0", max_episode_steps=TURNS, catalogue="files", split="all")
    shop = ours.unwrapped.shop
    theirs = start(clone, data_dir("webshop", variable="WEBSHOP_DATA"), shop)
    return [goals(shop, theirs.server.goals), walks(ours, theirs, options.episodes or EPISODES)]


def start(clone: Path, folder: Path, shop: Shop) -> Any:
    """The original's text environment on the same catalogue.

    Raises:
        DataMissing: When the clone has none.
    """
    if not (clone / _FILE).is_file():
        raise DataMissing(f"{clone} has no {_FILE}; --against wants a clone of princeton-nlp/WebShop")
    nouns = {product.title: product.nouns or () for product in shop.products}
    tag = {"load": lambda _: lambda title: [SimpleNamespace(text=noun, pos_="NOUN") for noun in nouns[title]]}
    for name, attributes in (_STAND_INS | {"spacy": tag}).items():
        if name != "torch" or importlib.util.find_spec(name) is None:
            sys.modules[name] = ModuleType(name)
            vars(sys.modules[name]).update(attributes)
    sys.path.insert(0, str(clone))
    utils: Any = importlib.import_module("web_agent_site.utils")
    with tempfile.TemporaryDirectory() as unpacked:
        named = {
            "DEFAULT_FILE_PATH": "items_shuffle_1000", "DEFAULT_ATTR_PATH": "items_ins_v2_1000",
            "HUMAN_ATTR_PATH": "items_human_ins_1000",
        }  # fmt: skip
        for constant, stem in named.items():
            setattr(utils, constant, _plain_file(folder, stem, Path(unpacked)))
        module: Any = importlib.import_module("web_agent_site.envs.web_agent_text_env")
        vars(module).update(print=_silent, init_search_engine=lambda num_products: _Ranking(shop))
        random.seed(shop.seed)  # Prices and caps come from the global generator.
        return module.WebAgentTextEnv("text", utils.DEFAULT_FILE_PATH, num_products=_PRODUCTS, human_goals=False)


def _plain_file(folder: Path, stem: str, unpacked: Path) -> str:
    packed = folder / f"{stem}.json.gz"
    if not packed.is_file():
        return str(folder / f"{stem}.json")
    (unpacked / f"{stem}.json").write_text(json.dumps(read_json(packed)[0]), encoding="utf-8")
    return str(unpacked / f"{stem}.json")


class _Ranking:
    """Our engine with the interface of the original's searcher."""

    def __init__(self, shop: Shop) -> None:
        self._shop = shop

    def search(self, query: str, k: int) -> list[SimpleNamespace]:
        return [SimpleNamespace(docid=asin) for asin, _ in self._shop.engine.search(query, k)]

    def doc(self, docid: str) -> SimpleNamespace:
        return SimpleNamespace(raw=lambda: json.dumps({"id": docid}))


def goals(shop: Shop, theirs: list[dict[str, Any]]) -> ParityRow:
    """The whole list in its shuffled order."""
    row = ParityRow("goals", ORIGINAL)
    row.check("all", {"count": (len(shop.goals), len(theirs))})
    for ours, goal in zip(shop.goals, theirs, strict=False):
        row.check(
            f"goal {ours.index}",
            {
                "product": (ours.product.asin, goal["asin"]),
                "instruction": (ours.instruction, goal["instruction_text"]),
                "attributes": (list(ours.attributes), list(goal["attributes"])),
                "options": (dict(ours.options), goal["goal_options"]),
                "cap": (ours.price_upper, goal["price_upper"]),
                "weight": (ours.weight, goal["weight"]),
            },
        )
    return row


def walks(ours: Any, theirs: Any, episodes: int) -> ParityRow:
    """Random sessions: the goal's own product half the time, any button, sometimes one that is not there."""
    row, shop = ParityRow("pages and rewards", ORIGINAL), ours.unwrapped.shop
    for number in range(episodes):
        rng = np.random.default_rng(number)
        goal = shop.goals[int(rng.integers(len(shop.goals)))]
        observation, info = ours.reset(options={"task_id": goal.task_id})
        theirs.server.user_sessions.clear()
        their_text, where = theirs.reset(session=goal.index)[0], f"goal {goal.index}"
        reward = their_reward = 0.0
        ended = done = False
        row.episodes += 1
        for turn in range(TURNS):
            ours_shown = {"page": observation, "reward": reward, "end": ended, "buttons": _listed(info)}
            shown = {"page": their_text, "reward": float(their_reward), "end": done, "buttons": _buttons(theirs)}
            row.check(where, {name: (ours_shown[name], shown[name]) for name in shown})
            listed = theirs.get_available_actions()["clickables"]
            row.check(where, {"search button": ("click[search]" in _listed(info), "search" in listed)}, [SEARCH_BUTTON])
            if ended or done or turn == TURNS - 1:
                break
            action = _choose(rng, _listed(info), goal.product.asin.lower(), goal.product.title)
            observation, reward, ended, _, info = ours.step(action)
            their_text, their_reward, done, _ = theirs.step(action)
            row.steps, where = row.steps + 1, f"{where}, {action}"
    return row


def _listed(info: dict[str, Any]) -> list[str]:
    return list(info["admissible_actions"])


def _buttons(theirs: Any) -> list[str]:
    """As verl-agent writes them, without the button beside the search bar."""
    found = theirs.get_available_actions()
    bar = ["search[<your query>]"] if found["has_search_bar"] else []
    return bar + [f"click[{name}]" for name in found["clickables"] if name != "search"]


def _choose(rng: np.random.Generator, listed: list[str], asin: str, title: str) -> str:
    """A search for words of the title, the goal's product where it is listed, else any button, one that is none."""
    if rng.random() < 0.05:
        return str(rng.choice(["click[no such button]", "search[]", "look", "Click[Buy Now]", "click[BUY NOW]"]))
    if listed[0].startswith("search["):
        words = [word for word in title.replace("[", " ").replace("]", " ").split() if rng.random() < 0.6]
        return f"search[{' '.join(words) or 'shoes'}]"
    if f"click[{asin}]" in listed and rng.random() < 0.8:
        return f"click[{asin}]"
    return str(rng.choice(listed))
