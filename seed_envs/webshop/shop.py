"""The shop: one read-only catalogue with its goals, search engine and page cache, shared by every session in a process.

Sessions are ``State`` values; the shop turns a state into a page and a state plus a command into the next state.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from random import Random
from typing import NamedTuple

from seed_envs.data_card import GENERATED, DataSource
from seed_envs.errors import close_matches
from seed_envs.webshop import bodies
from seed_envs.webshop.actions import Command
from seed_envs.webshop.catalogue import Product
from seed_envs.webshop.goals import Goal
from seed_envs.webshop.modes import Rules
from seed_envs.webshop.pages import NO_HEADER, Body, Click, NodeKind, Page
from seed_envs.webshop.reward import Score, score_fixed, score_original
from seed_envs.webshop.search import HITS, SearchEngine, TooManyWords, check_length
from seed_envs.webshop.state import State, Verdict
from seed_envs.webshop.tasks import TaskTable

_QUERY_CACHE = 4096
_PAGE_CACHE = 4096
_SUBS = {name.lower(): name for name in bodies.SUB_PAGES}


class Transition(NamedTuple):
    """The state after a command; ``reason`` is non-empty if the command was refused and nothing changed."""

    state: State
    reason: str = ""


class Shop:
    """A catalogue open for business.

    Args:
        products: Products in file order.
        goals: The goal list.
        rules: The switches of the mode.
        engine: Search engine over the products.
        show_attrs: Whether item pages have an Attributes button.
        seed: Seed the catalogue's prices and caps were drawn with; also seeds ``<r>`` lists.
        noun_source: Where the title nouns come from, for ``info``.
        source: What the catalogue is made of.
    """

    def __init__(
        self,
        products: Sequence[Product],
        goals: Sequence[Goal],
        rules: Rules,
        engine: SearchEngine,
        show_attrs: bool = False,
        seed: int = 0,
        noun_source: str = "stored",
        source: DataSource = GENERATED,
    ) -> None:
        self.products = tuple(products)
        self.by_asin = {product.asin: product for product in self.products}
        self.goals = tuple(goals)
        self.rules = rules
        self.engine = engine
        self.show_attrs = show_attrs
        self.seed = seed
        self.noun_source = noun_source
        self.source = source
        self.tasks = TaskTable(self.goals, self.products)
        self._drop_blanks = rules.blanks == "dropped"
        self._ranked = lru_cache(_QUERY_CACHE)(self._rank)
        self._results_body = lru_cache(_PAGE_CACHE)(self._build_results)
        self._item_body = lru_cache(_PAGE_CACHE)(self._build_item)
        self._sub_body = lru_cache(_PAGE_CACHE)(self._build_sub)
        self._header = lru_cache(_PAGE_CACHE)(bodies.goal_header)

    # -- pages ---------------------------------------------------------------------------------------------------

    def page(self, state: State, goal: Goal) -> Page:
        """The page a state shows."""
        view = state.view
        if view == "index":
            return Page(NO_HEADER, bodies.index_body(goal.instruction), state)
        if view == "done":
            return Page(NO_HEADER, self._done_body(state), state)
        return Page(self._header(goal.instruction), self._body(state), state)

    def _body(self, state: State) -> Body:
        if state.view == "results":
            return self._results_body(state.keywords, state.page, state.draws)
        if state.view == "item":
            return self._item_body(state.asin)
        return self._sub_body(state.asin, state.sub)

    def _done_body(self, state: State) -> Body:
        score = self.score(state)
        assert score is not None
        product = self.by_asin[state.asin]
        return bodies.done_body(product, dict(state.options), score.total, self.rules.done_page, self.rules.show_score)

    def _build_results(self, keywords: tuple[str, ...], page: int, draws: int) -> Body:
        found = self.results(keywords, draws)
        shown = found[(page - 1) * bodies.RESULTS_PER_PAGE : page * bodies.RESULTS_PER_PAGE] if page > 0 else ()
        return bodies.results_body(shown, len(found), page, self._drop_blanks, self.rules.paging == "endless")

    def _build_item(self, asin: str) -> Body:
        named = self.rules.clickables == "named"
        return bodies.item_body(self.by_asin[asin], self.show_attrs, named, self._drop_blanks)

    def _build_sub(self, asin: str, name: str) -> Body:
        return bodies.sub_body(self.by_asin[asin], name, self._drop_blanks)

    # -- search --------------------------------------------------------------------------------------------------

    def results(self, keywords: tuple[str, ...], draws: int = 0) -> tuple[Product, ...]:
        """The products of a search, best first.

        Raises:
            TooManyWords: If the engine refuses the query.
            ValueError: If a special keyword is used in a form that the original fails on.
        """
        if self.rules.special_queries and keywords[0] in _SPECIAL:
            return self._special(keywords, draws)
        return self._ranked(" ".join(keywords))

    def forget_searches(self) -> None:
        """Empties the caches of result lists and result pages (for measurements)."""
        self._ranked.cache_clear()
        self._results_body.cache_clear()

    def _rank(self, query: str) -> tuple[Product, ...]:
        check_length(query)
        hits = self.engine.search(query, HITS)
        by_asin = self.by_asin
        return tuple([by_asin[asin] for asin, _ in hits if asin in by_asin])

    def _special(self, keywords: tuple[str, ...], draws: int) -> tuple[Product, ...]:
        word, rest = keywords[0], " ".join(keywords[1:]).strip()
        if word == "<r>":
            if len(self.products) < HITS:
                raise ValueError(f"'<r>' needs a catalogue of at least {HITS} products")
            return tuple(Random(f"{self.seed}/{draws}").sample(self.products, HITS))
        if word == "<c>":
            if len(keywords) < 2:
                raise ValueError("'<c>' needs a category")
            return tuple(product for product in self.products if product.category == keywords[1].strip())
        if word == "<a>":
            raise ValueError("'<a>' is not available")
        return tuple(product for product in self.products if product.query == rest)

    # -- transitions ---------------------------------------------------------------------------------------------

    def apply(self, state: State, command: Command, goal: Goal) -> Transition:
        """Carries out a command; a refused one changes nothing and says why."""
        if command.kind == "search":
            return self._search(state, command.argument)
        if command.kind == "click":
            return self._click(state, command.argument, goal)
        return Transition(state, command.reason)

    def _search(self, state: State, argument: str) -> Transition:
        if not self.rules.search_anywhere and state.view != "index":
            return Transition(state, "there is no search bar on this page; click[back to search] first")
        keywords = tuple(argument.split(" "))
        draws = state.draws + (keywords[0] == "<r>" and self.rules.special_queries)
        return self._to_results(state._replace(draws=draws), keywords, 1, unchanged=state)

    def _to_results(
        self, state: State, keywords: tuple[str, ...], page: int, unchanged: State | None = None
    ) -> Transition:
        try:
            self.results(keywords, state.draws)
        except (TooManyWords, ValueError) as error:
            return Transition(unchanged or state, str(error))
        return Transition(State(state.session, "results", keywords, page, visited=state.visited, draws=state.draws))

    def _click(self, state: State, key: str, goal: Goal) -> Transition:
        clicks = self.clicks(state)
        click = clicks.get(key)
        if click is None or key == "search":
            return Transition(state, self._no_such_button(key, clicks))
        if self.rules.routing == "state" and click.kind is NodeKind.OPTION:
            return self._choose(state, click)
        if key == "buy now":
            return self._buy(state, goal)
        if key == "back to search":
            return Transition(State(state.session, draws=state.draws))
        if key in ("next >", "< prev"):
            moved = self._move(state, key)
            if moved is not None:
                return moved
        if key in _SUBS and click.kind is not NodeKind.LINK:
            return Transition(state._replace(view="sub", sub=_SUBS[key]))
        return self._open(state, click)

    def _move(self, state: State, key: str) -> Transition | None:
        """Previous and next, by the page the rules take this one for; None if the button means something else."""
        view = state.routed_view if self.rules.routing == "url" else state.view
        if view == "results":
            page = state.page + (1 if key == "next >" else -1)
            # The original draws a new random list for every page of "<r>".
            again = self.rules.special_queries and state.keywords[0] == "<r>"
            return self._to_results(state._replace(draws=state.draws + again), state.keywords, page)
        if key == "< prev" and view == "sub":
            return Transition(state._replace(view="item", sub=""))
        if key == "< prev" and view == "item":
            again = self.rules.special_queries and state.keywords[0] == "<r>"
            return self._to_results(state._replace(draws=state.draws + again), state.keywords, state.page)
        return None

    def _open(self, state: State, click: Click) -> Transition:
        if click.kind is NodeKind.LINK:
            asin = click.target
            return Transition(state._replace(view="item", asin=asin, sub="", visited=state.visited | {asin}))
        if click.kind is NodeKind.OPTION:
            return self._choose(state, click)
        return Transition(state._replace(view="item", sub=""))

    def _choose(self, state: State, click: Click) -> Transition:
        chosen = dict(state.options)
        chosen[click.group] = click.target
        return Transition(state._replace(view="item", sub="", options=tuple(chosen.items())))

    def _buy(self, state: State, goal: Goal) -> Transition:
        product, chosen = self.by_asin[state.asin], dict(state.options)
        verdict = Verdict(score_original(product, chosen, goal), score_fixed(product, chosen, goal))
        return Transition(state._replace(view="done", sub="", verdict=verdict))

    def score(self, state: State) -> Score | None:
        """The score of a purchase by the rules of this shop; None before it."""
        if state.verdict is None:
            return None
        return state.verdict.fixed if self.rules.reward == "fixed" else state.verdict.original

    def clicks(self, state: State) -> Mapping[str, Click]:
        """What can be clicked in a state."""
        if state.view == "index":
            return _INDEX_CLICKS
        if state.view == "done":
            return {}
        return self._body(state).clicks

    def _no_such_button(self, key: str, clicks: Mapping[str, Click]) -> str:
        shown = key if len(key) <= 80 else key[:77] + "..."
        if key == "search":
            return "use search[words] to search"
        return f"there is no {shown!r} to click on this page.{close_matches(shown, clicks)}"

    # -- identity ------------------------------------------------------------------------------------------------

    @cached_property
    def sha256(self) -> str:
        """Hash of everything that defines the tasks: documents, prices, goals, caps and the seed."""
        digest = hashlib.sha256(f"{self.seed}\n".encode())
        for product in self.products:
            digest.update(f"{product.asin}\x00{product.document}\x00{product.price!r}\n".encode())
        for goal in self.goals:
            digest.update(f"{goal.task_id}\x00{goal.instruction}\n".encode())
        return digest.hexdigest()


_SPECIAL = frozenset({"<r>", "<a>", "<c>", "<q>"})
_INDEX_CLICKS = {bodies.SEARCH.lower(): Click(NodeKind.BUTTON, bodies.SEARCH)}
