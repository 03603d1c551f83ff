"""Profiles: how a language model is put before an environment, as data.

A profile names the environment arguments, the step limit, the history window, the prompt template and how a reply
becomes an action. "paper" and "compact" are rows of a table, not branches of code. The words live with each
environment (``prompts.py``); this module holds only their shape.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from string import Formatter
from typing import Any, Literal, NamedTuple

from seed_envs.errors import UnknownProfile, close_matches
from seed_envs.markers import defuse
from seed_envs.registration import find_row, load_attribute


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
            _check_fields(f"the template's {name!r}", getattr(self, name), known)
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


def _check_fields(what: str, text: str, known: Sequence[str]) -> None:
    """Raises ValueError unless a format string uses known fields only, and those as they are."""
    try:
        used = [field for _, field, _, _ in Formatter().parse(text) if field is not None]
    except ValueError as error:
        raise ValueError(f"{what} is no format string ({error}); a brace of its own is written twice") from error
    for field_name in used:
        if field_name not in known:
            raise ValueError(
                f"{what} uses the field {field_name!r}; there are {list(known)}.{close_matches(field_name, known)}"
            )


def _check_choice(what: str, value: object, known: Collection[str]) -> None:
    if value not in known:
        raise ValueError(f"{what}={value!r}; expected one of {list(known)}.{close_matches(value, known)}")


class ParsedAction(NamedTuple):
    """A reply, read: what goes to the environment, whether it counts as valid, and why not."""

    action: str
    valid: bool
    reason: str = ""


@dataclass(frozen=True)
class ActionFormat:
    """How a reply becomes an action.

    Attributes:
        kind: ``"raw"`` sends the reply as it is (stripped); ``"tags"`` takes the text of an ``<action>`` block;
            ``"json"`` takes the string under ``json_key`` of one JSON object.
        tag: Tag name for ``"tags"``.
        which: Which block counts when there are several.
        lower: Lower-case the action.
        require_think: A reply without ``<think>...</think>`` is invalid (its action is sent all the same).
        refuse_cjk: A reply with Chinese characters is invalid (its action is sent all the same).
        fallback_tail: Characters from the end of the reply that are sent when nothing can be read (0: send "").
        json_key: Key for ``"json"``.
        max_length: Longer replies are not looked at.
        reply: Format string of a well-formed reply with ``{action}`` and ``{thought}`` (for oracle and random agents).
    """

    kind: Literal["raw", "tags", "json"] = "raw"
    tag: str = "action"
    which: Literal["first", "last"] = "first"
    lower: bool = False
    require_think: bool = False
    refuse_cjk: bool = False
    fallback_tail: int = 0
    json_key: str = "action"
    max_length: int = 100_000
    reply: str = "{action}"

    def __post_init__(self) -> None:
        _check_choice("kind", self.kind, _READERS)
        _check_choice("which", self.which, ("first", "last"))
        _check_fields("the format's 'reply'", self.reply, ("action", "thought"))

    def parse(self, reply: str) -> ParsedAction:
        """Read a reply; never raises."""
        if len(reply) > self.max_length:
            return ParsedAction("", False, f"the reply has {len(reply)} characters, at most {self.max_length} are read")
        action = _READERS[self.kind](self, reply)
        if action is None:
            tail = reply[-self.fallback_tail :] if self.fallback_tail else ""
            return ParsedAction(
                self._finish(tail), False, f"no action found in the reply (expected {self._expected()})"
            )
        action = self._finish(action)
        if self.require_think and not _has_think(reply):
            return ParsedAction(action, False, "the reply has no <think>...</think> block")
        if self.refuse_cjk and _CJK.search(reply):
            return ParsedAction(action, False, "the reply contains Chinese characters")
        return ParsedAction(action, True)

    def format(self, action: str, thought: str = "") -> str:
        """A well-formed reply that carries ``action``; :meth:`parse` reads it back."""
        if self.kind == "json":
            action, thought = (json.dumps(text, ensure_ascii=False)[1:-1] for text in (action, thought))
        return self.reply.format(action=action, thought=thought)

    def _finish(self, action: str) -> str:
        action = action.strip()
        return action.lower() if self.lower else action

    def _expected(self) -> str:
        return {"raw": "text", "tags": f"<{self.tag}>...</{self.tag}>", "json": f'{{"{self.json_key}": ...}}'}[
            self.kind
        ]


_CJK = re.compile("[\u4e00-\u9fff]")
_FENCE = "```"


# Replies are untrusted and long: readers take time linear in the length, so no pattern here may backtrack.


def _has_think(reply: str) -> bool:
    opened = reply.find("<think>")
    return opened >= 0 and reply.find("</think>", opened) >= 0


def _read_tags(form: ActionFormat, reply: str) -> str | None:
    opening, closing = f"<{form.tag}>", f"</{form.tag}>"
    start = reply.find(opening) if form.which == "first" else reply.rfind(opening)
    end = reply.find(closing, start + len(opening)) if start >= 0 else -1
    return reply[start + len(opening) : end] if end >= 0 else None


def _read_json(form: ActionFormat, reply: str) -> str | None:
    text = reply.strip()
    if text.startswith(_FENCE) and text.endswith(_FENCE) and len(text) >= 2 * len(_FENCE):
        text = text[len(_FENCE) : -len(_FENCE)].removeprefix("json")
    try:
        record = json.loads(text.strip())
    except (ValueError, RecursionError):
        return None
    value = record.get(form.json_key) if isinstance(record, dict) else None
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        return None
    return str(value)


def _read_raw(form: ActionFormat, reply: str) -> str | None:
    return reply


_READERS = {"raw": _read_raw, "tags": _read_tags, "json": _read_json}


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
        invalid_penalty: Subtracted from the reward of every invalid action.
        env_kwargs: Constructor arguments of the environment.
        source: Where the setting comes from.
    """

    name: str
    template: PromptTemplate
    action_format: ActionFormat = ActionFormat()
    max_steps: int | None = None
    history: int | None = 0
    style: Literal["window", "growing"] = "window"
    system: str = ""
    reward_scale: float = 1.0
    invalid_penalty: float = 0.0
    env_kwargs: Mapping[str, Any] = field(default_factory=dict)
    source: str = ""

    def __post_init__(self) -> None:
        _check_choice("style", self.style, ("window", "growing"))

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


def get_profile(env_id: str, name: str) -> Profile:
    """Look a profile up.

    Raises:
        UnknownEnvironment: For an id that is not in the table.
        UnknownProfile: With the names there are.
    """
    table: Mapping[str, Profile] = load_attribute(find_row(env_id).profiles)
    if name not in table:
        raise UnknownProfile(
            f"profile {name!r} is unknown for {env_id}; it has {sorted(table)}.{close_matches(name, table)}"
        )
    return table[name]
