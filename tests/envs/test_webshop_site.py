"""The WebShop site without a browser: parity with the text environment, forms, sessions, limits, secrecy, fuzzing."""

from __future__ import annotations

import json
import random
import re
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from webshop_catalogues import ROWS, open_small_shop

pytest.importorskip("flask", reason="packages: the site needs Flask")

from seed_envs.webshop import writers
from seed_envs.webshop.actions import parse_tolerant
from seed_envs.webshop.modes import resolve_rules
from seed_envs.webshop.oracle import oracle_action
from seed_envs.webshop.pages import SEPARATOR
from seed_envs.webshop.shop import Shop
from seed_envs.webshop.site import app as site_app
from seed_envs.webshop.site.app import SiteOptions, create_app
from seed_envs.webshop.site.extract import visible_strings
from seed_envs.webshop.site.sessions import SessionStore
from seed_envs.webshop.store import ShopSpec, get_shop

TEMPLATES = Path(site_app.__file__).parent / "templates"


def open_shop(mode: str = "original", **changes: Any) -> Shop:
    settings = {"num_products": 100, "hostile": True, "reviews": True, "show_attrs": True, **changes}
    return get_shop(ShopSpec(resolve_rules(mode), **settings))


class Visitor:
    """A client that keeps its cookie and fills the forms as a browser would."""

    def __init__(self, shop: Shop, options: SiteOptions | None = None, store: SessionStore | None = None) -> None:
        self.app = create_app(shop, options or SiteOptions(choose_goal=True), store)
        self.site = self.app.extensions["webshop"]
        self.client = self.app.test_client()
        self.address = ""

    def start(self, task_id: str = "", **extra: Any) -> Any:
        answer = self.client.post("/start", data={"task_id": task_id}, **extra)
        self.address = answer.headers.get("Location", "")
        return answer

    @property
    def session(self) -> Any:
        return self.site.store.get(self.address.rpartition("/")[2])

    def html(self) -> str:
        return self.client.get(self.address).get_data(as_text=True)

    def act(self, kind: str, value: str, **changes: Any) -> int:
        form = {"kind": kind, "value": value, "step": self.session.step, "token": self.session.token, **changes}
        return self.client.post(f"{self.address}/act", data=form).status_code


@pytest.fixture(scope="module")
def visitor() -> Visitor:
    return Visitor(open_shop())


def page_text(html: str) -> str:
    """The ``text`` observation of a page, read from its HTML."""
    return SEPARATOR.join(string.strip() for string in visible_strings(html))


@pytest.mark.parametrize("mode", ["original", "fixed"])
def test_pages_hold_exactly_the_text_observation(mode: str) -> None:
    shop = open_shop(mode)
    visitor = Visitor(shop)
    rng = random.Random(1)
    kinds = set()
    for goal in rng.sample(shop.goals, 12):
        visitor.start(goal.task_id)
        for _ in range(25):
            session = visitor.session
            kinds.add(session.state.view)
            assert page_text(visitor.html()) == writers.text(shop.page(session.state, goal))
            if session.state.view == "done":
                break
            if rng.random() < 0.3:
                kind, value = oracle_action(shop, session.state, goal)[:-1].split("[", 1)
            elif session.state.view == "index":
                kind, value = "search", rng.choice(["unfriendly listing", "red shoes", "zzz", "<b>x</b>"])
            else:
                kind, value = "click", rng.choice([key for key in shop.clicks(session.state) if key != "search"])
            assert visitor.act(kind, value) == 303
    assert kinds == {"index", "results", "item", "sub", "done"}


def test_white_space_and_carriage_returns_survive_the_markup() -> None:
    html = "<p>a&#13;b</p>\n <p> </p><p>\n</p><p>x\xa0</p><script>no</script><style>no</style><p>1 < 2 &amp; 3</p>"
    assert visible_strings(html) == ["a\rb", " ", "x\xa0", "1 < 2 & 3"]


def test_templates_never_switch_escaping_off_and_hold_no_script() -> None:
    for path in TEMPLATES.glob("*.html"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"\|\s*safe|autoescape|<script|javascript:|\son\w+=|https?://", text), path.name


def test_hostile_texts_arrive_as_text(visitor: Visitor) -> None:
    visitor.start()
    visitor.act("search", "unfriendly listing")
    links = [key for key in visitor.site.shop.clicks(visitor.session.state) if key.startswith("x0")]
    assert len(links) == 3
    seen = ""
    for link in links:
        for value in (link, "features", "< prev", "reviews", "< prev", "attributes", "< prev", "< prev"):
            assert visitor.act("click", value) == 303
            html = visitor.html()
            seen += html
            assert not re.search(r"<(script|img src=x|svg)", html)
            title = re.findall(r"<title>(.*?)</title>", html)
            assert title and title[0].startswith("WebShop: ")
    assert "&lt;script&gt;" in seen


def test_option_values_with_line_breaks_can_be_pressed() -> None:
    value = "two\nlines\rhere"
    row = {**ROWS[0], "customization_options": {"Kind": [{"value": value}, {"value": "one"}]}}
    shop = open_small_shop("fixed", rows=[row])
    visitor = Visitor(shop)
    goal = next(goal for goal in shop.goals if goal.options == (("kind", value),))
    visitor.start(goal.task_id)
    for kind, pressed in (("search", "orlo"), ("click", "za00000001"), ("click", "two\r\nlines\r\nhere")):
        assert visitor.act(kind, pressed) == 303
    assert visitor.session.state.options == (("kind", value),)
    assert page_text(visitor.html()) == writers.text(shop.page(visitor.session.state, goal))
    action = oracle_action(shop, visitor.session.state._replace(options=()), goal)
    command = parse_tolerant(action, lambda: shop.clicks(visitor.session.state))
    assert (command.kind, command.argument) == ("click", value)


def test_headers(visitor: Visitor) -> None:
    visitor.start()
    for address in (visitor.address, "/", "/healthz", "/static/shop.css", "/nowhere"):
        headers = visitor.client.get(address).headers
        assert headers["Content-Security-Policy"].startswith("default-src 'none'; style-src 'self'; img-src 'self'")
        assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff" and headers["Referrer-Policy"] == "no-referrer"
    assert visitor.client.get(visitor.address).headers["Cache-Control"] == "no-store"


def test_other_hosts_and_sites_are_refused(visitor: Visitor) -> None:
    for headers, code in [
        ({"Host": "evil.example"}, 403),
        ({"Host": "127.0.0.1.evil.example:80"}, 403),
        ({"Host": "127.0.0.1:80,evil.example"}, 403),
        ({"Host": "localhost evil.example"}, 403),
        ({"Host": "[::1]evil.example"}, 403),
        ({"Host": ""}, 403),
        ({"Host": "LOCALHOST:5000"}, 200),
        ({"Host": "localhost:5000"}, 200),
        ({"Host": "[::1]:5000"}, 200),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "null", "Sec-Fetch-Site": "same-origin"}, 200),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
    ]:
        assert visitor.client.get("/", headers=headers).status_code == code, headers


def test_only_a_fresh_form_of_the_session_acts(visitor: Visitor) -> None:
    visitor.start()
    before = visitor.session.state
    assert visitor.client.get(f"{visitor.address}/act").status_code == 405
    assert visitor.act("search", "red", token="x") == 403
    assert visitor.act("search", "red", step=7) == 409
    assert visitor.act("search", "red", step="x") == 409
    assert visitor.act("fly", "red") == 400
    assert visitor.act("search", "") == 400
    assert visitor.act("click", "buy now") == 400
    assert visitor.act("click", "search") == 400
    for _ in range(3):
        visitor.html()
    assert visitor.session.state is before and visitor.session.step == 0
    assert visitor.act("search", "red") == 303
    assert visitor.session.step == 1


def test_a_session_belongs_to_one_browser(visitor: Visitor) -> None:
    visitor.start()
    stranger = visitor.app.test_client()
    assert stranger.get(visitor.address).status_code == 404
    cookie = visitor.start().headers["Set-Cookie"]
    assert "HttpOnly" in cookie and "SameSite=Strict" in cookie and f"Path={visitor.address}" in cookie


def test_sizes_are_limited() -> None:
    visitor = Visitor(open_shop(), SiteOptions(max_steps=3))
    visitor.start()
    assert visitor.act("search", "x" * 1001) == 400
    assert visitor.act("search", "x" * 9000) == 413
    for _ in range(3):
        assert visitor.act("search", "red") == 303
    assert visitor.act("search", "red") == 429
    assert visitor.client.post("/start", data={"task_id": visitor.site.shop.goals[0].task_id}).status_code == 403


def test_too_large_a_page_is_not_sent() -> None:
    visitor = Visitor(open_shop(), SiteOptions(max_page=1000))
    visitor.start()
    answer = visitor.client.get(visitor.address)
    assert answer.status_code == 413 and len(answer.data) < 1000


def test_sessions_expire_are_capped_and_leave_no_memory() -> None:
    now = [0.0]
    shop = open_shop()
    store = SessionStore(cap=100, idle=60.0, clock=lambda: now[0])
    first = store.start(shop.goals[0])
    now[0] = 50.0
    assert store.get(first.sid) is first
    now[0] = 111.0
    assert store.get(first.sid) is None
    kept = store.start(shop.goals[0])
    for number in range(99):
        store.start(shop.goals[number % len(shop.goals)])
    assert store.get(kept.sid) is kept
    store.start(shop.goals[0])
    assert len(store) == 100 and store.get(kept.sid) is kept
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    names = {store.start(shop.goals[0]).sid for _ in range(10_000)}
    grown = tracemalloc.get_traced_memory()[0] - before - sum(len(name) + 80 for name in names)
    tracemalloc.stop()
    assert len(names) == 10_000 and len(store) == 100
    assert grown < 2_000_000


def test_an_expired_session_is_a_404() -> None:
    now = [0.0]
    visitor = Visitor(open_shop(), store=SessionStore(idle=10.0, clock=lambda: now[0]))
    visitor.start()
    assert visitor.client.get(visitor.address).status_code == 200
    now[0] = 11.0
    assert visitor.client.get(visitor.address).status_code == 404


def test_the_target_is_in_no_page_header_or_log_before_the_purchase(tmp_path: Path) -> None:
    shop = open_shop(hostile=False, show_attrs=False)
    visitor = Visitor(shop, SiteOptions(choose_goal=True, log_dir=tmp_path))
    checked = 0
    for goal in shop.goals[:40]:
        target = goal.product
        answer = visitor.start(goal.task_id)
        texts = [str(answer.headers), answer.get_data(as_text=True)]
        for kind, value in (("search", "unrelated zebra words"), ("click", "next >"), ("click", "back to search")):
            assert visitor.act(kind, value) == 303
            page = visitor.client.get(visitor.address)
            texts += [str(page.headers), page.get_data(as_text=True)]
        texts += [path.read_text() for path in tmp_path.glob("*.jsonl")]
        for text in texts:
            assert target.asin not in text and target.title not in text
            checked += 1
    assert checked > 200


@pytest.mark.parametrize("mode", ["original", "fixed"])
def test_the_log_holds_the_score_of_the_mode(tmp_path: Path, mode: str) -> None:
    shop = open_shop(mode)
    visitor = Visitor(shop, SiteOptions(choose_goal=True, log_dir=tmp_path))
    goal = next(goal for goal in shop.goals if len(goal.options) == 2)
    visitor.start(goal.task_id)
    for kind, value in (("search", goal.product.title), ("click", goal.product.asin.lower()), ("click", "buy now")):
        assert visitor.act(kind, value) == 303
    (path,) = tmp_path.glob("*.jsonl")
    score = json.loads(path.read_text().splitlines()[-1])["score"]
    assert score == getattr(visitor.session.state.verdict, mode).total
    assert f'data-reward="{score}"' in visitor.html()


def test_log_and_review_after_the_purchase(tmp_path: Path) -> None:
    shop = open_shop()
    visitor = Visitor(shop, SiteOptions(choose_goal=True, review=True, log_dir=tmp_path))
    goal = shop.goals[0]
    visitor.start(goal.task_id)
    assert visitor.client.get(f"{visitor.address}/review").status_code == 404
    while visitor.session.state.view != "done":
        kind, value = oracle_action(shop, visitor.session.state, goal)[:-1].split("[", 1)
        assert visitor.act(kind, value) == 303
    assert visitor.act("search", "again") == 400
    assert goal.product.asin in visitor.client.get(f"{visitor.address}/review").get_data(as_text=True)
    (path,) = tmp_path.glob("*.jsonl")
    entries = [json.loads(line) for line in path.read_text().splitlines()]
    assert entries[-1]["page"] == "done" and entries[-1]["score"] == 1.0
    assert 'data-reward="1.0"' in visitor.html()
    assert Visitor(shop).client.get("/s/x/review").status_code == 404


@pytest.mark.parametrize(
    "path",
    [
        *("/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2fapp.py", "/static/..\\app.py", "/static/x"),
        *("/s/", "/s/../..", "/s/%00", "/s/abc", "/s/fixed_abc/act", "/search_results/abc/['x']/1", "/item_page/a/b"),
        *("/done/a/b/{}", "/s/" + "[" * 3000, "/healthz/x", "/start"),
    ],
)
def test_unknown_addresses_give_4xx(visitor: Visitor, path: str) -> None:
    assert 400 <= visitor.client.get(path).status_code < 500


def test_fuzzing_every_route_gives_no_server_error(visitor: Visitor) -> None:
    rng = random.Random(3)
    pieces = [
        "/",
        "s",
        "start",
        "act",
        "review",
        "static",
        "shop.css",
        "..",
        "%2e",
        "%ff",
        "\\",
        "<x>",
        "é",
        "'",
        "[",
        "{}",
        "\u202e",
    ]
    visitor.app.config["PROPAGATE_EXCEPTIONS"] = False
    visitor.start()
    good = visitor.address
    for _ in range(1500):
        path = "/" + "/".join(rng.choices(pieces, k=rng.randrange(1, 5)))
        if rng.random() < 0.5:
            path = rng.choice([good, f"{good}/act", "/start"])
        fields = {
            rng.choice(["kind", "value", "step", "token", "task_id", "x"]): "".join(rng.choices("ab[]<>\x00\n%é0", k=5))
            for _ in range(rng.randrange(0, 4))
        }
        if rng.random() < 0.3:
            session = visitor.site.store.get(good.rpartition("/")[2])
            fields |= {"token": session.token, "step": str(session.step)}
        method = rng.choice(["GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "TRACE"])
        kind = rng.choice([None, "application/json", "multipart/form-data; boundary=x", "text/plain"])
        arguments: dict[str, Any] = {"data": fields} if kind is None else {"data": b"\xff{[", "content_type": kind}
        code = visitor.client.open(path, method=method, **arguments).status_code
        assert code < 500, (method, path, fields)


def test_the_search_field_keeps_the_words_and_empty_lists_say_so(visitor: Visitor) -> None:
    visitor.start()
    visitor.act("search", 'zzzz "<b>qqqq')
    html = visitor.html()
    assert 'value="zzzz &#34;&lt;b&gt;qqqq"' in html and 'data-label="No product was found.' in html
    visitor.act("click", "next >")
    assert 'data-label="There are no products on this page."' in visitor.html()
    visitor.act("search", "unfriendly listing")
    assert "No product was found" not in visitor.html()
