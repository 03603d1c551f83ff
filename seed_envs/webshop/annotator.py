"""Writes hindsight skills by rule, from a finished trajectory and its outcome only.

After a success: the workflow that worked. After a failure: the most likely mistake and what to do instead. It reads
actions, page texts and the goal; it never sees the target product, hidden attributes or sub-scores.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from seed_envs.trajectory import Step, Trajectory

_ACTION = re.compile(r"\s*(search|click)\s*\[(.*)\]", re.IGNORECASE | re.DOTALL)
_PRICE_CAP = re.compile(r",? and price lower than ([\d.]+) dollars")
_NAMED = re.compile(r"(?:with |, and )([a-z ]+): ([^,]+)")
_PRICE = re.compile(r"Price: \$([\d.]+)")
_ASIN = re.compile(r"[a-z0-9]{10}")
_NAVIGATION = frozenset(
    {"buy now", "back to search", "next >", "< prev", "description", "features", "reviews", "attributes", "search"}
)


@dataclass
class _Visit:
    """One opened product: what was read and chosen there."""

    asin: str
    chosen: list[str] = field(default_factory=list)
    read: list[str] = field(default_factory=list)
    price: float | None = None


@dataclass
class _Story:
    """What an episode shows.

    Attributes:
        queries: Search texts in order.
        visits: Opened products in order.
        pages: Result pages looked at beyond the first.
        refused: Actions that did nothing.
        bought: Whether the episode ended with a purchase.
    """

    queries: list[str] = field(default_factory=list)
    visits: list[_Visit] = field(default_factory=list)
    pages: int = 0
    refused: int = 0
    bought: bool = False


def annotate(trajectory: Trajectory) -> str:
    """The skill of an episode: one short paragraph addressed to whoever plays the task next.

    Args:
        trajectory: A finished episode.
    """
    story = _read(trajectory.steps)
    wish, cap, options = _wish(trajectory.goal)
    if trajectory.success:
        return _workflow(story, wish, options)
    return _lesson(story, wish, cap, options)


def _wish(goal: str) -> tuple[str, float | None, list[tuple[str, str]]]:
    """Splits a goal into its wish, the price cap and the named options."""
    match = _PRICE_CAP.search(goal)
    cap = float(match.group(1)) if match else None
    rest = _PRICE_CAP.sub("", goal)
    options = [(name.strip(), value.strip()) for name, value in _NAMED.findall(rest)]
    wish = rest.split(f" with {options[0][0]}:")[0] if options else rest
    return re.sub(r"^find me ", "", wish.strip(), flags=re.IGNORECASE), cap, options


def _read(steps: Sequence[Step]) -> _Story:
    story = _Story()
    for step in steps:
        match = _ACTION.match(step.action)
        if match is None or not step.action_valid:
            story.refused += 1
            continue
        _note(story, match.group(1).lower(), match.group(2).strip().lower(), step.observation)
    return story


def _note(story: _Story, kind: str, argument: str, seen: str) -> None:
    visit = story.visits[-1] if story.visits else None
    price = _PRICE.search(seen)
    if visit is not None and price is not None:
        visit.price = float(price.group(1))
    if kind == "search":
        story.queries.append(argument)
    elif argument == "buy now":
        story.bought = True
    elif argument == "next >":
        story.pages += 1
    elif argument in ("description", "features", "reviews", "attributes"):
        if visit is not None:
            visit.read.append(argument)
    elif argument in _NAVIGATION:
        return
    elif _ASIN.fullmatch(argument) and any(char.isdigit() for char in argument) and "Price: $" not in seen:
        story.visits.append(_Visit(argument))
    elif visit is not None:
        visit.chosen.append(argument)


def _workflow(story: _Story, wish: str, options: Sequence[tuple[str, str]]) -> str:
    steps = [f"search with the words of the wish ({_short(story.queries[-1] if story.queries else wish)})"]
    if story.pages:
        steps.append("look through further result pages until a title fits")
    steps.append("open the product whose title and price fit the wish")
    if story.visits and story.visits[-1].read:
        steps.append(f"check {' and '.join(dict.fromkeys(story.visits[-1].read))}")
    chosen = story.visits[-1].chosen if story.visits else []
    if chosen:
        steps.append(f"choose every option that was asked for ({', '.join(dict.fromkeys(chosen))})")
    steps.append("click buy now")
    avoided = " Leave a product early when it lacks an asked option." if len(story.visits) > 1 else ""
    asked = f" Options to set: {_listed(options)}." if options else ""
    return f"This works: {'; then '.join(steps)}.{asked}{avoided}"


def _lesson(story: _Story, wish: str, cap: float | None, options: Sequence[tuple[str, str]]) -> str:
    plan = f"Search for {_short(wish)}, open the best match, "
    plan += f"set {_listed(options)}, " if options else ""
    plan += f"check that the price is below {cap:.2f} dollars, " if cap is not None else ""
    plan += "then click buy now."
    if not story.queries:
        mistake = "No search was made; the store shows nothing before one."
    elif not story.bought:
        mistake = _never_bought(story)
    else:
        mistake = _bought_wrong(story, cap, options)
    refused = f" {story.refused} action(s) did nothing: only click what the page lists." if story.refused else ""
    return f"{mistake}{refused} {plan}"


def _never_bought(story: _Story) -> str:
    if not story.visits:
        return f"Time ran out before a product was opened, after {len(story.queries)} search(es)."
    return f"Time ran out after {len(story.visits)} product(s) without buying: buy the best match before the last step."


def _bought_wrong(story: _Story, cap: float | None, options: Sequence[tuple[str, str]]) -> str:
    visit = story.visits[-1] if story.visits else _Visit("")
    missing = [(name, value) for name, value in options if value not in visit.chosen]
    if missing:
        return f"The purchase was made without choosing {_listed(missing)}."
    if cap is not None and visit.price is not None and visit.price >= cap:
        return f"The product cost {visit.price:.2f} dollars, not below {cap:.2f}."
    if not visit.read:
        return "The first match was bought without reading its features or description; it missed an asked quality."
    return "The product bought missed an asked quality although its options were set; compare it with other results."


def _listed(options: Sequence[tuple[str, str]]) -> str:
    return " and ".join(f"{name} {value}" for name, value in options)


def _short(text: str, limit: int = 80) -> str:
    return text if len(text) <= limit else text[:limit].rsplit(" ", 1)[0]
