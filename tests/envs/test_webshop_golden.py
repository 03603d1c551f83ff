"""Worked cases of the original's behaviour on an invented catalogue: loading, goals, pages, actions, rewards."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from webshop_catalogues import ROWS, open_small_shop

from seed_envs.webshop import writers
from seed_envs.webshop.actions import parse_original
from seed_envs.webshop.catalogue import parse_options
from seed_envs.webshop.colours import COLOUR_NAMES, normalise_colour, normalise_pair
from seed_envs.webshop.fuzzy import _tokens, token_set_ratio
from seed_envs.webshop.goals import Goal, build_goals, cap_candidates
from seed_envs.webshop.modes import resolve_rules
from seed_envs.webshop.pages import Page
from seed_envs.webshop.reward import score_fixed, score_original, title_score
from seed_envs.webshop.shop import Shop
from seed_envs.webshop.state import State


@pytest.fixture(scope="module")
def shop() -> Shop:
    return open_small_shop()


class Walk:
    """Plays a list of actions on a shop without an environment around it."""

    def __init__(self, shop: Shop, goal: Goal, session: str = "1") -> None:
        self.shop, self.goal, self.state, self.reason = shop, goal, State(session), ""

    def __call__(self, *actions: str) -> Page:
        for action in actions:
            command = parse_original(action, tuple)
            self.state, self.reason = self.shop.apply(self.state, command, self.goal)
        return self.shop.page(self.state, self.goal)


@pytest.fixture
def walk(shop: Shop) -> Walk:
    return Walk(shop, shop.goals[1])


def test_case_1_products_tags_and_hidden_prices(shop: Shop) -> None:
    assert [p.asin for p in shop.products] == [f"ZA0000000{i}" for i in range(1, 6)]
    assert [p.price_tag for p in shop.products] == ["$24.5", "$10.0 to $15.5", "$100.0", "$1985.0", "$5.0 to $7.25"]
    assert [p.price for p in shop.products] == [24.5, 11.781080206582393, 100.0, 1985.0, 5.339410641330129]


def test_case_2_options(shop: Shop) -> None:
    assert dict(shop.products[0].options) == {"color": ("navy blue", "black | white"), "size": ("large", "x-large")}
    assert dict(shop.products[2].options) == {"flavor name": ("café crème", "tan")}
    assert parse_options({"X": [{"value": "A / B"}, {"value": "x  y"}]}) == {"x": ("a  |  b", "x  y")}


def test_cases_3_and_4_synthetic_goals(shop: Shop) -> None:
    found = [(g.product.asin[-1], " ".join(v for _, v in g.options)) for g in shop.goals]
    assert found == [
        ("1", "black | white large"),
        ("1", "navy blue large"),
        ("1", "black | white x-large"),
        ("2", ""),
        ("1", "navy blue x-large"),
        ("4", "black big"),
        ("4", "black standard"),
    ]
    assert {g.product.asin[-1]: g.price_upper for g in shop.goals} == {"1": 60.0, "2": 30.0, "4": 1000000.0}
    assert [g.weight for g in shop.goals] == [0.25, 0.25, 0.25, 1.0, 0.25, 0.5, 0.5]
    assert shop.goals[1].instruction == (
        "Find me water resistant backpacks with color: navy blue, and size: large, and price lower than 60.00 dollars"
    )
    assert shop.goals[3].instruction == "Find me machine washable totes, and price lower than 30.00 dollars"
    assert shop.goals[5].instruction == "Find me slim fit men's shirts with color: black, and special size: big"


def test_case_5_human_goals() -> None:
    goals = open_small_shop(human=True).goals
    assert [g.instruction for g in goals] == [
        "a mug. please, and price lower than 120.00 dollars",
        "i need a navy backpack, and price lower than 60.00 dollars",
    ]
    assert [g.task_id for g in goals] == ["ZA00000003/h0", "ZA00000001/h0"]


@pytest.mark.parametrize(
    ("n", "start"),
    [
        (7, [2, 0, 3, 4, 1, 6, 5]),
        (13, [11, 9, 5, 6, 0, 1]),
        (6910, [3963, 2638, 2193, 1856, 4358]),
        (12087, [8655, 10304, 6940, 2750, 3667]),
    ],
)
def test_case_6_shuffle(shop: Shop, n: int, start: list[int]) -> None:
    """Goals stand in the order in which the original shuffles as many of them."""
    product = replace(shop.products[0], options={"size": tuple(map(str, range(n)))})
    goals = build_goals([product], None, resolve_rules("original"), Random(0), 0)
    assert len(goals) == n
    assert [int(goal.options[0][1]) for goal in goals[: len(start)]] == start


def test_case_7_cap_candidates() -> None:
    assert cap_candidates(9.99) == (10, 20, 30, 40)
    assert cap_candidates(10.0) == (20, 30, 40, 50)
    assert cap_candidates(969.99) == (970, 980, 990)
    assert cap_candidates(970.0) == cap_candidates(979.99) == (980, 990)
    assert len(cap_candidates(980.0)) < 2


def test_case_8_documents(shop: Shop) -> None:
    documents = [p.document for p in shop.products]
    assert documents[0] == (
        "orlo canvas backpack with laptop sleeve a roomy bag for school & work. water resistant shell.  "
        "color: navy blue, black | white, and size: large, x-large"
    )
    assert documents[2] == "quill ceramic mug   flavor name: café crème, tan"
    assert documents[1].endswith("machine washable ")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("canvas", [("2", 0.5049), ("1", 0.4127)]),
        ("canvas canvas tote", [("2", 1.8094), ("1", 0.8253)]),
        ("size", [("5", 0.3548), ("4", 0.2922), ("1", 0.2541)]),
        ("black shirts", [("4", 1.2261), ("1", 0.4127)]),
        ("linen hats", [("4", 0.9747), ("5", 0.6801)]),
        ("the of and", []),
    ],
)
def test_case_11_scores(shop: Shop, query: str, expected: list[tuple[str, float]]) -> None:
    assert [(asin[-1], round(float(score), 4)) for asin, score in shop.engine.search(query, 50)] == expected


def test_case_13_item_page(walk: Walk) -> None:
    page = walk("search[Canvas]", "click[za00000001]")
    assert writers.text(page).endswith(
        "Back to Search [SEP] < Prev [SEP] color [SEP] navy blue [SEP] black | white [SEP] size [SEP] large [SEP] "
        "x-large [SEP] Orlo Canvas Backpack with Laptop Sleeve [SEP] Price: $24.5 [SEP] Rating: N.A. [SEP] Description "
        "[SEP] Features [SEP] Reviews [SEP] Attributes [SEP] Buy Now"
    )
    assert page.clickables == [
        *("back to search", "< prev", "description", "features", "reviews", "attributes", "buy now"),
        *("navy blue", "black | white", "large", "x-large"),
    ]


def test_case_14_chosen_options(walk: Walk) -> None:
    page = walk("search[Canvas]", "click[ZA00000001]", "click[Navy Blue]", "click[large]")
    assert page.url.endswith('/item_page/1/ZA00000001/canvas/1/{"color": "navy blue", "size": "large"}')
    lines = writers.text_rich(page).split("\n")
    assert lines[:3] == ["You have clicked large.", "You have clicked navy blue.", "Instruction:"]
    assert "  [clicked button] large [clicked button_]" in lines and "  [button] x-large [button_]" in lines
    assert walk("click[description]").url.endswith("/Description/{'color': 'navy blue', 'size': 'large'}")
    page = walk("search[canvas]", "click[za00000001]", "click[x-large]", "click[large]", "click[black | white]")
    assert page.url.endswith('/{"size": "large", "color": "black | white"}')


def test_case_15_blank_nodes(walk: Walk) -> None:
    assert writers.text(walk("search[quill]", "click[za00000003]", "click[features]")).endswith("< Prev [SEP] ")
    assert writers.text(walk("click[< prev]", "click[description]")).endswith("< Prev")
    assert writers.text(walk("search[veld]", "click[za00000004]", "click[description]")).endswith("< Prev [SEP] ")
    row = {**ROWS[0], "small_description": ["one", " \n ", "\xa0", "  two  lines "]}
    other = open_small_shop(rows=[row])
    page = Walk(other, other.goals[0])("search[orlo]", "click[za00000001]", "click[features]")
    assert writers.text(page).endswith("< Prev [SEP] one [SEP]  [SEP] two  lines")


def test_case_16_page_without_products(walk: Walk) -> None:
    page = walk("search[orlo]", "click[next >]")
    assert writers.text(page).endswith("Page 2 (Total results: 2) [SEP] < Prev [SEP] Next >")
    assert page.clickables == ["back to search", "< prev", "next >"]


@pytest.mark.parametrize(
    "action",
    [
        *("Search[orlo]", " search[orlo]", "search [orlo]", "search[]", "search[[orlo]]", "search[orlo] click[x]"),
        *("\nsearch[orlo]", "search[or\nlo]", "click[ za00000001]", "click[search]", "click[]", ""),
    ],
)
def test_case_17_no_ops(walk: Walk, action: str) -> None:
    before = walk.state
    walk(action)
    assert walk.state == before and walk.reason


def test_case_17_accepted(walk: Walk) -> None:
    walk("search[orlo] please")
    assert walk.state.keywords == ("orlo",) and not walk.reason
    walk("search[orlo]]")
    assert walk.state.keywords == ("orlo]",)
    walk("search[orlo]", "click[za00000001]", "click[x-large]junk")
    assert walk.state.options == (("size", "x-large"),)
    assert walk("click[Back To Search]").kind == "index"
    assert "Total results: 0" in writers.text(walk("search[ ]"))


def test_case_18_misrouted_pages_and_special_keywords(walk: Walk) -> None:
    page = walk("search[search_results orlo]", "click[za00000001]", "click[< prev]")
    assert writers.text(page).endswith("Page 0 (Total results: 2) [SEP] Next >")
    page = walk("search[item_page orlo]", "click[za00000001]", "click[description]", "click[< prev]")
    assert page.kind == "results"
    assert "Total results: 1" in writers.text(walk("search[ <q> totes]"))
    assert [node.text for node in walk("search[<q> backpacks]").nodes if node.role == "product"] == ["ZA00000001"]
    for crashing in ("search[<a> water resistant]", "search[<c>]", "search[<r>]"):
        before = walk.state
        walk(crashing)
        assert walk.state == before and walk.reason


def test_case_19_values_that_collide(walk: Walk) -> None:
    page = walk("search[brim]", "click[za00000005]", "click[128 gb [wifi]]")
    assert page.state.options == () and walk.reason
    assert walk("click[description]").kind == "sub"
    assert walk("click[< prev]", "click[size]").state.options == (("size", "size"),)
    groups = {"One": ["red", "blue"], "Two": ["blue", "red", "red"]}
    row = {
        **ROWS[0],
        "customization_options": {k: [{"value": v} for v in values] for k, values in groups.items()},
    }
    other = open_small_shop(rows=[row])
    page = Walk(other, other.goals[0])("search[orlo]", "click[za00000001]", "click[red]")
    assert page.state.options == (("two", "red"),)
    assert writers.text_rich(page).count("[clicked button] red [clicked button_]") == 3


def test_case_20_colours() -> None:
    cases = {
        "navy blue": "blue",
        "dark blue": "blue",
        "dark green": "dark",
        "dark red": "dark",
        "light pink": "light",
        "rose gold": "gold",
        "teal green": "green",
        "stonewash": "ash",
        "standard": "tan",
        "peppermint": "mint",
        "colored": "red",
        "ashley": "ash",
        "Black": "Black",
        "platinum": "platinum",
    }
    assert {value: normalise_colour(value) for value in cases} == cases
    assert normalise_pair(("color", "black")) == "black"
    assert normalise_pair(("color", "navy blue")) == "('color', 'navy blue')"
    assert len(COLOUR_NAMES) == 102


RATIOS = [
    ("large", "x-large", 100),
    ("x-large", "xx-large", 93),
    ("6", "6.5", 100),
    ("king", "california king", 100),
    ("3 ft", "6 ft", 75),
    ("3 ft", "13 ft", 89),
    ("12 inch (pack of 1)", "16 inch (pack of 1)", 94),
    ("essential oil", "essential oils", 96),
    ("machine wash", "machine washable", 86),
    ("dust proof", "rust proof", 90),
    ("water resistant", "waterproof", 40),
    ("café", "caf", 100),
    ("café", "cafe", 86),
    ("a_b", "a b", 67),
    ("oil stainless", "stainless low", 85),
    ("", "", 0),
    ("!!", "!!", 0),
    ("x-large", str(("size", "large")), 83),
    ("large", str(("size", "x-large")), 100),
    ("6.5", str(("size", "6")), 50),
    ("6", str(("size", "6.5")), 100),
    ("size", str(("size", "large")), 100),
    ("10 ft", str(("length", "10 ft")), 100),
    ("tan", str(("special size", "standard")), 25),
]


@pytest.mark.parametrize(("first", "second", "ratio"), RATIOS)
def test_cases_21_and_22_token_set_ratio(first: str, second: str, ratio: int) -> None:
    assert token_set_ratio(first, second) == token_set_ratio(second, first) == ratio


def test_token_set_ratio_equals_rapidfuzz_on_the_same_words() -> None:
    fuzz = pytest.importorskip("rapidfuzz.fuzz", reason="packages: a witness needs rapidfuzz")
    rng = Random(4)
    words = "red wine x-large large 6 6.5 ft oil essential café a_b proof dust rust 12 inch (pack of 1) machine".split()
    for _ in range(5000):
        first, second = (" ".join(rng.choices(words, k=rng.randrange(0, 5))) for _ in range(2))
        left, right = _tokens(first), _tokens(second)
        common = " ".join(sorted(left & right))
        parts = [common, *(f"{common} {' '.join(sorted(rest))}".strip() for rest in (left - right, right - left))]
        pairs = [(parts[0], parts[1]), (parts[0], parts[2]), (parts[1], parts[2])]
        ratios = [100 if a == b else 0 if not a or not b else round(fuzz.ratio(a, b)) for a, b in pairs]
        assert token_set_ratio(first, second) == (max(ratios) if left and right else 0), (first, second)


def _goal(shop: Shop, options: dict[str, str] | list[str], **changes: object) -> Goal:
    from dataclasses import replace

    named = isinstance(options, dict)
    pairs = tuple(options.items()) if isinstance(options, dict) else tuple(("", value) for value in options)
    return replace(shop.goals[1], options=pairs, named_options=named, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("chosen", "wanted", "hits"),
    [
        (["royal blue"], {"color": "navy blue"}, 1),
        (["dark red"], {"color": "dark green"}, 1),
        (["dark blue"], {"color": "dark green"}, 0),
        (["standard"], {"special size": "standard"}, 0),
        (["standard"], ["standard"], 1),
        (["tan"], ["standard"], 1),
        (["x-large"], ["large"], 1),
        (["red"], ["red", "wine red"], 2),
        (["black | white"], {"color": "black"}, 1),
    ],
)
def test_case_23_option_hits(shop: Shop, chosen: list[str], wanted: dict[str, str] | list[str], hits: int) -> None:
    goal = _goal(shop, wanted)
    score = score_original(shop.products[0], {str(i): value for i, value in enumerate(chosen)}, goal)
    assert score.options == hits / len(wanted)


@pytest.mark.parametrize(
    ("bought", "wanted", "query", "category", "expected"),
    [
        ("a", "a b c d e f g h i j k l", True, False, 0.1),
        ("a", "a b c d e f g h i j", False, False, 0.5),
        ("a", "a b c d e f g h i j", True, False, 1.0),
        ("a", "a b c d e", False, False, 0.5),
        ("a", "a b c d e", False, True, 1.0),
        ("a", "a b c d", False, False, 1.0),
        ("z", "a b", True, True, 0.0),
        ("a", "", False, False, 0.5),
        ("a", "", True, False, 1.0),
    ],
)
def test_case_24_type(shop: Shop, bought: str, wanted: str, query: bool, category: bool, expected: float) -> None:
    from dataclasses import replace

    base = shop.products[0]
    target = replace(base, nouns=tuple(wanted.split()), query="q", product_category="A › B › C")
    other = replace(
        base,
        nouns=tuple(bought.split()),
        query="q" if query else "r",
        product_category="B › A" if category else "a › b › c",
    )
    goal = replace(shop.goals[1], product=target)
    score = score_original(other, {}, goal)
    assert score.type.r_type == expected and score.type.category_match == category


def test_case_24_repeated_nouns() -> None:
    assert title_score("ttl", "ttl", distinct=False) == pytest.approx(0.667, abs=1e-3)
    assert title_score("ttl", "ttl", distinct=True) == 1.0


def test_case_25_attributes(shop: Shop) -> None:
    from dataclasses import replace

    def met(wanted: str, title: str, bullets: tuple[str, ...] = (), attributes: tuple[str, ...] = ()) -> list[bool]:
        product = replace(shop.products[0], title=title, bullets=bullets, attributes=attributes, description="")
        goal = _goal(shop, {}, attributes=(wanted,))
        return [score(product, {}, goal).attributes == 1.0 for score in (score_original, score_fixed)]

    assert met("usb port", "USB Port Hub") == [True, True]
    assert met("USB Port", "usb port hub")[0] is False
    assert met("soft touch", "x", ("Ends with soft", "touch fabric")) == [True, True]
    assert met("free", "A carefree summer") == [True, False]
    assert met("essential oil", "x", (), ("oil",)) == met("natural oil", "x", (), ("oil",)) == [True, True]


@pytest.mark.parametrize(
    ("chosen", "changes", "wanted", "original", "fixed"),
    [
        ({"color": "navy blue", "size": "large"}, {}, None, 1.0, 1.0),
        ({"color": "navy blue", "size": "x-large"}, {}, None, 0.75, 0.75),
        ({}, {}, None, 0.5, 0.5),
        ({"color": "navy blue", "size": "large"}, {"price": 30.0, "prices": (30.0,)}, None, 1.0, 1.0),
        ({"color": "navy blue", "size": "large"}, {"price": 30.01, "prices": (30.01,)}, None, 0.75, 0.75),
        ({"color": "royal blue", "size": "x-large"}, {}, ["navy blue", "large"], 1.0, 0.5),
        ({"color": "navy blue", "size": "large"}, {}, {"color": "navy blue", "size": "x-large"}, 1.0, 0.75),
    ],
)
def test_case_26_totals(
    shop: Shop, chosen: dict, changes: dict, wanted: dict | list | None, original: float, fixed: float
) -> None:
    from dataclasses import replace

    product = replace(shop.products[0], **changes)
    goal = _goal(shop, wanted if wanted is not None else {"color": "navy blue", "size": "large"}, price_upper=30.0)
    assert score_original(product, chosen, goal).total == original
    assert score_fixed(product, chosen, goal).total == fixed


def test_case_26_further_totals(shop: Shop) -> None:
    goal = _goal(shop, {"color": "navy blue", "size": "large"}, attributes=("water resistant", "lightweight"))
    assert score_original(shop.products[0], {"color": "navy blue", "size": "large"}, goal).total == 0.8
    standard = shop.goals[6]
    chosen = dict(standard.options)
    assert score_original(standard.product, chosen, standard).total == 0.75
    assert score_fixed(standard.product, chosen, standard).total == 1.0
    assert score_original(shop.products[2], {}, shop.goals[1]).total == 0.0


def test_case_27_done_page(walk: Walk) -> None:
    size = "5' x 7' <b> & \"q\""
    row = {**ROWS[0], "customization_options": {"color": [{"value": "red"}], "size": [{"value": size}]}}
    other = open_small_shop(rows=[row])
    page = Walk(other, other.goals[0])(
        "search[orlo]", "click[za00000001]", f"click[{size}]", "click[red]", "click[buy now]"
    )
    escaped = '{"color": "red", "size": "5\\u0027 x 7\\u0027 \\u003cb\\u003e \\u0026 \\"q\\""}'
    assert f"[SEP] options [SEP] {escaped} [SEP] attrs" in writers.text(page)
    page = walk("search[quill]", "click[za00000003]", "click[café crème]", "click[buy now]")
    assert '{"flavor name": "caf\\u00e9 cr\\u00e8me"}' in writers.text(page)
    assert page.clickables == []
    assert writers.text(page).startswith(
        "Thank you for shopping with us! [SEP] Your code: [SEP] None [SEP] (Paste it in your MTurk interface.) [SEP] "
        "Purchased [SEP] asin [SEP] ZA00000003 [SEP] options"
    )
    assert writers.text(page).endswith("Your score (min 0.0, max 1.0) [SEP] 0.0 [SEP] Reward Details [SEP] None")
