"""How language models are put before the game: profiles as data.

The sentences are this project's own.  What they show (task, step number, last
observation-action pairs, quoted admissible commands without ``help``) and how
a reply is read follow the SEED paper and its released set-up.
"""

from __future__ import annotations

import dataclasses
from typing import Final

from seed_envs.profiles import GROWING, TAGS, ActionFormat, Profile, PromptTemplate

_ANSWER = (
    "Decide what to do now. Think it through step by step inside <think> </think> tags. Then choose one of the "
    "admissible actions and write it inside <action> </action> tags."
)

WINDOW_TEMPLATE: Final = PromptTemplate(
    first=(
        "You are an expert household agent in the ALFRED embodied environment, played as text.\n"
        "This is what you observe: {observation}{skill}\n"
        "These are the actions you may take in this situation:\n[{admissible}]\n\n" + _ANSWER
    ),
    turn=(
        "You are an expert household agent in the ALFRED embodied environment, played as text. "
        "{goal}{skill}\n"
        "So far you have taken {step} step(s). The last {history_length} observation(s) with the actions that followed "
        "them: {history}\n"
        "It is now step {next_step}, and this is what you observe: {observation}\n"
        "These are the actions you may take in this situation:\n[{admissible}]\n\n" + _ANSWER
    ),
    hidden_actions=("help",),
)

TOLERANT_FORMAT: Final = dataclasses.replace(TAGS, fallback_tail=30)

PAPER_FORMAT: Final = dataclasses.replace(TOLERANT_FORMAT, reading="verl-agent")

_PAPER = Profile(
    name="paper",
    template=WINDOW_TEMPLATE,
    action_format=PAPER_FORMAT,
    max_steps=30,
    history=5,
    style="window",
    reward_scale=10.0,
    source="SEED (arXiv 2607.14777) and jinyangwu/SEED@2cf2fad: 30 steps, five pairs of history, reward 10 for a win",
)

_TOLERANT = dataclasses.replace(
    _PAPER,
    name="tolerant",
    action_format=TOLERANT_FORMAT,
    source="this package: the paper's prompts and numbers; the action is the first complete block",
)

_VERL = dataclasses.replace(
    _PAPER,
    name="verl-agent",
    max_steps=50,
    history=2,
    source="verl-agent's ALFWorld set-up: 50 steps, two pairs of history",
)

_COMPACT = Profile(
    name="compact",
    template=GROWING,
    action_format=ActionFormat(kind="raw"),
    max_steps=15,
    history=0,
    style="growing",
    env_kwargs={"split": "compact_train", "opening": "room"},
    source="for word-level models of under two million parameters, on the compact preset",
)

_LISTED = "{observation}\nCommands:\n{admissible}"

_COMPACT_LISTED = dataclasses.replace(
    _COMPACT,
    name="compact-listed",
    template=PromptTemplate(
        first="{goal}{skill}\nEvery reply is one of the listed commands, word for word, and nothing else.\n" + _LISTED,
        turn=_LISTED,
        skill_block="\nAdvice: {skill}",
        admissible_item="{action}",
        hidden_actions=("help",),
    ),
    source="the compact preset for instruct models as they are: every turn lists the commands",
)

_TERSE = dataclasses.replace(
    _COMPACT,
    name="terse",
    max_steps=30,
    env_kwargs={"opening": "room"},
    source="the compact template and reply format on any game",
)

PROFILES: Final[dict[str, Profile]] = {
    profile.name: profile for profile in (_PAPER, _TOLERANT, _VERL, _COMPACT, _COMPACT_LISTED, _TERSE)
}
"""Name -> profile."""
