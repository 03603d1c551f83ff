"""Rule switches of the shop: the two named modes and their overrides.

A mode is a value, not a branch: every module asks for the one switch it needs. This module holds no behaviour.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from seed_envs.arguments import check_choice
from seed_envs.errors import UnknownOption, close_matches


@dataclass(frozen=True)
class Rules:
    """All switches. The defaults are those of ``mode="original"``.

    Attributes:
        prices: Hidden price of a product with a price range: ``drawn`` (uniform, seeded) or ``displayed`` (upper end).
        caps: Price caps of goals: ``stream`` (one generator in goal order) or ``keyed`` (one child generator per goal).
        sampling: How a task is drawn: ``uniform``, ``weighted`` or ``original`` (weighted, shifted by one).
        parser: ``original`` (one greedy match) or ``tolerant`` (trims, any case, last action wins).
        search_anywhere: Whether a search works on pages without a search bar.
        special_queries: Whether the keywords ``<r> <c> <q>`` list products by their hidden class.
        clickables: ``original`` (bare option values) or ``named`` (ambiguous values become ``name: value``).
        routing: ``url`` (page recognised by substrings of the address) or ``state``.
        rich_state: Whether ``text_rich`` marks chosen options by the ``url`` or by the ``state``.
        paging: ``endless`` (Next on every page) or ``bounded``.
        blanks: ``kept`` (blank nodes give empty segments) or ``dropped``.
        done_page: ``original`` (labels and reward) or ``thanks``.
        show_score: Whether a ``thanks`` page shows the score.
        reward: Which score is the reward, ``original`` or ``fixed``.
        options: ``kept`` (an empty option group leaves a product without goals) or ``nonempty`` (empty groups and
            empty values are dropped).
        feedback: Whether the reason of an invalid action is put in front of the observation.
        lenient_files: Whether an unreadable price counts as missing (with a warning) rather than as an error.
    """

    prices: Literal["drawn", "displayed"] = "drawn"
    caps: Literal["stream", "keyed"] = "stream"
    sampling: Literal["uniform", "weighted", "original"] = "uniform"
    parser: Literal["original", "tolerant"] = "original"
    search_anywhere: bool = True
    special_queries: bool = True
    clickables: Literal["original", "named"] = "original"
    routing: Literal["url", "state"] = "url"
    rich_state: Literal["url", "state"] = "url"
    paging: Literal["endless", "bounded"] = "endless"
    blanks: Literal["kept", "dropped"] = "kept"
    done_page: Literal["original", "thanks"] = "original"
    show_score: bool = False
    reward: Literal["original", "fixed"] = "original"
    options: Literal["kept", "nonempty"] = "kept"
    feedback: bool = False
    lenient_files: bool = False


MODES: dict[str, Rules] = {
    "original": Rules(),
    "fixed": Rules(
        prices="displayed",
        caps="keyed",
        parser="tolerant",
        search_anywhere=False,
        special_queries=False,
        clickables="named",
        routing="state",
        rich_state="state",
        paging="bounded",
        blanks="dropped",
        done_page="thanks",
        reward="fixed",
        options="nonempty",
        lenient_files=True,
    ),
}


def resolve_rules(mode: str, overrides: Mapping[str, Any] | None = None) -> Rules:
    """Returns the switches of a mode with single ones replaced.

    Args:
        mode: ``original`` or ``fixed``.
        overrides: Switch name to value, for example ``{"parser": "tolerant"}``.

    Raises:
        UnknownOption: If the mode, a switch or a value does not exist.
    """
    check_choice("mode", mode, tuple(MODES))
    rules = MODES[mode]
    if overrides is not None and not isinstance(overrides, Mapping):
        raise UnknownOption(f'rules are a dict such as {{"parser": "tolerant"}}; got {overrides!r}')
    known = {field.name: field for field in fields(Rules)}
    for name, value in (overrides or {}).items():
        if name not in known:
            raise UnknownOption(
                f"unknown WebShop rule {name!r}; expected one of {sorted(known)}.{close_matches(name, known)}"
            )
        allowed = _allowed_values(name)
        if value not in allowed or isinstance(value, bool) != isinstance(allowed[0], bool):
            raise UnknownOption(f"WebShop rule {name!r} cannot be {value!r}; expected one of {list(allowed)}")
    return replace(rules, **dict(overrides or {}))


def _allowed_values(name: str) -> tuple[Any, ...]:
    from typing import get_args, get_type_hints

    hint = get_type_hints(Rules)[name]
    return (True, False) if hint is bool else get_args(hint)
