"""From an analyzer's answer to a skill, or to the named reason why it is none.

Reads JSON that models really write (fenced, with trailing commas, with line breaks in strings, with text around it)
without ever evaluating it as code. It does not judge whether a skill is any good.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

SKILL_FIELD = "episode_skill"
SUMMARY_FIELD = "episode_summary"
STEP_SKILLS_FIELD = "step_skills"

REASONS: dict[str, str] = {
    "not_json": "no JSON object could be read from the answer",
    "no_field": f"the JSON object has no field {SKILL_FIELD!r}",
    "not_a_string": f"the value of {SKILL_FIELD!r} is not a string",
    "blank": "the skill is empty",
    "too_short": "the skill has too few words",
    "too_long": "the skill exceeds the token cap",
    "truncated": "the answer reached the token limit before its end",
    "loop": "the skill repeats itself",
    "unrelated": "the skill names no thing and no command of its episode",
    "overflow": "the teacher prompt with this skill exceeds the model's context",
    "no_stale_skill": "no skill of this task is old enough yet",
    "no_partner": "no other episode could lend its skill",
    "not_written": "the episode ended by a fault and was not analysed",
}
"""Every reason why a skill is invalid, with its meaning; metrics ``skill/invalid/<reason>`` use these names."""

MAX_STEP_SKILLS = 1
"""Step skills that are kept of one answer."""

_MAX_ANSWER = 200_000
_MAX_SCANNED = 2_000_000
_STRING_OR_BRACE = re.compile(r'"(?:[^"\\]|\\.?)*(?:"|\Z)|[{}]', re.DOTALL)
_TRAILING_COMMA = re.compile(r",(\s*[}\]])")


@dataclass
class HindsightSkill:
    """One skill and what is known about it.

    Attributes:
        text: The skill; empty when there is none.
        reason: Empty when valid, else a key of :data:`REASONS`.
        tokens: Length of the analyzer's answer in tokens, 0 if it was not written by a model.
        prompt_ids: The request a model was given.
        answer_ids: What it answered.
        step_skills: Optional skills of single steps, keyed by 0-based step.
        summary: What happened, where the answer says so; a training target of stage 1 and nothing else.
        origin: Where it comes from: ``own`` or the name of a control, with details.
    """

    text: str = ""
    reason: str = ""
    tokens: int = 0
    prompt_ids: list[int] = field(default_factory=list)
    answer_ids: list[int] = field(default_factory=list)
    step_skills: dict[int, str] = field(default_factory=dict)
    origin: str = "own"
    summary: str = ""

    @property
    def valid(self) -> bool:
        """Whether the skill may teach."""
        return not self.reason


def _fenced_blocks(text: str) -> list[str]:
    """Return the contents of closed ``` blocks, without the language name after the fence."""
    blocks = text.split("```")[1:-1:2]
    return [re.sub(r"\A[A-Za-z0-9_-]{0,20}\s", "", block).strip() for block in blocks]


def _balanced_objects(text: str) -> Iterator[str]:
    """Yield every balanced ``{...}`` of the text, outermost first, ignoring braces inside strings.

    Gives up after a fixed number of characters, so that thousands of open braces cost no time.
    """
    start, scanned = text.find("{"), 0
    while start >= 0 and scanned < _MAX_SCANNED:
        depth, end = 0, len(text)
        for token in _STRING_OR_BRACE.finditer(text, start):
            depth += {"{": 1, "}": -1}.get(token[0], 0)
            if not depth:
                end = token.end()
                yield text[start:end]
                break
        scanned += end - start
        start = text.find("{", start + 1 if depth else end)


def _load(text: str) -> Any:
    """Parse JSON, allowing raw line breaks in strings, then once more without trailing commas; None on failure."""
    for candidate in (text, _TRAILING_COMMA.sub(r"\1", text)):
        try:
            return json.loads(candidate, strict=False)
        except (json.JSONDecodeError, RecursionError):
            continue
    return None


def _literal(text: str) -> Any:
    """Parse a Python-style literal (single quotes); never evaluates names or calls."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None


def _records(parse: Callable[[str], Any], texts: Iterable[str]) -> list[dict[str, Any]]:
    """Return what of the texts is an object."""
    return [value for value in map(parse, texts) if isinstance(value, dict)]


def extract_object(answer: str) -> dict[str, Any] | None:
    """Return the JSON object of an answer, preferring one that holds the skill field.

    Fenced blocks are tried first, then the whole text, then every balanced object, and last a literal parse of the
    balanced objects.
    """
    answer = answer[:_MAX_ANSWER]
    found = _records(_load, [*_fenced_blocks(answer), answer])
    if not any(SKILL_FIELD in record for record in found):
        pieces = list(islice(_balanced_objects(answer), 100))
        found += _records(_load, pieces)
        found = found or _records(_literal, pieces)
    return next((record for record in found if SKILL_FIELD in record), found[-1] if found else None)


def repeats_itself(text: str, longest: int = 12, times: int = 4) -> bool:
    """Return whether some phrase of up to ``longest`` words occurs ``times`` times in a row."""
    words = text.split()
    for size in range(1, longest + 1):
        run = 0
        for index in range(size, len(words)):
            run = run + 1 if words[index] == words[index - size] else 0
            if run >= size * (times - 1):
                return True
    return False


def check_skill(text: str, min_words: int = 1) -> str:
    """Return why a skill text is unusable, or an empty string."""
    words = text.split()
    if not words:
        return "blank"
    if len(words) < min_words:
        return "too_short"
    return "loop" if repeats_itself(text) else ""


def parse_json_skill(answer: str, min_words: int) -> HindsightSkill:
    """Read a JSON answer.

    Args:
        answer: The analyzer's text.
        min_words: Fewer words make the skill invalid (5 for external annotators, 1 for the own policy).

    Returns:
        A skill whose ``reason`` says what is wrong, if anything.
    """
    record = extract_object(answer)
    if record is None:
        return HindsightSkill(reason="not_json")
    if SKILL_FIELD not in record:
        return HindsightSkill(reason="no_field")
    value = record[SKILL_FIELD]
    if not isinstance(value, str):
        return HindsightSkill(reason="not_a_string")
    summary = record.get(SUMMARY_FIELD)
    return HindsightSkill(
        text=_writable(value),
        reason=check_skill(value, min_words),
        step_skills=_step_skills(record.get(STEP_SKILLS_FIELD)),
        summary=_writable(summary) if isinstance(summary, str) else "",
    )


def _writable(text: str) -> str:
    """Return a text without the halves of characters that JSON can express and no file can hold."""
    return text.encode("utf-8", "replace").decode().strip()


def _step_skills(value: Any) -> dict[int, str]:
    """Return the first usable step skills of an answer by 0-based step."""
    steps = value.items() if isinstance(value, dict) else ()
    usable = {
        int(str(key)): _writable(text)
        for key, text in steps
        if re.fullmatch(r"[0-9]{1,4}", str(key)) and isinstance(text, str) and not check_skill(text)
    }
    return dict(list(usable.items())[:MAX_STEP_SKILLS])


def parse_plain_skill(answer: str, min_words: int) -> HindsightSkill:
    """Read an answer that is the skill itself."""
    return HindsightSkill(text=answer.strip(), reason=check_skill(answer, min_words))
