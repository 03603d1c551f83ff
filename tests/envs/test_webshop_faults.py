"""WebShop against its users: malformed catalogues, wrong arguments, foreign snapshots, copies of an environment."""

from __future__ import annotations

import copy
import itertools
import json
import pickle
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from webshop_catalogues import ENTRIES, HUMAN, ROWS, open_small_shop

import seed_envs  # noqa: F401
from seed_envs.errors import DataInvalid, InvalidState, NoTaskMatches, UnknownOption, UnknownTask
from seed_envs.webshop import writers
from seed_envs.webshop.__main__ import main
from seed_envs.webshop.actions import Command, parse_original, parse_tolerant
from seed_envs.webshop.env import WebShopEnv
from seed_envs.webshop.files import RawCatalogue
from seed_envs.webshop.modes import resolve_rules
from seed_envs.webshop.oracle import instruction_search, oracle_action
from seed_envs.webshop.shop import Shop
from seed_envs.webshop.state import State
from seed_envs.webshop.store import ShopSpec, open_shop

MISSING = object()
ODD: list[Any] = [
    *(MISSING, None, 5, 2.5, True, float("nan"), "", "x", "\ud800", "a\x00b", "$", "$1.2.3", "$٣", "$" + "9" * 400),
    *([], ["x", None], [5], {}, {"a": None}, {"a": [None]}, {"a": [{}]}, {"a": [{"value": None}]}, {"a": "xy"}),
    *([{"title": "x"}], {"a": {"value": "x"}}, {"\ud800": [{"value": "x"}]}, {"a": [{"value": "\ud800"}]}),
]


def changed(record: dict[str, Any], key: str, value: Any) -> dict[str, Any]:
    """A copy of a record with one field replaced or taken out."""
    copied = {**record, key: value}
    if value is MISSING:
        del copied[key]
    return copied


def walk_everything(shop: Shop) -> None:
    """Opens every product, its pages and its purchase, in every observation form."""
    for goal in shop.goals[:2]:
        for product in shop.products:
            state = State("0")
            clicks = [product.asin.lower(), "description", "< prev", "features", "< prev", "reviews", "buy now"]
            for kind, value in [("search", product.title.lower()), *(("click", click) for click in clicks)]:
                state = shop.apply(state, Command(kind, value), goal).state
                for write in writers.WRITERS.values():
                    write(shop.page(state, goal)).encode()
    assert len(shop.sha256) == 64


def load_and_walk(raw: RawCatalogue) -> int:
    """Plays a catalogue by both rule sets and both kinds of goals; returns how many of the four were refused."""
    refused = 0
    for mode, human in itertools.product(("original", "fixed"), (False, True)):
        spec = ShopSpec(resolve_rules(mode), human_goals=human, show_attrs=True, reviews=True, nouns="words")
        try:
            shop = open_shop(spec, raw)
        except DataInvalid as error:
            refused += 1
            assert "ZA00000001" in str(error) or "product row 0" in str(error)
        else:
            walk_everything(shop)
    return refused


@pytest.mark.filterwarnings("ignore:product ZA00000001")
@pytest.mark.parametrize("key", [*ROWS[0], "reviews", "title_nouns"])
def test_a_malformed_product_is_playable_or_refused_by_name(key: str) -> None:
    row = {**ROWS[0], "reviews": [{"title": "Fine", "score": "5", "body": "It is."}]}
    refused = sum(load_and_walk(RawCatalogue([changed(row, key, odd), ROWS[1]], ENTRIES, HUMAN)) for odd in ODD)
    assert refused > (20 if key != "images" else 0)


@pytest.mark.parametrize("key", ["attributes", "instruction", "instruction_attributes", None])
def test_a_malformed_entry_is_playable_or_refused_by_name(key: str | None) -> None:
    refused = 0
    for odd in ODD:
        entry = {**ENTRIES["ZA00000001"]}
        entries = changed(ENTRIES, "ZA00000001", odd if key is None else changed(entry, key, odd))
        refused += load_and_walk(RawCatalogue(ROWS[:2], entries, HUMAN))
    assert refused > 20


@pytest.mark.parametrize("key", ["instruction", "instruction_attributes", "instruction_options", None])
def test_a_malformed_human_instruction_is_playable_or_refused_by_name(key: str | None) -> None:
    refused = 0
    for odd in ODD:
        entry = HUMAN["ZA00000001"][0]
        human = changed(HUMAN, "ZA00000001", odd if key is None else [changed(entry, key, odd)])
        refused += load_and_walk(RawCatalogue(ROWS[:2], ENTRIES, human))
    assert refused > 10


@pytest.mark.parametrize("row", [None, 5, "x", [], {}])
def test_a_row_that_is_no_product_is_refused_by_number(row: Any) -> None:
    with pytest.raises(DataInvalid, match="product row 1 "):
        open_small_shop(rows=[ROWS[0], row])


def test_a_damaged_noun_file_is_named(tmp_path: Path) -> None:
    assert main(["generate", str(tmp_path), "--num-products", "20"]) == 0
    for content in ("[", "[]", "{}", '{"model": "x", "titles": 5}'):
        (tmp_path / "title_nouns.json").write_text(content, encoding="utf-8")
        with pytest.raises(DataInvalid, match=r"title_nouns\.json is not a noun file"):
            WebShopEnv(catalogue="files", data_dir=tmp_path)


# -- arguments -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_products": 0}, "num_products=0: expected a whole number from 1 up"),
        ({"num_products": "5"}, "num_products='5': expected"),
        ({"num_products": True}, "num_products=True: expected"),
        ({"catalogue_seed": 1.5}, "catalogue_seed=1.5: expected a whole number"),
        # A missing seed would draw prices from the system's randomness.
        ({"price_seed": None}, "price_seed=None: expected a whole number"),
        ({"num_prev_obs": -1}, "num_prev_obs=-1: expected a whole number from 0 up"),
        ({"num_prev_actions": "2"}, "num_prev_actions='2': expected"),
        ({"nouns": "word"}, "nouns='word' is unknown.*Did you mean 'words'"),
        ({"search_engine": "bm52"}, "search_engine='bm52' is unknown.*Did you mean 'bm25'"),
        ({"catalogue": "file"}, "catalogue='file' is unknown.*Did you mean 'files'"),
        ({"rules": "parser"}, "rules='parser': expected a mapping"),
        ({"mode": ["fixed"]}, "mode=.'fixed'.: expected text"),
    ],
)
def test_wrong_arguments_are_explained(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(UnknownOption, match=message):
        WebShopEnv(**{"num_products": 20, **arguments})


def test_a_split_without_goals_is_explained() -> None:
    env = WebShopEnv(num_products=2)
    with pytest.raises(NoTaskMatches, match="'train' has no goal: 2 products of the generated .* 0 synthetic goals"):
        env.reset(seed=0)


def test_a_small_split_of_files_names_the_file_and_not_another_number(data_dir: Path) -> None:
    env = WebShopEnv(data_dir=data_dir / "webshop", human_goals=True, num_products=3)
    with pytest.raises(
        NoTaskMatches, match=r"3 products of items_shuffle_1000.json .* more human goals than items_hum"
    ):
        env.reset(seed=0)


def test_goals_by_number_accept_numpy_and_refuse_everything_else() -> None:
    env = WebShopEnv(num_products=100)
    assert env.reset(options={"goal": np.int64(3)})[1]["webshop"]["goal_index"] == 3
    for goal in (3.0, "3", True, [3], {"asin": "x"}, -1, np.int64(10**6)):
        with pytest.raises(UnknownTask, match="expected an integer from 0 to"):
            env.reset(options={"goal": goal})


@pytest.mark.parametrize(
    "command",
    [
        ["baselines", "--num-products", "20", "--split", "tset"],
        ["serve", "--num-products", "20", "--split", "tset"],
        ["serve", "--num-products", "20", "--port", "99999"],
        ["serve", "--num-products", "20", "--host", "198.51.100.7"],
        ["generate", "/dev/null/x"],
        ["nouns", "/dev/null"],
    ],
)
def test_commands_end_with_one_line_of_error(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(command) == 2
    error = capsys.readouterr().err
    assert error.startswith("python -m seed_envs.webshop: ") and error.count("\n") == 1


# -- searches --------------------------------------------------------------------------------------------------------


def test_a_query_of_too_many_characters_that_are_words_is_refused() -> None:
    env = WebShopEnv(num_products=100)
    env.reset(seed=0)
    *_, info = env.step("search[" + "".join(chr(0x4E00 + number) for number in range(1500)) + "]")
    assert not info["action_valid"] and "1500 distinct words" in info["invalid_reason"]


def test_instructions_with_brackets_can_be_searched() -> None:
    entries = {"ZA00000001": {**ENTRIES["ZA00000001"], "instruction": "Find a [large]\nbag ]["}}
    for mode, parse in (("original", parse_original), ("fixed", parse_tolerant)):
        spec = ShopSpec(resolve_rules(mode), nouns="words")
        goal = open_shop(spec, RawCatalogue(ROWS[:1], entries, {})).goals[0]
        command = parse(instruction_search(goal), tuple)
        assert command.kind == "search" and command.argument.startswith("find a large bag with color: ")


def test_tolerant_searches_are_one_line() -> None:
    assert parse_tolerant("Search[ red\n shoes\t ]", tuple) == Command("search", "red shoes")


def test_the_random_player_searches_the_instruction_and_meets_products() -> None:
    env = WebShopEnv(num_products=100, split="all")
    pages = set()
    for seed in range(10):
        env.reset(seed=seed)
        for _ in range(15):
            action = env.random_action()
            _, _, done, _, info = env.step(action)
            assert info["action_valid"] and "<your query>" not in action
            pages.add(info["webshop"]["page"])
            if done:
                break
    assert pages == {"index", "results", "item", "sub", "done"}


# -- snapshots and copies --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("obs_mode", ["text", "text_rich"])
def test_environments_are_copied_and_pickled_in_the_middle_of_an_episode(obs_mode: str) -> None:
    env = gym.make("seed/WebShop-Fixed-v0", num_products=100, obs_mode=obs_mode, num_prev_obs=1, split="all")
    base: Any = env.unwrapped
    env.reset(seed=3)
    env.step(base.oracle_action())
    for double in (copy.deepcopy(env), pickle.loads(pickle.dumps(env))):
        inner: Any = double.unwrapped
        snapshot, action = base.get_state(), base.oracle_action()
        assert inner.shop is base.shop and inner.get_state() == snapshot
        ours, theirs = env.step(action), double.step(action)
        assert ours[:4] == theirs[:4] and json.dumps(ours[4]["webshop"]) == json.dumps(theirs[4]["webshop"])
        # What the copy does next is its own business.
        here = base.get_state()
        assert double.reset()[1]["task_id"]
        assert base.get_state() == here
        base.set_state(snapshot)
    # Without a new seed both draw the same next task.
    assert pickle.loads(pickle.dumps(env)).reset()[1]["task_id"] == env.reset()[1]["task_id"]


def test_a_new_environment_is_pickled_in_little_space() -> None:
    double = pickle.loads(pickle.dumps(WebShopEnv(num_products=100)))
    assert len(pickle.dumps(double)) < 20_000
    assert double.reset(seed=0) == WebShopEnv(num_products=100).reset(seed=0)


def test_snapshots_of_other_catalogues_are_refused_and_change_nothing() -> None:
    env, other = WebShopEnv(num_products=100), WebShopEnv(num_products=100, catalogue_seed=9)
    env.reset(seed=0)
    other.reset(seed=0)
    other.step(other.oracle_action())
    other.step(other.oracle_action())
    before = env.get_state()
    foreign = other.get_state()
    wrong_product = foreign._replace(task_id=before.task_id)
    unstarted = WebShopEnv(num_products=100).get_state()
    for state in (foreign, wrong_product, unstarted, None, tuple(before)):
        with pytest.raises(InvalidState):
            env.set_state(state)  # type: ignore[arg-type]
        assert env.get_state() == before
    assert pickle.loads(pickle.dumps(before)) == copy.deepcopy(before) == before


def test_the_oracle_plays_on_from_any_page() -> None:
    shop = open_small_shop("fixed")
    goal = shop.goals[0]
    starts = [
        [],
        [("search", "totes")],
        [("search", "totes"), ("click", "za00000002")],
        [("search", "totes"), ("click", "za00000002"), ("click", "features")],
        [("search", "orlo"), ("click", "za00000001"), ("click", "x-large"), ("click", "reviews")],
    ]
    for commands in starts:
        state = State("0")
        for command in commands:
            state = shop.apply(state, Command(*command), goal).state
        for _ in range(10):
            kind, _, argument = oracle_action(shop, state, goal)[:-1].partition("[")
            state = shop.apply(state, Command(kind, argument), goal).state
            if state.verdict is not None:
                break
        assert state.verdict is not None and state.verdict.fixed.total == 1.0
