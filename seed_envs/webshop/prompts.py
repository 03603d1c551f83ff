"""Prompt profiles of WebShop: words and settings as data.

``paper`` follows the setting of the SEED paper (15 turns, two pairs of history, page strings in quotes after the task,
10 for a full success) in this package's own words. ``verl-agent`` is the same with verl-agent's names.
"""

from __future__ import annotations

from dataclasses import replace

from seed_envs.profiles import GROWING, TAGS, Profile, PromptTemplate
from seed_envs.tools import Tool

_ROLE = "You shop for a customer in the online store WebShop.\nYour task: {goal}{skill}\n"
_NOW = "The page you see now: {observation}\nWhat you can do here:\n[\n{admissible}\n]\n\n"
_ANSWER = (
    "Decide on one action for this page. First reason step by step inside <think> </think>. Then give one of the "
    "listed actions inside <action> </action>; put your own words in the place of <your query>.\n"
)
_HISTORY = (
    "So far you have taken {step} step(s). The last {history_length} page(s) with the actions that followed them:\n"
    "{history}\nThis is step {next_step}. "
)

WINDOW_TEMPLATE = PromptTemplate(
    first=_ROLE + _NOW + _ANSWER,
    turn=_ROLE + _HISTORY + _NOW + _ANSWER,
    history_item="[Page {number}: {observation}, Action {number}: '{action}']",
    admissible_item="'{action}'",
    admissible_separator=",\n",
)

TOLERANT_FORMAT = replace(TAGS, fallback_tail=20)

PAPER_FORMAT = replace(TOLERANT_FORMAT, reading="verl-agent")

_PAPER = Profile(
    name="paper",
    template=WINDOW_TEMPLATE,
    action_format=PAPER_FORMAT,
    max_steps=15,
    history=2,
    reward_scale=10.0,
    env_kwargs={"obs_mode": "parts", "reward_type": "success"},
    source="SEED (arXiv 2607.14777) and jinyangwu/SEED@2cf2fad: 15 steps, two pairs of history, 10 for a score of 1.0",
)

_REACT = Profile(
    name="react",
    template=PromptTemplate(
        first=(
            "You are in the online store WebShop. Answer every page with one line, either search[words] or "
            "click[button], where the button is one of those the page shows. Buy what the customer wants with "
            "click[buy now] after choosing its options.\n\nCustomer: {goal}{skill}\n\nPage: {observation}\n"
        ),
        turn="Page: {observation}\n",
    ),
    max_steps=15,
    style="growing",
    env_kwargs={"obs_mode": "text", "rules": {"parser": "tolerant"}},
    source="one growing conversation, page text as in the WebShop paper, score as reward",
)

_COMPACT = Profile(
    name="compact",
    template=GROWING,
    max_steps=10,
    style="growing",
    env_kwargs={"obs_mode": "parts", "num_products": 100},
    source="for small models: bare pages, one conversation, 100 generated products",
)

PROFILES: dict[str, Profile] = {
    profile.name: profile
    for profile in (
        _PAPER,
        replace(_PAPER, name="verl-agent", source="verl-agent's WebShop set-up, the same numbers as the SEED paper's"),
        replace(
            _PAPER,
            name="tolerant",
            action_format=TOLERANT_FORMAT,
            source="this package: the paper's prompts and numbers; the action is the first complete block",
        ),
        _REACT,
        _COMPACT,
    )
}

TOOLS: tuple[Tool, ...] = (
    Tool(
        "search",
        "Search the shop; only where there is a search bar.",
        "keywords",
        "What to look for.",
        "search[{keywords}]",
    ),
    Tool(
        "click",
        "Click a button or link of the page.",
        "element",
        "Its text, as the list of possible actions has it between the brackets.",
        "click[{element}]",
    ),
)
"""What a page can be told to do, as functions."""
