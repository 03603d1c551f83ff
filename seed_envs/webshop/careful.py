"""A player that reads the instruction: it minds the price and chooses the options that are named, nothing more.

Stronger than the paper's rule baseline and without privileges. It cannot tell whether a product has the wanted
attributes, so it buys the first one that has the options at the price.
"""

from __future__ import annotations

import re

from seed_envs.errors import OracleUnavailable
from seed_envs.webshop.catalogue import Product
from seed_envs.webshop.goals import NO_CAP, Goal
from seed_envs.webshop.oracle import instruction_search, option_key
from seed_envs.webshop.pages import NodeKind
from seed_envs.webshop.shop import Shop
from seed_envs.webshop.state import State

_CAP = re.compile(r"price lower than ([0-9.]+) dollars")


def careful_action(shop: Shop, state: State, goal: Goal) -> str:
    """The next action; of the goal only the instruction is read.

    Raises:
        OracleUnavailable: After the purchase.
    """
    if state.view == "index":
        return instruction_search(goal)
    if state.view == "results":
        return _look_on(shop, state, goal.instruction)
    if state.view == "item":
        return _choose_or_leave(shop, state, goal.instruction)
    if state.view == "sub":
        return "click[< prev]"
    raise OracleUnavailable("the purchase is done; reset the environment")


def _look_on(shop: Shop, state: State, instruction: str) -> str:
    """Open the first product not yet seen that is not too dear, else turn the page."""
    cap = _CAP.search(instruction)
    most = float(cap.group(1)) if cap else NO_CAP
    for key, click in shop.clicks(state).items():
        fresh = click.kind is NodeKind.LINK and click.target not in state.visited
        if fresh and shop.by_asin[click.target].displayed_price <= most:
            return f"click[{key}]"
    return "click[next >]" if "next >" in shop.clicks(state) else "click[back to search]"


def _choose_or_leave(shop: Shop, state: State, instruction: str) -> str:
    product = shop.by_asin[state.asin]
    wanted = {name: _named(product, name, instruction) for name in product.options}
    if not all(wanted.values()):
        return "click[< prev]"
    for name, value in wanted.items():
        key = option_key(shop, state, name, value)
        if key is not None and state.option(name) != value:
            return f"click[{key}]"
    return "click[buy now]"


def _named(product: Product, name: str, instruction: str) -> str:
    """The longest value of an option that the instruction names, or ""."""
    text = instruction.lower()
    found = [v for v in product.options[name] if v and re.search(rf"(?<!\w){re.escape(v)}(?!\w)", text)]
    return max(found, key=len, default="")
