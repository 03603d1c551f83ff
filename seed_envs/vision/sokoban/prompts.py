"""Prompt profiles of Sokoban: words and settings as data.

``paper`` follows the setting of the SEED paper (picture only, 6x6 rooms of the framework generator, 15 turns, lenient
parser) in this package's own words, which describe this package's art.
"""

from __future__ import annotations

from seed_envs.profiles import ActionFormat, Profile, PromptTemplate

_GOAL = "You control the player in a Sokoban room. Your goal: push every box onto a target. All boxes on targets wins."
_RULES = """
# Rules
- Moving into a box pushes it one cell in the same direction. A box cannot be pulled.
- A push works only when the cell behind the box is free: no wall, no second box.
- A box pushed into a corner or along a wall without a target can never be brought back, so plan before you push.
"""
_PICTURE = """
# What the picture shows
- Brick: a wall.
- Plain sand-coloured cell: floor you can walk on.
- Red ring: a target.
- Brown crate with a cross: a box that still has to be pushed. Green crate with a cross: a box on a target.
- Blue figure: you. When you stand on a target, the red ring shows behind you.
"""
_SYMBOLS = """
# Symbols
`#` wall, `_` floor, `O` target, `X` box, `√` box on a target, `P` you, `S` you on a target.
"""
_ANSWER = """Choose one of these actions: {admissible}.
First think step by step inside <think> </think>: where are you, the boxes and the targets, which push helps, and does \
it avoid dead ends? Then give exactly one action inside <action> </action>.
"""
_TAGGED = ActionFormat(
    kind="tags",
    reading="verl-agent",
    lower=True,
    require_think=True,
    reply="<think>{thought}</think><action>{action}</action>",
)
_STRICT = ActionFormat(kind="tags", reply="<think>{thought}</think><action>{action}</action>")
_HISTORY = "Steps taken so far: {step}. The last {history_length} observations and actions:\n{history}\n"


def _template(legend: str, now: str, later: str = "") -> PromptTemplate:
    head = f"{_GOAL}{{skill}}\n{_RULES}{legend}\n# Now\n"
    return PromptTemplate(
        first=f"{head}{now}\n{_ANSWER}",
        turn=f"{head}{later}{now}\n{_ANSWER}",
        admissible_item="{action}",
        admissible_separator=", ",
        history_item="Observation {number}:\n{observation}\nAction {number}: {action}",
    )


_COMPACT = PromptTemplate(
    first="{skill}Sokoban, step {next_step}. Your move?",
    turn="{skill}Sokoban, step {next_step}. Your move?",
    skill_block="Advice: {skill}. ",
)
_CLASSIC = {"levels": "classic", "rules": "classic", "parsing": "substring", "feedback": "plain"}
_IMAGE_NOW = "The picture above shows the room as it is now."
_TEXT_NOW = "The room as it is now:\n{observation}"

PROFILES: dict[str, Profile] = {
    "paper": Profile(
        name="paper",
        template=_template(_PICTURE, _IMAGE_NOW),
        action_format=_TAGGED,
        max_steps=15,
        history=0,
        invalid_penalty=0.1,
        env_kwargs={"obs_mode": "image", **_CLASSIC},
        source="SEED paper, vision setting: verl-agent's Sokoban, picture only",
    ),
    "paper-text": Profile(
        name="paper-text",
        template=_template(_SYMBOLS, _TEXT_NOW, _HISTORY),
        action_format=_TAGGED,
        max_steps=15,
        history=2,
        invalid_penalty=0.1,
        env_kwargs={"obs_mode": "text", "text_format": "tab", **_CLASSIC},
        source="verl-agent's text Sokoban with two earlier steps",
    ),
    "strict": Profile(
        name="strict",
        template=_template(_PICTURE, _IMAGE_NOW + "\n{observation}"),
        action_format=_STRICT,
        history=0,
        env_kwargs={"obs_mode": "image", "levels": "retrograde", "rules": "strict"},
        source="this package: solved levels of 4 to 15 steps, exact parser, splits without overlap",
    ),
    "strict-text": Profile(
        name="strict-text",
        template=_template(_SYMBOLS, _TEXT_NOW, _HISTORY),
        action_format=_STRICT,
        history=2,
        env_kwargs={"obs_mode": "text", "levels": "retrograde", "rules": "strict"},
        source="this package: as strict, with the room as text",
    ),
    "compact": Profile(
        name="compact",
        template=_COMPACT,
        max_steps=11,
        env_kwargs={
            "obs_mode": "image",
            "levels": "retrograde",
            "rules": "strict",
            "feedback": "plain",
            "size": 5,
            "min_steps": 3,
            "max_steps": 8,
            "tile": 16,
        },
        source="this package: rooms of 5x5 cells and 3 to 8 steps, a few words a turn, for models of a million weights",
    ),
}
