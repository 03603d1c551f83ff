"""The whole state of a shopping session: a few immutable fields, so a snapshot is the state itself."""

from __future__ import annotations

import json
from typing import NamedTuple

from seed_envs.webshop.reward import Score

BASE_URL = "http://127.0.0.1:3000"


class Verdict(NamedTuple):
    """A purchase judged by both rule sets."""

    original: Score
    fixed: Score


class State(NamedTuple):
    """Where a session is.

    Attributes:
        session: Session name as it appears in addresses.
        view: index, results, item, sub or done.
        keywords: Words of the last search.
        page: Result page number.
        asin: Open product.
        sub: Open sub page.
        options: Chosen (name, value) pairs in click order.
        visited: Products opened since the last index page.
        draws: Random result lists drawn so far (``<r>``).
        verdict: Both scores, after the purchase.
    """

    session: str
    view: str = "index"
    keywords: tuple[str, ...] = ()
    page: int = 0
    asin: str = ""
    sub: str = ""
    options: tuple[tuple[str, str], ...] = ()
    visited: frozenset[str] = frozenset()
    draws: int = 0
    verdict: Verdict | None = None

    def option(self, name: str) -> str | None:
        """The chosen value of an option group, or None."""
        return dict(self.options).get(name)

    @property
    def url(self) -> str:
        """The address of the page in the original's form (not percent-encoded)."""
        words = "+".join(self.keywords)
        if self.view == "index":
            return f"{BASE_URL}/{self.session}"
        if self.view == "results":
            return f"{BASE_URL}/search_results/{self.session}/{words}/{self.page}"
        chosen = dict(self.options)
        if self.view == "item":
            return f"{BASE_URL}/item_page/{self.session}/{self.asin}/{words}/{self.page}/{json.dumps(chosen)}"
        if self.view == "sub":
            return f"{BASE_URL}/item_sub_page/{self.session}/{self.asin}/{words}/{self.page}/{self.sub}/{chosen}"
        return f"{BASE_URL}/done/{self.session}/{self.asin}/{chosen}"

    @property
    def routed_view(self) -> str:
        """The view the original takes the address for: the first of these words found anywhere in it."""
        address = self.url
        for word, view in _ROUTES:
            if word in address:
                return view
        return "index"


_ROUTES = (("search_results", "results"), ("item_page", "item"), ("item_sub_page", "sub"), ("done", "done"))
