"""Prompt profiles of EZPoints and Points24: words and settings as data.

``paper`` follows the vision setting of the SEED paper (picture and current formula, JSON answer, lenient reading) in
this package's own words.
"""

from __future__ import annotations

from seed_envs.profiles import ActionFormat, Profile, PromptTemplate
from seed_envs.vision.ezpoints.rules import ezpoints, points24

_CARDS = """- A card from 2 to 10 stands for its number; jack, queen and king stand for 10; an ace stands for 1.
- Only numbers on the cards may be used, each card exactly once."""
_ANSWER = """
# Answer
Reply with one JSON object and nothing else:
{{
  "thoughts": "read the cards, look at the formula so far, work out what is missing",
  "action": "the next token"
}}
"""
_REPLY = '{{"thoughts": "{thought}", "action": "{action}"}}'
_FRAMEWORK = ActionFormat(kind="raw", reading="verl-agent", reply=_REPLY)
_EXACT = ActionFormat(kind="json", reply=_REPLY)
_BRIEF = "{skill}Cards, formula {observation} step {next_step}. Your token?"
_COMPACT = Profile(
    "compact",
    PromptTemplate(first=_BRIEF, turn=_BRIEF, skill_block="Advice: {skill}. "),
    max_steps=5,
    env_kwargs={"obs_mode": "image", "rules": "strict", "hands": "uniform", "feedback": "plain"},
    source="this package: every hand as likely, one slip allowed, a few words a turn, for models of a million weights",
)
_COMPACT_TEXT = Profile(
    "compact-text",
    PromptTemplate(
        first=(
            "Make 12 from both cards with + or *. Each reply is one token of the formula: a number, + or *, and = at "
            "the end.{skill}\n{observation}"
        ),
        turn="{observation}",
        skill_block="\nAdvice: {skill}",
    ),
    max_steps=6,
    style="growing",
    env_kwargs={"obs_mode": "text", "rules": "strict", "hands": "uniform"},
    source="this package: cards in words, one conversation, two slips allowed, for language models on a CPU",
)
_PICTURE = "The picture shows the cards.\n"


def _template(task: str, tokens: str, view: str) -> PromptTemplate:
    text = (
        f"{task}\n\n# Rules\n{_CARDS}\n"
        f"- Each step appends one token. These are the tokens: {tokens}.\n"
        "- `=` ends the game. A correct formula scores 10, anything else 0.\n\n"
        f"# Now\n{view}{{skill}}\n{_ANSWER}"
    )
    return PromptTemplate(first=text, turn=text)


_EZ_TASK = (
    "You play a card game. Write a formula whose value is exactly 12, using the numbers of the two cards shown. "
    "The formula is written one token at a time."
)
_24_TASK = (
    "You play the 24 game. Write a formula whose value is exactly 24, using the numbers of the four cards shown. "
    "The formula is written one token at a time."
)
_EZ_TOKENS = ", ".join(f"`{token}`" for token in ezpoints().tokens)
_24_TOKENS = ", ".join(f"`{token}`" for token in points24().tokens)
_FORMULA = _PICTURE + "Formula so far: {observation}"
_TEXT = "{observation}"

_IMAGE_CLASSIC = {"obs_mode": "image", "rules": "classic", "parsing": "substring", "feedback": "plain"}
_IMAGE_STRICT = {"obs_mode": "image", "rules": "strict"}
_TEXT_STRICT = {"obs_mode": "text", "rules": "strict"}
_SOURCE = "SEED paper, vision setting: verl-agent's card games, picture and formula"
_OWN = "this package: exact parser, refused tokens explained"


def _profiles(task: str, tokens: str, limit: int) -> dict[str, Profile]:
    picture, text = _template(task, tokens, _FORMULA), _template(task, tokens, _TEXT)
    rows = (
        Profile("paper", picture, _FRAMEWORK, limit, 0, invalid_penalty=0.1, env_kwargs=_IMAGE_CLASSIC, source=_SOURCE),
        Profile("strict", picture, _EXACT, limit, 0, env_kwargs=_IMAGE_STRICT, source=_OWN),
        Profile("strict-text", text, _EXACT, limit, 0, env_kwargs=_TEXT_STRICT, source=f"{_OWN}; cards named in words"),
    )
    return {profile.name: profile for profile in rows}


PROFILES: dict[str, Profile] = {
    **_profiles(_EZ_TASK, _EZ_TOKENS, 8),
    "compact": _COMPACT,
    "compact-text": _COMPACT_TEXT,
}
POINTS24_PROFILES: dict[str, Profile] = _profiles(_24_TASK, _24_TOKENS, 20)
