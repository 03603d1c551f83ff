"""How the policy is asked to analyse a finished episode, as data.

Three ways: ``json`` (one fresh message that contains the whole episode; for language models, after the paper's
appendix, in our own words), ``brief`` (the same in few words and without pictures) and ``turn`` (one more turn of the
same conversation), both for tiny word-level models. No rewards are shown, only the outcome. Nothing here knows a
tokenizer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Literal

from seed_envs.markers import defuse
from seed_envs.plugins import OpenTable
from seed_envs.trajectory import Step, Trajectory
from seed_trainer.skills.parsing import SKILL_FIELD, HindsightSkill, parse_json_skill, parse_plain_skill

Message = dict[str, Any]
Outcome = Literal["success", "failure", "unknown"]
OMITTED = "(steps {first} to {last} omitted for length)"


@dataclass(frozen=True)
class Analyzer:
    """One way of asking for a hindsight skill.

    Attributes:
        name: Name used in configurations.
        style: ``document``: a fresh user message holding the whole episode; ``turn``: one more user message at the end
            of the episode's own conversation (needs a profile of style ``growing``).
        request: Message text; for ``document`` with fields {focus}, {skeleton}, {episode}; for ``turn`` with {outcome}.
        focus: What the skill should hold, by outcome (``document`` only).
        skeleton: Shape of the answer (``document`` only).
        answer: Format of a training answer around {skill} (and {summary}, {steps}).
        parse: Reads an answer.
        pictures: Whether the episode's pictures are shown (``document`` only).
    """

    name: str
    style: Literal["document", "turn"]
    request: str
    answer: str
    parse: Callable[[str, int], HindsightSkill]
    focus: dict[str, str] | None = None
    skeleton: str = ""
    pictures: bool = True


_DOCUMENT = """\
Below is one complete attempt of an agent at an interactive task, together with its outcome. Study it and answer with \
one valid JSON object and nothing else.

Fields to fill in:
1. "episode_summary": what happened, in one or two sentences.
2. "episode_skill": {focus}

Rules:
- Write the skill as advice to the agent for its next attempt, short and directly usable.
- Do not retell the episode inside the skill.
- Add no other top-level fields.

Shape of the answer:
{skeleton}

{episode}"""

_FOCUS = {
    "success": "the workflow that led to success: the deciding rule and the order of actions worth repeating.",
    "failure": "the central mistake to avoid, the signs by which it can be noticed early, and what to do instead.",
    "unknown": "the workflow worth repeating and the mistake to avoid, as far as the attempt shows them.",
}

_JSON = Analyzer(
    name="json",
    style="document",
    request=_DOCUMENT,
    focus=_FOCUS,
    skeleton='{"episode_summary": "...", "episode_skill": "..."}',
    answer='{{"episode_summary": {summary}, "episode_skill": {skill}}}',
    parse=parse_json_skill,
)
_JSON_SKILL_ONLY = replace(
    _JSON,
    name="json_skill_only",
    request=_DOCUMENT.replace(
        '1. "episode_summary": what happened, in one or two sentences.\n2. "episode_skill"', '1. "episode_skill"'
    ),
    skeleton='{"episode_skill": "..."}',
    answer='{{"episode_skill": {skill}}}',
)
_JSON_STEPS = replace(
    _JSON,
    name="json_steps",
    request=_DOCUMENT.replace(
        "\n\nRules:",
        '\n3. "step_skills": advice for the single most critical step, as {{"<step number>": "<advice>"}}, '
        "or {{}} if no step stands out.\n\nRules:",
    ),
    skeleton='{"episode_summary": "...", "episode_skill": "...", "step_skills": {"3": "..."}}',
    answer='{{"episode_summary": {summary}, "episode_skill": {skill}, "step_skills": {steps}}}',
)
_BRIEF = Analyzer(
    name="brief",
    style="document",
    request="{episode}{focus}",
    focus=dict.fromkeys(_FOCUS, "Skill?"),
    answer="{skill}",
    parse=parse_plain_skill,
    pictures=False,
)
_TURN = Analyzer(name="turn", style="turn", request="{outcome}", answer="{skill}", parse=parse_plain_skill)
_ANALYZERS = {analyzer.name: analyzer for analyzer in (_JSON, _JSON_SKILL_ONLY, _JSON_STEPS, _BRIEF, _TURN)}
ANALYZERS: OpenTable[Analyzer] = OpenTable(
    "skill_analyzer", "analyzers", Analyzer, _ANALYZERS, ValueError, also=["auto"]
)
"""All analyzers by name. ``auto`` in a configuration means ``turn`` for growing profiles and ``json`` otherwise. Yours:
``module:attribute``, or an entry point of ``seed_envs.analyzers``."""


def get_analyzer(name: str, style: str) -> Analyzer:
    """Return the analyzer of a configuration.

    Args:
        name: A name that :data:`ANALYZERS` finds, or ``auto``.
        style: Style of the profile, ``growing`` or ``window``.

    Raises:
        ValueError: For an unknown name, or ``turn`` with a profile that is no growing conversation.
    """
    if name == "auto":
        name = "turn" if style == "growing" else "json"
    analyzer = ANALYZERS.find(name)
    if analyzer.style == "turn" and style != "growing":
        raise ValueError(f"skill_analyzer='turn' needs a profile of style 'growing', this profile is {style!r}")
    return analyzer


def outcome_of(trajectory: Trajectory) -> Outcome:
    """Return the outcome label of an episode; ``unknown`` when a fault of the machinery ended it."""
    if trajectory.success:
        return "success"
    return "failure" if trajectory.stop_reason.scored else "unknown"


def opposite(outcome: Outcome) -> Outcome:
    """Return the wrong label, for the control ``wrong_outcome``."""
    return {"success": "failure", "failure": "success", "unknown": "unknown"}[outcome]  # type: ignore[return-value]


def shown_picture(step: Step) -> Any:
    """Return the picture that a turn's own message showed, or None; an episode read from a file has no other trace."""
    content = step.messages[-1]["content"] if step.messages else ""
    parts = content if isinstance(content, list) else []
    return next((part["image"] for part in parts if part["type"] == "image" and "image" in part), None)


def _step_parts(number: int, step: Step, pictures: bool) -> list[dict[str, Any]]:
    image = shown_picture(step) if pictures else None
    seen = defuse(step.observation)
    validity = "yes" if step.format_valid and step.action_valid else f"no ({step.invalid_reason})"
    head = f"\nStep {number}\nObservation: {seen if image is None else ''}"
    tail = f"\nResponse: {defuse(step.reply)}\nAction valid: {validity}\n"
    if image is None:
        return [{"type": "text", "text": head + tail}]
    return [{"type": "text", "text": head}, {"type": "image", "image": image}, {"type": "text", "text": tail}]


def document_messages(
    trajectory: Trajectory,
    analyzer: Analyzer,
    outcome: Outcome,
    fits: Callable[[Sequence[Message]], bool] | None = None,
) -> list[Message]:
    """Return the analysis request of a ``document`` analyzer.

    Args:
        trajectory: The finished episode.
        analyzer: The way of asking.
        outcome: Label told to the analyzer.
        fits: Says whether a request fits the context. While it does not, steps are left out of the middle, marked as
            omitted; the task, the outcome and the last steps always stay.
    """
    steps = [_step_parts(index, step, analyzer.pictures) for index, step in enumerate(trajectory.steps)]
    if analyzer.focus is None:
        raise ValueError(f"analyzer {analyzer.name!r} is not of style 'document'")
    task = defuse(trajectory.goal) or "not available"
    head = analyzer.request.format(
        focus=analyzer.focus[outcome], skeleton=analyzer.skeleton, episode=f"Task: {task}\nOutcome: {outcome}\n"
    )
    omitted = 0
    while True:
        keep_first = (len(steps) - omitted) // 2
        shown = list(steps)
        if omitted:
            note = OMITTED.format(first=keep_first, last=keep_first + omitted - 1)
            shown = [*steps[:keep_first], [{"type": "text", "text": f"\n{note}\n"}], *steps[keep_first + omitted :]]
        messages = [{"role": "user", "content": _join([{"type": "text", "text": head}, *chain(*shown)])}]
        if fits is None or omitted >= len(steps) - 1 or fits(messages):
            return messages
        omitted += max(1, (len(steps) - omitted) // 8)


def _join(parts: list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    """Merge neighbouring text parts; a request without images is a plain string."""
    merged: list[dict[str, Any]] = []
    for part in parts:
        if merged and part["type"] == merged[-1]["type"] == "text":
            merged[-1] = {"type": "text", "text": merged[-1]["text"] + part["text"]}
        else:
            merged.append(part)
    return merged[0]["text"] if len(merged) == 1 and merged[0]["type"] == "text" else merged


def turn_message(analyzer: Analyzer, outcome: Outcome) -> Message:
    """Return the extra user message of a ``turn`` analyzer."""
    return {"role": "user", "content": analyzer.request.format(outcome=outcome)}


def training_answer(analyzer: Analyzer, skill: HindsightSkill, summary: str) -> str:
    """Return the answer a stage-1 example should train, in the analyzer's own format.

    Args:
        analyzer: The way of asking.
        skill: A valid skill.
        summary: What happened, for formats that ask for it.
    """
    if analyzer.parse is parse_plain_skill:
        return analyzer.answer.format(skill=skill.text)
    steps = {str(step): text for step, text in sorted(skill.step_skills.items())}
    parts = {"skill": skill.text, "summary": summary, "steps": steps}
    return analyzer.answer.format(**{name: json.dumps(part, ensure_ascii=False) for name, part in parts.items()})


__all__ = [
    "ANALYZERS",
    "SKILL_FIELD",
    "Analyzer",
    "document_messages",
    "get_analyzer",
    "opposite",
    "outcome_of",
    "training_answer",
    "turn_message",
]
