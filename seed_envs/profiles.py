"""Profiles: how a language model is put before an environment, as data.

A profile names the environment arguments, the step limit, the history window, the prompt template and how a reply
becomes an action. "paper" and "compact" are rows of a table, not branches of code. The words live with each
environment (``prompts.py``); this module holds only their shape.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from seed_envs.arguments import check_choice
from seed_envs.errors import UnknownOption, UnknownProfile, close_matches
from seed_envs.markers import defuse
from seed_envs.registration import find_row, load_attribute
from seed_envs.replies import ActionFormat, ParsedAction, check_fields
from seed_envs.tools import Tool, tools_of

__all__ = ["ActionFormat", "ParsedAction", "Profile", "PromptTemplate", "TurnContext", "get_profile"]


@dataclass(frozen=True)
class TurnContext:
    """Everything a template may show at one turn.

    Attributes:
        goal: The goal as the environment states it.
        observation: Text of the current observation.
        history: Earlier ``(observation, action)`` pairs, oldest first, already cut to the window.
        step: Number of actions taken so far (0 at the first turn).
        admissible: The admissible actions, or None.
        max_steps: The step limit, or None.
        image: The current image, or None.
    """

    goal: str
    observation: str
    history: tuple[tuple[str, str], ...] = ()
    step: int = 0
    admissible: Sequence[str] | None = None
    max_steps: int | None = None
    image: Any = None


@dataclass(frozen=True)
class PromptTemplate:
    """Words around a turn.

    ``first`` and ``turn`` are format strings over ``goal``, ``observation``, ``history``, ``history_length``,
    ``step``, ``next_step``, ``max_steps``, ``admissible`` and ``skill``. The slot ``{skill}`` is where a hindsight
    skill goes, H(h, s) of the paper: explicit in the template, never searched for. It renders to nothing when there
    is no skill.

    Attributes:
        first: Prompt of the first turn.
        turn: Prompt of every later turn.
        skill_block: Frame of a non-empty skill, with the field ``{skill}``.
        history_item: One pair, with ``{observation}``, ``{action}`` and ``{number}`` (1-based step number).
        history_separator: Between pairs.
        admissible_item: One admissible action, with ``{action}``.
        admissible_separator: Between actions.
        hidden_actions: Admissible actions that are not listed.
    """

    first: str
    turn: str
    skill_block: str = "\n\n## Advice from an earlier attempt\nUse it where it fits this task.\n[{skill}]\n\n"
    history_item: str = "[Observation {number}: '{observation}', Action {number}: '{action}']"
    history_separator: str = "\n"
    admissible_item: str = "'{action}'"
    admissible_separator: str = "\n"
    hidden_actions: Sequence[str] = ()

    def __post_init__(self) -> None:
        for name, known in _TEMPLATE_FIELDS.items():
            check_fields(f"the template's {name!r}", getattr(self, name), known)
        if self.first.count("{skill}") != 1:
            raise ValueError("a template's first prompt has exactly one {skill} slot")
        if self.turn.count("{skill}") > 1:
            raise ValueError("a template's turn prompt has at most one {skill} slot")

    def render(self, turn: TurnContext, skill: str = "") -> str:
        """The prompt of a turn.

        Args:
            turn: What to show.
            skill: A hindsight skill for the slot; empty means none, and then nothing is left in its place.
        """
        template = self.first if turn.step == 0 else self.turn
        fields: dict[str, Any] = {
            "goal": defuse(turn.goal),
            "observation": defuse(turn.observation),
            "step": turn.step,
            "next_step": turn.step + 1,
            "max_steps": turn.max_steps,
            "history_length": len(turn.history),
            "skill": self.skill_block.format(skill=defuse(skill)) if skill else "",
        }
        if "{history}" in template:
            fields["history"] = self._history(turn)
        if "{admissible}" in template:
            fields["admissible"] = self._admissible(turn)
        return template.format(**fields)

    def _history(self, turn: TurnContext) -> str:
        first_number = turn.step - len(turn.history) + 1
        return self.history_separator.join(
            self.history_item.format(
                observation=defuse(observation), action=defuse(action), number=first_number + index
            )
            for index, (observation, action) in enumerate(turn.history)
        )

    def _admissible(self, turn: TurnContext) -> str:
        shown = [action for action in turn.admissible or () if action not in self.hidden_actions]
        return self.admissible_separator.join(self.admissible_item.format(action=defuse(action)) for action in shown)


_TURN_FIELDS = (
    *("goal", "observation", "history", "history_length", "admissible", "skill"),
    *("step", "next_step", "max_steps"),
)
_TEMPLATE_FIELDS: dict[str, tuple[str, ...]] = {
    "first": _TURN_FIELDS,
    "turn": _TURN_FIELDS,
    "skill_block": ("skill",),
    "history_item": ("observation", "action", "number"),
    "admissible_item": ("action",),
}


TAGS = ActionFormat(
    kind="tags",
    lower=True,
    require_think=True,
    refuse_cjk=True,
    reply="<think>{thought}</think>\n<action>{action}</action>",
)
"""Thinking and action each inside tags of their own; the first complete block counts."""

GROWING = PromptTemplate(first="{goal}{skill}\n{observation}", turn="{observation}", skill_block="\n{skill}")
"""One conversation of bare observations, for small models."""


@dataclass(frozen=True)
class Profile:
    """One way to run an environment with a language model.

    Attributes:
        name: Key in the environment's table.
        template: The words.
        action_format: How replies are read.
        max_steps: Step limit (None: the registered one).
        history: Pairs kept in the prompt (None: all; 0: none).
        style: ``"window"``: every turn is one fresh user message. ``"growing"``: one conversation.
        system: System message, or ``""``.
        reward_scale: Factor on the environment's reward.
        invalid_penalty: Subtracted from the reward of every turn that is invalid in the sense of ``penalised``.
        penalised: ``"format"``: replies that could not be read; ``"action"``: actions that the environment refused.
        env_kwargs: Constructor arguments of the environment.
        source: Where the setting comes from.
    """

    name: str
    template: PromptTemplate
    action_format: ActionFormat = field(default_factory=ActionFormat)
    max_steps: int | None = None
    history: int | None = 0
    style: Literal["window", "growing"] = "window"
    system: str = ""
    reward_scale: float = 1.0
    invalid_penalty: float = 0.0
    penalised: Literal["format", "action"] = "format"
    env_kwargs: Mapping[str, Any] = field(default_factory=dict)
    source: str = ""

    def __post_init__(self) -> None:
        check_choice("style", self.style, ("window", "growing"))
        check_choice("penalised", self.penalised, ("format", "action"))

    @classmethod
    def of(cls, value: object) -> Profile:
        """The profile itself, or one from its fields as a dictionary, which is how an environment's spec keeps it.

        Raises:
            TypeError: For anything else.
        """
        if isinstance(value, Profile):
            return value
        if not isinstance(value, Mapping):
            raise TypeError(f"expected the name of a profile or a Profile, got {type(value).__name__}: {value!r}")
        template, action_format = PromptTemplate(**value["template"]), ActionFormat(**value["action_format"])
        return cls(**{**value, "template": template, "action_format": action_format})


def shows_pictures(profile: Profile) -> bool:
    """Whether an environment shows pictures under a profile."""
    return "image" in str(profile.env_kwargs.get("obs_mode", "text"))


_SHOWN = "{observation}\n{admissible}"
_TOOLS_SYSTEM = (
    "Solve the task by calling the tools: exactly one call per turn. Actions that are possible now are listed with a "
    "star where they are known."
)


def tools_profile(base: Profile, tools: Sequence[Tool]) -> Profile:
    """A profile in which the model acts by tool calls: the setting of ``base``, in words that fit any environment.

    The schemas go beside the system message (:func:`seed_envs.chat.offered_tools`), so that the model's own chat
    template, or the endpoint, puts them into words.
    """
    template = PromptTemplate(
        first=f"{{goal}}{{skill}}\n\n{_SHOWN}",
        turn=f"{{goal}}{{skill}}\n\n{{history}}\n\nNow: {_SHOWN}",
        history_item="Observation {number}: {observation}\nAction {number}: {action}",
        admissible_item="* {action}",
        hidden_actions=base.template.hidden_actions,
    )
    form = ActionFormat("tools", lower=base.action_format.lower, tools=tools)
    source = f"this package: the numbers of {base.name!r}, actions as tool calls"
    return replace(
        base,
        name="tools",
        template=template,
        action_format=form,
        style="window",
        system=_TOOLS_SYSTEM,
        source=source,
    )


def check_in_text(profile: Profile, taker: str) -> None:
    """Make sure that a model needs nothing but texts.

    Args:
        profile: A profile.
        taker: Who hands on texts alone.

    Raises:
        UnknownOption: When it offers tools, which the model would never see.
    """
    if profile.action_format.tools:
        raise UnknownOption(
            f"{taker} hands on texts, and profile {profile.name!r} offers tools; choose another profile"
        )


def profile_table(env_id: str) -> Mapping[str, Profile]:
    """All profiles of a registered environment by name; ``tools`` follows from its first one in text.

    Raises:
        UnknownEnvironment: For an id that is not in the table.
    """
    table: Mapping[str, Profile] = load_attribute(find_row(env_id).profiles)
    if "tools" in table:
        return table
    base = next((profile for profile in table.values() if not shows_pictures(profile)), next(iter(table.values())))
    return {**table, "tools": tools_profile(base, tools_of(env_id))}


def get_profile(env_id: str, name: str) -> Profile:
    """Look a profile up.

    Raises:
        UnknownEnvironment: For an id that is not in the table.
        UnknownProfile: With the names there are.
    """
    table = profile_table(env_id)
    if name not in table:
        raise UnknownProfile(
            f"profile {name!r} is unknown for {env_id}; it has {sorted(table)}.{close_matches(name, table)}"
        )
    return table[name]
