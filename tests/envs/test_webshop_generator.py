"""Generated catalogues: every goal reachable and findable, no wrong product counts, every constraint matters."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from seed_envs.errors import UnknownOption
from seed_envs.webshop.baselines import evaluate
from seed_envs.webshop.catalogue import Product
from seed_envs.webshop.colours import normalise_colour, normalise_pair
from seed_envs.webshop.files import RawCatalogue
from seed_envs.webshop.fuzzy import token_set_ratio
from seed_envs.webshop.generator import catalogue_sha256, generate
from seed_envs.webshop.generator.vocabulary import ATTRIBUTES, OPTION_KINDS
from seed_envs.webshop.goals import NO_CAP, Goal
from seed_envs.webshop.modes import resolve_rules
from seed_envs.webshop.oracle import target_query
from seed_envs.webshop.reward import SCORERS, Score, score_fixed
from seed_envs.webshop.shop import Shop
from seed_envs.webshop.store import ShopSpec, open_shop
from seed_envs.webshop.tasks import SCHEMES

SMALL_SEEDS = range(20)
LARGE_SEEDS = range(3)


def shop_of(raw: RawCatalogue, mode: str, human: bool = False) -> Shop:
    return open_shop(ShopSpec(resolve_rules(mode), human_goals=human), raw)


def best_choice(product: Product, goal: Goal) -> dict[str, str]:
    """The choice that meets most of a goal's options: equal values, anything else elsewhere."""
    chosen = {name: value for name, value in goal.options if value in product.options.get(name, ())}
    return {name: values[0] for name, values in product.options.items()} | chosen


def by_target(shop: Shop) -> Iterator[tuple[list[Goal], list[Product]]]:
    """Goals of each target with the products that could matter for them (the others have the wrong type)."""
    groups: dict[str, list[Goal]] = {}
    for goal in shop.goals:
        groups.setdefault(goal.product.asin, []).append(goal)
    for goals in groups.values():
        wanted = set(goals[0].product.nouns or ())
        yield goals, [product for product in shop.products if wanted & set(product.nouns or ())]


def check_no_wrong_product(shop: Shop, raw: RawCatalogue, mode: str) -> None:
    score = SCORERS[mode]
    for goals, candidates in by_target(shop):
        target = goals[0].product
        equivalents = set(raw.entries[target.asin]["equivalents"])
        assert equivalents
        for goal in goals:
            assert score(target, dict(goal.options), goal).total == 1.0
            assert goal.price_upper < NO_CAP or target.displayed_price >= 980.0
        for product in candidates:
            if product is target or score(product, {}, goals[0]).attributes < 1.0:
                continue
            totals = {score(product, best_choice(product, goal), goal).total == 1.0 for goal in goals}
            assert totals == {product.asin in equivalents}, (target.asin, product.asin)


def dropped(score: Score, goal: Goal) -> list[str]:
    """Names of the constraints that a purchase fails."""
    failed = ["type"] if score.type.r_type < 1.0 else []
    failed += ["attributes"] if score.attributes < 1.0 else []
    failed += ["options"] if score.options is not None and score.options < 1.0 else []
    return failed + ([] if score.price else ["price"])


def check_every_constraint_matters(shop: Shop) -> None:
    for goals, _ in by_target(shop):
        goal, target = goals[-1], goals[-1].product
        score = SCORERS["fixed"]
        lone: dict[str, int] = {}
        for product in shop.products:
            attributes = [wanted in product.attributes for wanted in goal.attributes]
            result = score(product, best_choice(product, goal), goal)
            failed = dropped(result, goal)
            if product is target or len(failed) != 1:
                continue
            if failed == ["attributes"] and attributes.count(False) == 1:
                lone[goal.attributes[attributes.index(False)]] = 1
            elif failed == ["options"]:
                missing = [name for name, value in goal.options if value not in product.options.get(name, ())]
                if len(missing) == 1:
                    lone[missing[0]] = 1
            elif failed != ["attributes"]:
                lone[failed[0]] = 1
        expected = {"type", *goal.attributes, *(name for name, _ in goal.options)}
        if goal.price_upper < NO_CAP:
            expected.add("price")
        assert set(lone) >= expected, (goal.task_id, expected - set(lone))


@pytest.mark.parametrize("seed", SMALL_SEEDS)
def test_small_catalogues_keep_their_promises(seed: int) -> None:
    raw = generate(100, seed)
    assert len(raw.rows) == 100
    for mode, human in itertools.product(("original", "fixed"), (False, True)):
        shop = shop_of(raw, mode, human)
        check_no_wrong_product(shop, raw, mode)
        oracle = evaluate(shop, "oracle", shop.tasks.manifest("all"))
        assert oracle.success == 1.0 and oracle.goals > 20
    check_every_constraint_matters(shop_of(raw, "fixed"))


@pytest.mark.parametrize("seed", LARGE_SEEDS)
def test_large_catalogues_keep_their_promises(seed: int) -> None:
    raw = generate(1000, seed)
    shop = shop_of(raw, "fixed")
    assert len(raw.rows) == 1000 and len(shop.goals) > 1500
    check_no_wrong_product(shop, raw, "fixed")
    per_product: dict[str, int] = {}
    for goal in shop.goals:
        per_product[goal.product.asin] = per_product.get(goal.product.asin, 0) + 1
        assert goal.product in shop.results(tuple(target_query(shop, goal.product).split(" ")))
    assert max(per_product.values()) <= 40
    parts = [{task_id.split("/")[0] for task_id in shop.tasks.manifest(split)} for split in SCHEMES["product"]]
    assert all(parts) and not (parts[0] & parts[1] or parts[0] & parts[2] or parts[1] & parts[2])
    oracle = evaluate(shop, "oracle", shop.tasks.manifest("all"))
    assert oracle.success == 1.0
    assert evaluate(shop, "rule", shop.tasks.manifest("test")).success <= 0.02


def test_the_combined_panel_is_fixed_and_needs_attributes_options_and_price() -> None:
    shop = shop_of(generate(1000, 0), "original")
    panel = shop.tasks.manifest("combined")
    assert panel.sha256 == "b1f96cfed6a75d2f8eea0fa0b6bf4393decbf42dec4469cbd7ba27248ccb4047"
    tested, per_product = set(shop.tasks.manifest("test")), Counter(task_id.split("/")[0] for task_id in panel)
    assert len(panel) == 128 and set(panel) <= tested and max(per_product.values()) <= 4
    for task_id in list(panel)[::8]:
        goal = shop.tasks.goal(task_id)
        assert len(goal.options) >= 2 and goal.price_upper < 1_000
        exact = dict(goal.options)
        lost = set()
        for product in shop.products:
            score = score_fixed(product, exact, goal)
            if score.type.r_type == 1.0 and (score.attributes == 1.0) + score.price == 1:
                lost.add("price" if score.attributes == 1.0 else "attributes")
        assert lost == {"price", "attributes"}, "a cheaper one lacks an attribute, a fitting one is too dear"
        for name, _ in goal.options:
            chosen = {key: value for key, value in exact.items() if key != name}
            assert score_fixed(goal.product, chosen, goal).total < 1.0
    assert evaluate(shop, "oracle", panel).success == 1.0
    assert evaluate(shop_of(generate(1000, 0), "fixed"), "oracle", panel).success == 1.0
    assert evaluate(shop, "rule", panel).success == 0.0
    assert evaluate(shop, "careful", panel).success == 59 / 128
    assert not shop_of(generate(40, 0, "easy"), "fixed").tasks.manifest("combined"), "no twins, no such goals"


def test_values_fit_both_rule_sets() -> None:
    for kind in OPTION_KINDS.values():
        for value in (*kind.values, *kind.others):
            assert not set("[]") & set(value) and value == value.lower()
            assert token_set_ratio(normalise_colour(value), normalise_pair((kind.name.lower(), value))) > 85
        for value, other in itertools.product(kind.values, kind.others):
            assert token_set_ratio(normalise_colour(other), normalise_pair((kind.name.lower(), value))) <= 85


def test_no_two_attributes_are_within_the_fuzzy_limit() -> None:
    names = [name for pool in ATTRIBUTES.values() for name in pool]
    assert len(names) == len(set(names)) == 150
    assert max(token_set_ratio(a, b) for a, b in itertools.combinations(names, 2)) <= 85


def test_option_values_are_unique_within_a_product() -> None:
    for row in generate(500, 3).rows:
        values = [item["value"] for group in (row["customization_options"] or {}).values() for item in group]
        assert len(values) == len(set(values))


def test_data_are_the_same_everywhere() -> None:
    digests = {
        (100, 0): "ff7bb32c9273b80922dfb8efe8cac0e6a79e288b24f08bdc1de73baee2fbfaaa",
        (1000, 7): "c5a825b078e3764ccb832f56967fb53a013f67b12270fbf32d3541cb0d44e7d0",
    }
    assert {key: catalogue_sha256(generate(*key)) for key in digests} == digests


def test_catalogues_of_different_size_share_their_families() -> None:
    small, large = generate(100, 5), generate(400, 5)
    shared = {row["asin"] for row in small.rows} & {row["asin"] for row in large.rows}
    assert len(shared) > 80


def test_easy_catalogues_have_more_targets_and_hostile_ones_more_products() -> None:
    def targets(raw: RawCatalogue) -> int:
        return sum("instruction" in entry for entry in raw.entries.values())

    assert targets(generate(200, 1, "easy")) > 3 * targets(generate(200, 1))
    hostile = generate(100, 1, hostile=True)
    assert len(hostile.rows) == 103 and list(hostile.rows[:100]) == list(generate(100, 1).rows)


@pytest.mark.parametrize("arguments", [(0,), (-5,), (10, 0, "hard")])
def test_bad_arguments_are_explained(arguments: Sequence[object]) -> None:
    with pytest.raises(UnknownOption, match="expected"):
        generate(*arguments)  # type: ignore[arg-type]


def test_written_files_load_like_the_generated_catalogue(tmp_path: Path) -> None:
    from seed_envs.webshop.env import WebShopEnv

    command = [sys.executable, "-m", "seed_envs.webshop", "generate", str(tmp_path), "--num-products", "100"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "100 products" in done.stdout
    written = WebShopEnv(catalogue="files", data_dir=tmp_path)
    direct = WebShopEnv(num_products=100)
    assert written.shop.sha256 == direct.shop.sha256


def test_commands_explain_mistakes(tmp_path: Path) -> None:
    from seed_envs.webshop.__main__ import main

    assert main(["baselines", "--data-dir", str(tmp_path)]) == 2
    assert main(["manifest", "x", "--num-products", "100", "--source", "test", "--output", str(tmp_path)]) == 0
    assert "all" in json.loads((tmp_path / "splits.json").read_text())["x"]
