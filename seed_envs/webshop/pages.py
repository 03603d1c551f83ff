"""The page model: every page of the shop as a list of nodes, built once per content and shared by all sessions.

A page is a header (which depends on the goal), a body (which depends on the product or the result list) and overlays
(chosen options, visited products). Writers turn pages into text or HTML; nothing here formats.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import NamedTuple

from seed_envs.webshop.catalogue import Product
from seed_envs.webshop.state import State

SEPARATOR = " [SEP] "
RESULTS_PER_PAGE = 10
BACK, NEXT, PREVIOUS, BUY, SEARCH = "Back to Search", "Next >", "< Prev", "Buy Now", "Search"
SUB_PAGES = ("Description", "Features", "Reviews", "Attributes")
INSTRUCTION = "Instruction:"
THANKS = "Thank you for shopping with us!"
_BLANK_CHARS = " \t\n\r\f"


class NodeKind(Enum):
    """What a node is: text, a button, a product link, an option group's name, an option value."""

    TEXT = "text"
    BUTTON = "button"
    LINK = "link"
    OPTION_NAME = "option_name"
    OPTION = "option"


class Node(NamedTuple):
    """One visible string of a page.

    Attributes:
        kind: What it is.
        text: Exactly what is shown.
        action: Argument of the click that uses it; empty for plain text.
        role: Where it stands (title, price, goal, ...), for the HTML writer's markup.
        group: Option name of an option value.
    """

    kind: NodeKind
    text: str
    action: str = ""
    role: str = ""
    group: str = ""


class Click(NamedTuple):
    """What a clickable does: a button, a product link or an option."""

    kind: NodeKind
    target: str
    group: str = ""


def keeps(text: str) -> bool:
    """Whether a string makes a node: empty ones and blank ones with a line break do not."""
    return bool(text) and not ("\n" in text and not text.strip(_BLANK_CHARS))


class Header(NamedTuple):
    """The instruction block of a goal and its text form."""

    nodes: tuple[Node, ...]
    text: str


NO_HEADER = Header((), "")


#: How a search is listed among the admissible actions.
SEARCH_ACTION = "search[<your query>]"


@dataclass(frozen=True, eq=False)
class Body:
    """Nodes of a page below its header, with the clickables they make (both immutable, shared)."""

    kind: str
    nodes: tuple[Node, ...]
    clicks: Mapping[str, Click]
    image: str = ""

    @cached_property
    def text(self) -> str | None:
        """Stripped nodes joined for the text observation; None without nodes."""
        return SEPARATOR.join(node.text.strip() for node in self.nodes) if self.nodes else None

    @cached_property
    def actions(self) -> tuple[str, ...]:
        """Actions that are accepted here."""
        if self.kind == "index":
            return (SEARCH_ACTION,)
        return tuple(f"click[{key}]" for key in self.clicks if key != "search")


class Page(NamedTuple):
    """One page as one session sees it: shared content plus the session's state.

    Attributes:
        header: Instruction block of the goal (without nodes on index and done, whose bodies are complete).
        body: The rest.
        state: Where the session is; gives address, chosen options and visited products.
    """

    header: Header
    body: Body
    state: State

    @property
    def kind(self) -> str:
        """index, results, item, sub or done."""
        return self.body.kind

    @property
    def nodes(self) -> tuple[Node, ...]:
        """All nodes in reading order."""
        return self.header.nodes + self.body.nodes

    @property
    def clickables(self) -> list[str]:
        """Arguments that ``click[...]`` accepts here, in the original's order."""
        return list(self.body.clicks)

    @property
    def has_search_bar(self) -> bool:
        """Whether the page offers a search."""
        return self.body.kind == "index"

    @property
    def url(self) -> str:
        """Address in the original's form."""
        return self.state.url


def _kept(nodes: Sequence[Node], drop_blanks: bool) -> tuple[Node, ...]:
    if drop_blanks:
        return tuple(node for node in nodes if node.text.strip())
    return tuple(_squeezed(node) for node in nodes if keeps(node.text))


def _squeezed(node: Node) -> Node:
    return node if node.text.strip(_BLANK_CHARS) else node._replace(text=" ")


def _button(text: str, role: str = "") -> Node:
    return Node(NodeKind.BUTTON, text, text.lower(), role)


def _text(text: str, role: str = "") -> Node:
    return Node(NodeKind.TEXT, text, "", role)


def goal_header(instruction: str) -> Header:
    """The block on top of every page but index and done."""
    nodes = _kept((_text(INSTRUCTION, "instruction"), _text(instruction, "goal"), _button(BACK, "nav")), False)
    return Header(nodes, SEPARATOR.join(node.text.strip() for node in nodes))


def _clicks(nodes: Sequence[Node], with_back: bool = True) -> dict[str, Click]:
    """Buttons, then links, then options; a repeated key keeps its first place and its last meaning."""
    clicks: dict[str, Click] = {}
    if with_back:
        clicks[BACK.lower()] = Click(NodeKind.BUTTON, BACK)
    for node in nodes:
        if node.kind is NodeKind.BUTTON:
            clicks[node.action] = Click(NodeKind.BUTTON, node.text)
    for node in nodes:
        if node.kind is NodeKind.LINK:
            clicks[node.action] = Click(NodeKind.LINK, node.text)
    for node in nodes:
        if node.kind is NodeKind.OPTION:
            clicks[node.action] = Click(NodeKind.OPTION, node.text, node.group)
    return clicks


def index_body(instruction: str) -> Body:
    """The start page."""
    nodes = (
        _text("WebShop", "brand"),
        _text("Instruction: ", "instruction"),
        _text(instruction, "goal"),
        _button(SEARCH, "search"),
    )
    return Body("index", nodes, {SEARCH.lower(): Click(NodeKind.BUTTON, SEARCH)})


def results_body(
    products: Sequence[Product], total: int, page: int, drop_blanks: bool, last_has_next: bool = True
) -> Body:
    """One page of a result list.

    Args:
        products: The products of this page.
        total: Length of the whole list.
        page: Page number as shown.
        drop_blanks: Whether blank nodes are left out.
        last_has_next: Whether Next is offered without further results.
    """
    nodes = [_text(f"Page {page} (Total results: {total})", "count")]
    if page > 1:
        nodes.append(_button(PREVIOUS, "nav"))
    if last_has_next or page * RESULTS_PER_PAGE < total:
        nodes.append(_button(NEXT, "nav"))
    for product in products:
        nodes.append(Node(NodeKind.LINK, product.asin, product.asin.lower(), "product"))
        nodes.append(_text(product.title, "product-title"))
        nodes.append(_text(product.price_tag, "product-price"))
    return Body("results", _kept(nodes, drop_blanks), _clicks(nodes))


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
            nodes.append(Node(NodeKind.OPTION, value, f"{name}: {value}" if ambiguous else value, "option", name))
    nodes += [
        _text(product.title, "title"),
        _text(f"Price: {product.price_tag}", "price"),
        _text(f"Rating: {product.rating}", "rating"),
        *(_button(name, "sub") for name in subs),
        _button(BUY, "buy"),
    ]
    return Body("item", _kept(nodes, drop_blanks), _clicks(nodes), product.image)


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
    return Body("sub", _kept(nodes, drop_blanks), _clicks(nodes))


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
    facts = ("asin", product.asin, "options", options_json(options), "attrs", "None", "category", "None")
    labels = ("asin", "options", "attrs", "price upper", "instuction text", "category", "product category", "query")
    rows = [
        (THANKS, "thanks"),
        ("Your code: ", "label"),
        ("None", "code"),
        (" (Paste it in your MTurk interface.)", "label"),
        ("Purchased", "section"),
        *((fact, "label" if i % 2 == 0 else "own") for i, fact in enumerate(facts)),
        *((fact, "label" if i % 2 == 0 else "own") for i, fact in enumerate(("query", "None", "product category", "None"))),
        ("Target", "section"),
        *((label, "label") for label in labels),
        ("Goal ", "label"),
        ("None", "target"),
        ("Reward", "section"),
        ("Your score (min 0.0, max 1.0)", "label"),
        (repr(reward), "reward"),
        ("Reward Details ", "label"),
        ("None", "target"),
    ]
    return Body("done", tuple(_text(text, role) for text, role in rows), {})
