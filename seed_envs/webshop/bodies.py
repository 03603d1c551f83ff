"""Builders of page bodies: what each kind of page shows, in the original's order and wording.

Pure functions of products, goals and a few switches; caching belongs to the shop.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from seed_envs.webshop.catalogue import Product
from seed_envs.webshop.pages import SEPARATOR, Body, Click, Header, Node, NodeKind, joined

RESULTS_PER_PAGE = 10
BACK, NEXT, PREVIOUS, BUY, SEARCH = "Back to Search", "Next >", "< Prev", "Buy Now", "Search"
SUB_PAGES = ("Description", "Features", "Reviews", "Attributes")
INSTRUCTION = "Instruction:"
THANKS = "Thank you for shopping with us!"
_BLANK_CHARS = " \t\n\r\f"


def _kept(nodes: Iterable[Node], drop_blanks: bool) -> tuple[Node, ...]:
    """Nodes as HTML parsing leaves them: no empty ones, blank ones without a line break squeezed to one blank."""
    kept: list[Node] = []
    for node in nodes:
        text = node.text
        if text.strip(_BLANK_CHARS):
            # A string of other white space (no-break spaces) is a node to the original, but shows nothing.
            if not drop_blanks or text.strip():
                kept.append(node)
        elif text and not drop_blanks and "\n" not in text:
            kept.append(node._replace(text=" "))
    return tuple(kept)


def _button(text: str, role: str = "") -> Node:
    return Node(NodeKind.BUTTON, text, text.lower(), role)


def _text(text: str, role: str = "") -> Node:
    return Node(NodeKind.TEXT, text, "", role)


def goal_header(instruction: str) -> Header:
    """The block on top of every page but index and done."""
    nodes = _kept((_text(INSTRUCTION, "instruction"), _text(instruction, "goal"), _button(BACK, "nav")), False)
    return Header(nodes, joined(nodes))


def _clicks(nodes: Iterable[Node]) -> dict[str, Click]:
    """Buttons, then links, then options; a repeated key keeps its first place and its last meaning."""
    buttons = {BACK.lower(): Click(NodeKind.BUTTON, BACK)}
    links: dict[str, Click] = {}
    options: dict[str, Click] = {}
    for kind, text, action, _, group in nodes:
        if kind is NodeKind.BUTTON:
            buttons[action] = Click(kind, text)
        elif kind is NodeKind.LINK:
            links[action] = Click(kind, text)
        elif kind is NodeKind.OPTION:
            options[action] = Click(kind, text, group)
    return buttons | links | options


def index_body(instruction: str) -> Body:
    """The start page."""
    nodes = (
        _text("WebShop", "brand"),
        _text("Instruction: ", "instruction"),
        _text(instruction, "goal"),
        _button(SEARCH, "search"),
    )
    return Body("index", nodes, {SEARCH.lower(): Click(NodeKind.BUTTON, SEARCH)})


class Row(NamedTuple):
    """A product in a result list: its nodes, their text form and its link."""

    nodes: tuple[Node, ...]
    text: str
    key: str
    click: Click


@lru_cache(maxsize=16384)
def product_row(product: Product, drop_blanks: bool) -> Row:
    """A product's part of a result list, shared by all lists."""
    asin = product.asin
    nodes = (
        Node(NodeKind.LINK, asin, asin.lower(), "product"),
        _text(product.title, "product-title"),
        _text(product.price_tag, "product-price"),
    )
    kept = _kept(nodes, drop_blanks)
    return Row(kept, joined(kept), asin.lower(), Click(NodeKind.LINK, asin))


_RESULT_CLICKS = {text.lower(): Click(NodeKind.BUTTON, text) for text in (BACK, PREVIOUS, NEXT)}


def results_body(products: Sequence[Product], total: int, page: int, drop_blanks: bool, endless: bool = True) -> Body:
    """One page of a result list.

    Args:
        products: The products of this page.
        total: Length of the whole list.
        page: Page number as shown.
        drop_blanks: Whether blank nodes are left out.
        endless: Whether Next is offered without further results.
    """
    nodes = [_text(f"Page {page} (Total results: {total})", "count")]
    if page > 1:
        nodes.append(_button(PREVIOUS, "nav"))
    if endless or page * RESULTS_PER_PAGE < total:
        nodes.append(_button(NEXT, "nav"))
    buttons = [BACK.lower(), *(node.action for node in nodes[1:])]
    clicks = {button: _RESULT_CLICKS[button] for button in buttons}
    pieces = [node.text for node in nodes]
    for product in products:
        row_nodes, row_text, key, click = product_row(product, drop_blanks)
        nodes += row_nodes
        pieces.append(row_text)
        clicks[key] = click
    return Body("results", tuple(nodes), clicks, text=SEPARATOR.join(pieces))


def item_body(product: Product, show_attrs: bool, named: bool, drop_blanks: bool) -> Body:
    """The page of one product.

    Args:
        product: The product.
        show_attrs: Whether the Attributes button is there.
        named: Whether ambiguous option values are clicked as ``name: value``.
        drop_blanks: Whether blank nodes are left out.
    """
    subs = SUB_PAGES if show_attrs else SUB_PAGES[:3]
    reserved = {name.lower() for name in (*SUB_PAGES, BACK, NEXT, PREVIOUS, BUY, SEARCH)}
    counts: dict[str, int] = {}
    for values in product.options.values():
        for value in dict.fromkeys(values):
            counts[value] = counts.get(value, 0) + 1
    nodes = [_button(PREVIOUS, "nav")]
    for name, values in product.options.items():
        nodes.append(Node(NodeKind.OPTION_NAME, name, "", "option-name", name))
        for value in values:
            ambiguous = named and (counts[value] > 1 or value in reserved)
            key = f"{name}: {value}".strip() if ambiguous else value
            nodes.append(Node(NodeKind.OPTION, value, key, "option", name))
    nodes += [
        _text(product.title, "title"),
        _text(f"Price: {product.price_tag}", "price"),
        _text(f"Rating: {product.rating}", "rating"),
        *(_button(name, "sub") for name in subs),
        _button(BUY, "buy"),
    ]
    return Body("item", _kept(nodes, drop_blanks), _clicks(nodes), product.image)


_SUB_CLICKS = {text.lower(): Click(NodeKind.BUTTON, text) for text in (BACK, PREVIOUS)}


def sub_body(product: Product, name: str, drop_blanks: bool) -> Body:
    """A sub page of a product: ``Description``, ``Features``, ``Reviews`` or ``Attributes``."""
    nodes = [_button(PREVIOUS, "nav")]
    if name == "Description":
        nodes.append(_text(product.description, "description"))
    elif name == "Features":
        nodes += [_text(f" {bullet}", "bullet") for bullet in product.bullets]
    elif name == "Reviews":
        for review in product.reviews:
            nodes += [
                _text(f'"{review.title}"', "review-title"),
                _text(review.score, "review-score"),
                _text(review.body, "review-body"),
            ]
    else:
        nodes += [_text(f" {attribute}", "attribute") for attribute in product.attributes]
        nodes += [_text(text, "fact") for text in (product.category, product.query, product.product_category)]
    return Body("sub", _kept(nodes, drop_blanks), _SUB_CLICKS)


def options_json(options: Mapping[str, str]) -> str:
    """Chosen options as the done page shows them: sorted keys, ASCII, HTML characters escaped."""
    text = json.dumps(dict(options), sort_keys=True)
    for char in "<>&'":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text


def done_body(product: Product, options: Mapping[str, str], reward: float, style: str, show_score: bool) -> Body:
    """The last page: the original's labels with the reward, or a line of thanks (with the score on request)."""
    if style == "thanks":
        nodes = [_text(THANKS, "thanks")]
        if show_score:
            nodes += [_text("Your score (min 0.0, max 1.0)", "label"), _text(repr(reward), "reward")]
        return Body("done", tuple(nodes), {})
    nodes = list(_DONE_NODES)
    nodes[_DONE_ASIN] = _text(product.asin, "own")
    nodes[_DONE_OPTIONS] = _text(options_json(options), "own")
    nodes[_DONE_REWARD] = _text(repr(reward), "reward")
    return Body("done", tuple(nodes), {})


def _done_template() -> tuple[Node, ...]:
    facts = ("asin", "options", "attrs", "category", "query", "product category")
    labels = ("asin", "options", "attrs", "price upper", "instuction text", "category", "product category", "query")
    nodes = [
        _text(THANKS, "thanks"),
        _text("Your code: ", "label"),
        _text("None", "code"),
        _text(" (Paste it in your MTurk interface.)", "label"),
        _text("Purchased", "section"),
    ]
    for fact in facts:
        nodes += [_text(fact, "label"), _text("None", "own")]
    nodes.append(_text("Target", "section"))
    nodes += [_text(label, "label") for label in labels]
    nodes += [
        _text("Goal ", "label"),
        _text("None", "target"),
        _text("Reward", "section"),
        _text("Your score (min 0.0, max 1.0)", "label"),
        _text("", "reward"),
        _text("Reward Details ", "label"),
        _text("None", "target"),
    ]
    return tuple(nodes)


_DONE_NODES = _done_template()
_DONE_ASIN, _DONE_OPTIONS, _DONE_REWARD = 6, 8, len(_DONE_NODES) - 3
