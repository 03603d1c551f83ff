"""The table of suites: all panels of the paper, and a mini suite of each environment that works offline at once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from seed_envs.plugins import OpenTable
from seed_envs.registration import TABLE as ENVIRONMENTS
from seed_envs.registration import make

from .errors import UnknownSuite
from .suite import Suite, load_suite

_ALFWORLD = "seed/ALFWorld-v0"
_WEBSHOP = "seed/WebShop-v0"
_SEARCH = "seed/SearchQA-v0"
_SOKOBAN = "seed/Sokoban-v0"
_EZPOINTS = "seed/EZPoints-v0"
_SHOP_FILES = {"catalogue": "files"}
_QA_FILES = {"questions": "search_qa/test.parquet", "collection": "search_qa/wiki-18.jsonl"}
#: The seven evaluated question sets, in the order of the paper's table.
_QA_SETS = {
    "nq": 3_610,
    "triviaqa": 11_313,
    "popqa": 14_267,
    "hotpotqa": 7_405,
    "2wikimultihopqa": 12_576,
    "musique": 2_417,
    "bamboogle": 125,
}
#: Split of generated games in rooms never seen in training, commands allowed per command of the shortest plan, listing.
_ALFWORLD_PANELS = (
    ("unlikely_places", 3, "two rooms joined, things where they rarely lie"),
    ("crowded", 2, "four rooms joined, forty foreign kinds of things"),
    ("new_layouts", 1.5, "four rooms joined, one thing of each kind"),
    ("two_goals", 1.5, "four rooms joined, two goals at once"),
    ("own_words", 0, "tasks described rather than named"),
)

SUITES: tuple[Suite, ...] = (
    Suite("alfworld/mini", _ALFWORLD, "mini_valid_seen", 30, "tolerant", about="generated rooms, scenes of training"),
    Suite("alfworld/mini_unseen", _ALFWORLD, "mini_valid_unseen", 30, "tolerant", about="generated rooms, new scenes"),
    Suite("alfworld/valid_seen", _ALFWORLD, "valid_seen", 140, "tolerant", about="official games"),
    Suite("alfworld/valid_unseen", _ALFWORLD, "valid_unseen", 134, "tolerant", about="official games, new scenes"),
    *(
        Suite(
            f"alfworld/{name}",
            _ALFWORLD,
            name,
            120,
            "tolerant",
            env_kwargs={"budget": budget},
            about=about + (f"; {budget:g} x shortest plan" if budget else ""),
        )
        for name, budget, about in _ALFWORLD_PANELS
    ),
    *(
        Suite(f"alfworld/human_{name}", _ALFWORLD, f"human_{name}", 3 * tasks, "tolerant", about="people's sentences")
        for name, tasks in (("valid_seen", 140), ("valid_unseen", 134))
    ),
    Suite("webshop/mini", _WEBSHOP, "test", 64, "tolerant", first=64, about="generated catalogue"),
    Suite(
        "webshop/mini_fixed",
        "seed/WebShop-Fixed-v0",
        "test",
        64,
        "tolerant",
        first=64,
        about="the same, defects repaired",
    ),
    Suite(
        "webshop/combined",
        _WEBSHOP,
        "combined",
        128,
        "tolerant",
        about="generated catalogue, goals in which attributes, options and price each decide",
    ),
    Suite(
        "webshop/test_128", _WEBSHOP, "test", 128, "tolerant", first=128, env_kwargs=_SHOP_FILES, about="original files"
    ),
    Suite(
        "webshop/test",
        _WEBSHOP,
        "test",
        500,
        "tolerant",
        env_kwargs=_SHOP_FILES,
        about="original files, all test goals",
    ),
    Suite("search_qa/mini", _SEARCH, "test", 350, "search-r1", about="generated encyclopedia, seven question styles"),
    Suite("search_qa/hops", _SEARCH, "hops", 400, "search-r1", about="generated encyclopedia, one to four hops"),
    *(
        Suite(f"search_qa/{name}", _SEARCH, "eval", count, prefix=f"{name}/", data=_QA_FILES, about="Wikipedia 2018")
        for name, count in _QA_SETS.items()
    ),
    Suite("search_qa/all", _SEARCH, "eval", sum(_QA_SETS.values()), data=_QA_FILES, about="the seven sets"),
    Suite("sokoban/mini", _SOKOBAN, "test", 64, "strict", first=64, about="solved levels, pictures"),
    Suite("sokoban/mini_text", _SOKOBAN, "test", 64, "strict-text", first=64, about="solved levels, text"),
    Suite("sokoban/paper", _SOKOBAN, "test", 256, about="6x6, one box, framework levels, pictures"),
    Suite("sokoban/paper_text", _SOKOBAN, "test", 256, "paper-text", about="the same as text"),
    Suite("sokoban/strict", _SOKOBAN, "test", 256, "strict", about="solved levels, pictures"),
    Suite("ezpoints/mini", _EZPOINTS, "test", 64, "strict", first=64, about="pictures of cards"),
    Suite("ezpoints/mini_text", _EZPOINTS, "test", 64, "strict-text", first=64, about="cards in words"),
    Suite("ezpoints/paper", _EZPOINTS, "test", 256, about="pictures of cards, framework parser"),
    Suite("points24/mini", "seed/Points24-v0", "test", 64, "strict", first=64, about="four cards, target 24"),
)


TABLE: OpenTable[Suite] = OpenTable("suite", "suites", Suite, {suite.name: suite for suite in SUITES}, UnknownSuite)
"""Every suite; an installed package adds its own as an entry point of ``seed_envs.suites``."""


def find_suite(name: str) -> Suite:
    """A suite by name, as ``module:attribute``, from a .json file, or all tasks of an environment's default split.

    Raises:
        UnknownSuite: With close matches.
    """
    if name.endswith(".json"):
        return load_suite(Path(name))
    if name not in TABLE and name in ENVIRONMENTS:
        env = make(name)
        try:
            return Suite(name, name, env.get_wrapper_attr("split"), about="every task of the default split")
        finally:
            env.close()
    try:
        return TABLE.find(name)
    except UnknownSuite as error:
        hint = "`seed-bench ls` lists all; a suite of your own is a .json file, or the id of an environment"
        raise UnknownSuite(f"{error} {hint}") from None


def choose_suites(names: Sequence[str]) -> list[Suite]:
    """The named suites; a family name stands for all its suites, nothing for every mini suite.

    Raises:
        UnknownSuite: With close matches.
    """
    if not names:
        return [suite for suite in SUITES if suite.name.split("/")[1].startswith("mini")]
    chosen: list[Suite] = []
    for name in names:
        family = [suite for suite in SUITES if suite.name.split("/")[0] == name]
        chosen += family or [find_suite(name)]
    return chosen
