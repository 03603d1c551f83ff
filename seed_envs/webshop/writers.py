"""Writers: the observation forms of a page. Each one only reads the page.

``text`` and ``text_rich`` equal the original's; ``parts`` is the form training code feeds to language models;
``json`` is for programs. HTML is written by the site's templates from the same nodes.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from seed_envs.webshop.pages import SEPARATOR, Node, NodeKind, Page


def text(page: Page) -> str:
    """Stripped nodes joined by `` [SEP] ``."""
    body = page.body.text
    if not page.header.text:
        return body or ""
    return page.header.text if body is None else f"{page.header.text}{SEPARATOR}{body}"


def text_rich(page: Page, chosen_by_url: bool = True) -> str:
    """One line per node, with marks around buttons, options and links.

    Args:
        page: The page.
        chosen_by_url: Whether an option counts as chosen if its quoted value occurs in the address (the original's
            rule), rather than if it is chosen.
    """
    lines: list[str] = []
    front = ""
    for node in page.nodes:
        if node.kind is NodeKind.BUTTON:
            lines.append(f"[button] {node.text} [button_]\n")
        elif node.kind is NodeKind.LINK:
            mark = "clicked button" if node.text in page.state.visited else "button"
            lines.append(f"\n[{mark}] {node.text} [{mark}_]\n")
        elif node.kind is NodeKind.OPTION:
            if _is_chosen(page, node, chosen_by_url):
                lines.append(f"  [clicked button] {node.text} [clicked button_]\n")
                front = f"You have clicked {node.text}.\n{front}"
            else:
                lines.append(f"  [button] {node.text} [button_]\n")
        else:
            lines.append(f"{node.text}\n")
    return front + "".join(lines)


def _is_chosen(page: Page, node: Node, by_url: bool) -> bool:
    return f'"{node.text}"' in page.url if by_url else page.state.option(node.group) == node.text


def url(page: Page) -> str:
    """The address in the original's form."""
    return page.url


def parts(page: Page) -> str:
    """Nodes after the goal, each in single quotes, joined by `` [SEP] `` (the form of verl-agent and SEED)."""
    stripped = [node.text.strip() for node in page.nodes]
    goal = next((i for i, node in enumerate(page.nodes) if node.role == "goal"), -1)
    return SEPARATOR.join(f"'{part}'" for part in stripped[goal + 1 :])


def as_json(page: Page) -> str:
    """The page as one JSON object: kind, nodes with their states, clickables."""
    nodes = [
        {
            "kind": node.kind.value,
            "text": node.text,
            "action": node.action,
            "selected": node.kind is NodeKind.OPTION and page.state.option(node.group) == node.text,
            "visited": node.kind is NodeKind.LINK and node.text in page.state.visited,
        }
        for node in page.nodes
    ]
    record = {"kind": page.kind, "nodes": nodes, "clickables": page.clickables, "has_search_bar": page.has_search_bar}
    return json.dumps(record, ensure_ascii=False)


WRITERS: dict[str, Callable[[Page], str]] = {
    "text": text,
    "text_rich": text_rich,
    "url": url,
    "parts": parts,
    "json": as_json,
}
