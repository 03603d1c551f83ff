"""The oracle: a policy that knows the target product and options, and the rule baseline of the paper.

The oracle buys exactly what the goal was made from. In original mode that purchase scores below 1.0 for goals whose
option values hide a colour name; the oracle cannot change that.
"""

from __future__ import annotations

from collections.abc import Iterator

from seed_envs.errors import OracleUnavailable
from seed_envs.webshop.bodies import RESULTS_PER_PAGE
from seed_envs.webshop.catalogue import Product
from seed_envs.webshop.goals import Goal
from seed_envs.webshop.pages import NodeKind
from seed_envs.webshop.shop import Shop
from seed_envs.webshop.state import State

_RESERVED = (
    "search",
    "buy now",
    "back to search",
    "next >",
    "< prev",
    "description",
    "features",
    "reviews",
    "attributes",
)
_QUERY_LENGTH = 400


def oracle_action(shop: Shop, state: State, goal: Goal) -> str:
    """The next action towards the exact purchase.

    Args:
        shop: The shop.
        state: Where the session is.
        goal: What is wanted.

    Raises:
        OracleUnavailable: After the purchase, or if no search finds the target.
    """
    asin = goal.product.asin
    if state.view == "index":
        return f"search[{target_query(shop, goal.product)}]"
    if state.view == "results":
        return _from_results(shop, state, goal)
    if state.view == "sub":
        return "click[< prev]" if state.asin == asin else "click[back to search]"
    if state.view == "item":
        return _from_item(shop, state, goal) if state.asin == asin else "click[back to search]"
    raise OracleUnavailable("the purchase is done; reset the environment")


def _from_results(shop: Shop, state: State, goal: Goal) -> str:
    if goal.product.asin.lower() in shop.clicks(state):
        return f"click[{goal.product.asin.lower()}]"
    found = [product.asin for product in shop.results(state.keywords, state.draws)]
    if goal.product.asin not in found:
        return "click[back to search]"
    page = found.index(goal.product.asin) // RESULTS_PER_PAGE + 1
    return "click[next >]" if page > state.page else "click[< prev]"


def _from_item(shop: Shop, state: State, goal: Goal) -> str:
    for name, value in goal.options:
        key = option_key(shop, state, name, value)
        if key is not None and state.option(name) != value:
            return f"click[{key}]"
    return "click[buy now]"


def option_key(shop: Shop, state: State, name: str, value: str) -> str | None:
    """The click argument that sets an option, or None if no click sets it."""
    for key, click in shop.clicks(state).items():
        if click.kind is NodeKind.OPTION and click.target == value and click.group == name:
            strict = shop.rules.parser == "original"
            return None if strict and ("[" in key or "\n" in key or key in _RESERVED) else key
    return None


def _queries(product: Product) -> Iterator[str]:
    yield product.title
    yield f"{product.title} {product.description}"
    yield f"{product.title} {product.bullets[0] if product.bullets else ''}"
    yield product.document
    yield product.option_text


def target_query(shop: Shop, product: Product) -> str:
    """A search that lists a product.

    Raises:
        OracleUnavailable: If none of the product's own texts finds it.
    """
    for text in _queries(product):
        query = plain_words(text)[:_QUERY_LENGTH].lower()
        if query and any(found.asin == product.asin for found in shop.results(tuple(query.split(" ")))):
            return query
    raise OracleUnavailable(f"no search of its own texts lists product {product.asin}")


def plain_words(text: str) -> str:
    """A text without brackets and line breaks, which neither action grammar could carry in a search."""
    return " ".join(text.replace("[", " ").replace("]", " ").split())


def instruction_search(goal: Goal) -> str:
    """The search for the words of a goal's instruction."""
    return f"search[{plain_words(goal.instruction) or '*'}]"


def rule_action(shop: Shop, state: State, goal: Goal) -> str:
    """The rule baseline: search the instruction, open the first product, buy it without choosing anything.

    Raises:
        OracleUnavailable: After the purchase.
    """
    if state.view == "index":
        return instruction_search(goal)
    if state.view == "results":
        links = [key for key, click in shop.clicks(state).items() if click.kind is NodeKind.LINK]
        return f"click[{links[0]}]" if links else "click[back to search]"
    if state.view == "item":
        return "click[buy now]"
    if state.view == "sub":
        return "click[< prev]"
    raise OracleUnavailable("the purchase is done; reset the environment")
