"""The original mode against a second, naive reading of the original's rules: goals, pages, actions and rewards."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest
from webshop_second_reading import Session, World

from seed_envs.webshop.env import WebShopEnv
from seed_envs.webshop.generator import generate
from seed_envs.webshop.reward import score_original

FORMS = ("text", "text_rich", "url")
NO_OPS = ("click[zzz]", "Click[buy now]", " click[buy now]", "click[]", "search[]", "click[search]", "buy", "")
ODD_CLICKS = ("click[Buy Now]", "click[next >] then", "click[< PREV]", "click[back to search]]", "click[DESCRIPTION]")


class Pair:
    """The environment in three observation forms, and the second reading of the same catalogue."""

    def __init__(self, rows: Sequence[dict], entries: dict[str, dict], **arguments: object) -> None:
        self.envs = [WebShopEnv(obs_mode=form, show_attrs=True, split="all", **arguments) for form in FORMS]  # type: ignore[arg-type]
        shop = self.envs[0].shop
        self.shop = shop
        nouns = {product.asin: product.nouns or () for product in shop.products}
        self.world = World(rows, entries, lambda query: [asin for asin, _ in shop.engine.search(query, 50)], nouns)
        self.words = " ".join(product["title"] for product in self.world.products).split()

    def walk(self, number: int, rng: Random) -> int:
        """Plays one episode on both sides, comparing all that can be seen; returns the number of steps."""
        session = Session(self.world, number)
        shown = [env.reset(options={"goal": number})[0] for env in self.envs]
        for step in range(20):
            assert shown == [session.text(), session.text_rich(), session.url()]
            assert self.envs[0].page.clickables == list(session.clickables())
            if session.view == "done":
                return step
            action = self.choose(session, rng)
            done_something = session.act(action)
            outcomes = [env.step(action) for env in self.envs]
            shown = [outcome[0] for outcome in outcomes]
            for _, reward, done, _, info in outcomes:
                assert (reward, done) == (session.reward, session.view == "done")
                assert info["action_valid"] == done_something, (action, info["invalid_reason"])
        return 20

    def choose(self, session: Session, rng: Random) -> str:
        target, chance = session.goal["product"], rng.random()
        if session.view == "index" or chance < 0.1:
            page_name = rng.choice(["search_results", "item_page", "item_sub_page", "done", '"large"', "<c>", "<q>"])
            own = [session.goal["text"], target["title"].upper(), f"<q> {target['query']}", "<c> beauty", "<a> x", " "]
            query = rng.choice([*own, f"{page_name} {rng.choice(self.words)}", " ".join(rng.sample(self.words, 3))])
            return f"search[{query}]"
        if chance < 0.2:
            return rng.choice([*NO_OPS, *ODD_CLICKS])
        keys = list(session.clickables())
        return (
            f"click[{target['asin'].lower() if target['asin'].lower() in keys and chance < 0.6 else rng.choice(keys)}]"
        )

    def compare_goals(self) -> None:
        assert [product.price for product in self.shop.products] == [p["price"] for p in self.world.products]
        for ours, theirs in zip(self.shop.goals, self.world.goals, strict=True):
            assert (ours.product.asin, ours.instruction) == (theirs["product"]["asin"], theirs["text"])
            assert (dict(ours.options), ours.price_upper) == (theirs["options"], theirs["upper"])
            assert ours.weight == pytest.approx(theirs["weight"])

    def compare_rewards(self, count: int, rng: Random) -> None:
        totals = set()
        for _ in range(count):
            number = rng.randrange(len(self.world.goals))
            goal = self.world.goals[number]
            found = self.world.rank(goal["text"].lower())[:5]
            product = rng.choice([goal["product"], goal["product"], self.world.by_asin[rng.choice(found)]])
            chosen = {name: rng.choice(values) for name, values in product["options"].items() if rng.random() < 0.8}
            if product is goal["product"] and rng.random() < 0.5:
                chosen |= goal["options"]
            ours = score_original(self.shop.by_asin[product["asin"]], chosen, self.shop.goals[number]).total
            assert ours == self.world.reward(product, chosen, goal), (goal["text"], product["asin"], chosen)
            totals.add(ours)
        assert {0.0, 1.0} < totals and len(totals) > 10


@pytest.fixture(scope="module", params=["generated", "real"])
def pair(request: pytest.FixtureRequest) -> Pair:
    if request.param == "generated":
        raw = generate(200, 4)
        return Pair(raw.rows, raw.entries, num_products=200, catalogue_seed=4)  # type: ignore[arg-type]
    folder: Path = request.getfixturevalue("data_dir") / "webshop"
    if not (folder / "items_shuffle_1000.json.gz").is_file():
        pytest.skip(f"real data: {folder}/items_shuffle_1000.json.gz is missing")
    with gzip.open(folder / "items_shuffle_1000.json.gz", "rt", encoding="utf-8") as stream:
        rows = json.load(stream)
    entries = json.loads((folder / "items_ins_v2_1000.json").read_text(encoding="utf-8"))
    return Pair(rows, entries, catalogue="files", data_dir=folder)


def test_goals_prices_caps_and_weights_are_equal(pair: Pair) -> None:
    pair.compare_goals()


def test_every_page_action_and_reward_of_random_visits_is_equal(pair: Pair) -> None:
    rng = Random(5)
    steps = sum(pair.walk(rng.randrange(len(pair.world.goals)), rng) for _ in range(60))
    assert steps > 500


def test_rewards_of_good_and_bad_purchases_are_equal(pair: Pair) -> None:
    pair.compare_rewards(300, Random(6))
