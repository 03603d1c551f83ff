"""WebShop's fixed mode: every repair of the original's rules, by itself."""

from __future__ import annotations

import warnings

import pytest
from webshop_catalogues import ROWS, open_small_shop

from seed_envs.webshop import writers
from seed_envs.webshop.actions import Command, parse_tolerant
from seed_envs.webshop.env import WebShopEnv
from seed_envs.webshop.oracle import oracle_action
from seed_envs.webshop.shop import Shop
from seed_envs.webshop.state import State


@pytest.fixture
def fixed() -> Shop:
    return open_small_shop("fixed")


@pytest.mark.parametrize(
    ("text", "kind", "argument"),
    [
        ("Search[Orlo]", "search", "orlo"),
        ("  search [ orlo bag ] ", "search", "orlo bag"),
        ("I think search[a] then click[Buy Now]", "click", "buy now"),
        ("click[128 gb [wifi]]", "click", "128 gb [wifi]"),
        ("click[128 gb [wifi]] please]", "click", "128 gb [wifi]"),
        ("search[usb [c] hub]", "search", "usb [c] hub"),
        ("search[[orlo]]", "search", "[orlo]"),
        ("nothing", "", ""),
        ("search[]", "", ""),
        ("click[x", "", ""),
    ],
)
def test_tolerant_parser(text: str, kind: str, argument: str) -> None:
    command = parse_tolerant(text, lambda: ["128 gb [wifi]", "buy now"])
    assert (command.kind, command.argument) == (kind, argument)
    assert bool(command.reason) == (not kind)


def walk(shop: Shop, *commands: tuple[str, str]) -> tuple[State, str]:
    state, reason = State("0"), ""
    for kind, argument in commands:
        state, reason = shop.apply(state, Command(kind, argument), shop.goals[0])
    return state, reason


def test_fixed_mode_repairs_routing_search_paging_and_special_words(fixed: Shop) -> None:
    state, _ = walk(fixed, ("search", "search_results orlo"), ("click", "za00000001"), ("click", "< prev"))
    assert (state.view, state.page) == ("results", 1)
    state, _ = walk(
        fixed, ("search", "item_page orlo"), ("click", "za00000001"), ("click", "description"), ("click", "< prev")
    )
    assert state.view == "item"
    state, reason = walk(fixed, ("search", "orlo"), ("search", "totes"))
    assert state.keywords == ("orlo",) and "back to search" in reason
    assert "next >" not in fixed.clicks(walk(fixed, ("search", "orlo"))[0])
    assert fixed.results(("<q>", "totes")) == fixed.results(("q", "totes"))


def test_fixed_mode_names_ambiguous_values(fixed: Shop) -> None:
    state, _ = walk(fixed, ("search", "brim"), ("click", "za00000005"), ("click", "size: description"))
    assert state.options == (("size", "description"),) and state.view == "item"
    groups = {"One": ["red", "blue"], "Two": ["red", "green"]}
    row = {**ROWS[0], "customization_options": {k: [{"value": v} for v in vs] for k, vs in groups.items()}}
    shop = open_small_shop("fixed", rows=[row])
    state, _ = walk(shop, ("search", "orlo"), ("click", "za00000001"), ("click", "one: red"), ("click", "two: red"))
    assert dict(state.options) == {"one": "red", "two": "red"}
    assert "red" not in shop.clicks(state) and "blue" in shop.clicks(state)


def test_fixed_mode_hides_targets_and_drops_blanks(fixed: Shop) -> None:
    state, _ = walk(fixed, ("search", "quill"), ("click", "za00000003"), ("click", "features"))
    assert writers.text(fixed.page(state, fixed.goals[0])).endswith("< Prev")
    state, _ = walk(fixed, ("search", "quill"), ("click", "za00000003"), ("click", "buy now"))
    assert writers.text(fixed.page(state, fixed.goals[0])) == "Thank you for shopping with us!"
    shop = open_small_shop("fixed", show_score=True)
    state, _ = walk(shop, ("search", "quill"), ("click", "za00000003"), ("click", "buy now"))
    assert "[SEP] 0.0" in writers.text(shop.page(state, shop.goals[0]))


def test_fixed_mode_uses_displayed_prices_and_drops_empty_groups() -> None:
    rows = [{**ROWS[1]}, {**ROWS[0], "customization_options": {"Color": [{"value": "red"}], "Size": []}}]
    with pytest.warns(UserWarning, match="empty option group 'size'"):
        shop = open_small_shop("fixed", rows=rows)
    assert shop.products[0].price == 15.5
    assert len(shop.goals) == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(open_small_shop(rows=rows).goals) == 1


@pytest.mark.filterwarnings("ignore:product ZA00000001")
def test_fixed_mode_can_press_every_option_value() -> None:
    groups = {" One ": ["red", " ", "", "search", "[x]]", "two\nlines"], "Two": ["red", "buy now", "İ"], "Three": [" "]}
    row = {**ROWS[0], "customization_options": {k: [{"value": v} for v in vs] for k, vs in groups.items()}}
    with pytest.warns(UserWarning, match="empty value of option ' one ' dropped"):
        shop = open_small_shop("fixed", rows=[row])
    assert len(shop.goals) == 12
    for goal in shop.goals:
        state = State("0")
        for _ in range(5):
            action = oracle_action(shop, state, goal)
            command = parse_tolerant(action, lambda state=state: shop.clicks(state))  # type: ignore[misc]
            state, reason = shop.apply(state, command, goal)
            assert not reason, (action, reason)
        assert state.verdict is not None and state.verdict.fixed.total == 1.0


def test_fixed_mode_caps_do_not_depend_on_other_products() -> None:
    whole = {g.task_id: g.price_upper for g in open_small_shop("fixed").goals}
    alone = {g.task_id: g.price_upper for g in open_small_shop("fixed", rows=[ROWS[1]]).goals}
    assert alone.items() <= whole.items()


def test_text_rich_by_state_marks_values_that_the_address_hides(fixed: Shop) -> None:
    state, _ = walk(fixed, ("search", "quill"), ("click", "za00000003"), ("click", "café crème"))
    page = fixed.page(state, fixed.goals[0])
    assert "[clicked button] café crème" in writers.text_rich(page, chosen_by_url=False)
    assert "[clicked button]" not in writers.text_rich(page)


def test_feedback_rule_puts_the_reason_first() -> None:
    env = WebShopEnv(rules={"feedback": True}, num_products=100)
    env.reset(seed=0)
    assert env.step("dance")[0].startswith("expected search[words] or click[button] [SEP] WebShop")
