"""The page model: every page of the shop as a list of nodes, built once per content and shared by all sessions.

A page is a header (which depends on the goal), a body (which depends on the product or the result list) and overlays
(chosen options, visited products). Writers turn pages into text or HTML; nothing here formats.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from functools import cached_property
from typing import NamedTuple

from seed_envs.webshop.state import State

SEPARATOR = " [SEP] "


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


def joined(nodes: Iterable[Node]) -> str:
    """The text form of nodes."""
    return SEPARATOR.join([node[1].strip() for node in nodes])


class Click(NamedTuple):
    """What a clickable does: a button, a product link or an option."""

    kind: NodeKind
    target: str
    group: str = ""


class Header(NamedTuple):
    """The instruction block of a goal and its text form."""

    nodes: tuple[Node, ...]
    text: str


NO_HEADER = Header((), "")

#: How a search is listed among the admissible actions.
SEARCH_ACTION = "search[<your query>]"


class Body:
    """Nodes of a page below its header, with the clickables they make. Immutable and shared.

    Args:
        kind: index, results, item, sub or done.
        nodes: Nodes in reading order.
        clicks: Click argument to meaning, in the original's order.
        image: Address of the product image (data; never fetched).
        text: The text form, if it is known already.
    """

    def __init__(
        self,
        kind: str,
        nodes: tuple[Node, ...],
        clicks: Mapping[str, Click],
        image: str = "",
        text: str | None = None,
    ) -> None:
        self.kind = kind
        self.nodes = nodes
        self.clicks = clicks
        self.image = image
        #: Stripped nodes joined for the text observation; None without nodes.
        self.text = joined(nodes) if text is None and nodes else text

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
