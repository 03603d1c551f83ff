"""How a reply becomes an action: ``ActionFormat`` and its readers.

Two readings exist of most kinds. ``"tolerant"`` takes the block that a reader of the reply would take;
``"verl-agent"`` does to the letter what the projections of langfengQ/verl-agent do, odd slices included, so that a
number measured with a ``paper`` profile means what it means there (``python -m benchmarks.parity projections``).

Replies are untrusted and long: readers take time linear in the length, so no pattern here may backtrack.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from string import Formatter
from typing import Literal, NamedTuple

from seed_envs.arguments import check_choice
from seed_envs.errors import close_matches
from seed_envs.tool_calls import read_call, write_call
from seed_envs.tools import Tool


class ParsedAction(NamedTuple):
    """A reply, read: what goes to the environment, whether the reply has the right format, and why not."""

    action: str
    valid: bool
    reason: str = ""


class Block(NamedTuple):
    """A block ``<tag>content</tag>`` of a reply.

    Attributes:
        tag: Which of the tags; ``""`` when there is no complete block.
        content: What stands between, stripped.
        fault: Why the reply does not follow the format although there may be a block, or ``""``.
    """

    tag: str
    content: str
    fault: str


@dataclass(frozen=True)
class ActionFormat:
    """How a reply becomes an action.

    Attributes:
        kind: ``"raw"`` sends the reply as it is; ``"tags"`` takes the text of an ``<action>`` block; ``"blocks"``
            sends the first block of one of several tags, the tags included (:func:`read_blocks`); ``"json"`` takes the
            string under ``json_key`` of one JSON object; ``"tools"`` reads a call of one of ``tools``.
        tag: Tag name for ``"tags"``.
        tags: Tag names for ``"blocks"``, in order of precedence.
        which: Which block counts when there are several (tolerant ``"tags"``).
        reading: ``"tolerant"``, or ``"verl-agent"`` for ``"raw"`` (nothing is stripped) and ``"tags"`` (the slice
            between the first opening and the first closing tag of the lower-cased reply, wherever they stand).
        lower: Lower-case the action.
        require_think: A reply without ``<think>...</think>`` is invalid (its action is sent all the same).
        refuse_cjk: A reply with Chinese characters is invalid (its action is sent all the same).
        fallback_tail: Characters from the end of the reply that are sent when nothing can be read (0: send "").
        json_key: Key for ``"json"``.
        tools: What may be called, for ``"tools"``; as dictionaries when the format is made again from a spec.
        max_length: Longer replies are not looked at.
        reply: Format string of a well-formed reply with ``{action}`` and ``{thought}`` (for oracle and random agents).
    """

    kind: Literal["raw", "tags", "blocks", "json", "tools"] = "raw"
    tag: str = "action"
    tags: Sequence[str] = ("search", "answer")
    which: Literal["first", "last"] = "first"
    reading: Literal["tolerant", "verl-agent"] = "tolerant"
    lower: bool = False
    require_think: bool = False
    refuse_cjk: bool = False
    fallback_tail: int = 0
    json_key: str = "action"
    max_length: int = 1_000_000
    reply: str = "{action}"
    tools: Sequence[Tool] = ()

    def __post_init__(self) -> None:
        check_choice("kind", self.kind, _READERS)
        check_choice("which", self.which, ("first", "last"))
        check_choice("reading", self.reading, ("tolerant", "verl-agent"))
        check_fields("the format's 'reply'", self.reply, ("action", "thought"))
        tools = tuple(tool if isinstance(tool, Tool) else Tool(**tool) for tool in self.tools)
        object.__setattr__(self, "tools", tools)

    def parse(self, reply: str) -> ParsedAction:
        """Read a reply; never raises."""
        if len(reply) > self.max_length:
            return ParsedAction("", False, f"the reply has {len(reply)} characters, at most {self.max_length} are read")
        action, fault = _READERS[self.kind](self, reply)
        if action is None:
            return ParsedAction(self._tail(reply), False, fault)
        action = self._finish(action)
        if not fault and self.require_think and not self._has_think(reply):
            fault = "the reply has no <think>...</think> block"
        if not fault and self.refuse_cjk and _CJK.search(reply):
            fault = "the reply contains Chinese characters"
        return ParsedAction(action, not fault, fault)

    def format(self, action: str, thought: str = "") -> str:
        """A well-formed reply that carries ``action``; :meth:`parse` reads it back."""
        if self.kind == "json":
            action, thought = (json.dumps(text, ensure_ascii=False)[1:-1] for text in (action, thought))
        if self.kind == "tools":
            action = write_call(action, self.tools)
        return self.reply.format(action=action, thought=thought)

    @property
    def _literal(self) -> bool:
        return self.reading == "verl-agent"

    def _tail(self, reply: str) -> str:
        """What is sent of a reply in which no action was found."""
        if not self.fallback_tail:
            return ""
        return reply.lower()[-self.fallback_tail :] if self._literal else self._finish(reply[-self.fallback_tail :])

    def _finish(self, action: str) -> str:
        if self._literal:
            return action
        action = action.strip()
        return action.lower() if self.lower else action

    def _has_think(self, reply: str) -> bool:
        opened, closed = reply.find("<think>"), reply.rfind("</think>")
        return min(opened, closed) >= 0 and (self._literal or opened < closed)


_CJK = re.compile("[\u4e00-\u9fff]")
_FENCE = "```"

#: What a reader found: the action, or None, and what is wrong with the reply, or "".
_Found = tuple[str | None, str]


def _read_tags(form: ActionFormat, reply: str) -> _Found:
    opening, closing = f"<{form.tag}>", f"</{form.tag}>"
    missing = f"no action found in the reply (expected {opening}...{closing})"
    if form.reading == "verl-agent":
        lowered = reply.lower()
        start, end = lowered.find(opening), lowered.find(closing)
        return (None, missing) if min(start, end) < 0 else (lowered[start + len(opening) : end].strip(), "")
    start = reply.find(opening) if form.which == "first" else reply.rfind(opening)
    end = reply.find(closing, start + len(opening)) if start >= 0 else -1
    return (None, missing) if end < 0 else (reply[start + len(opening) : end], "")


def _read_blocks(form: ActionFormat, reply: str) -> _Found:
    tag, content, fault = read_blocks(reply, form.tags)
    return (f"<{tag}>{content}</{tag}>" if tag else ""), fault


def _read_json(form: ActionFormat, reply: str) -> _Found:
    missing = f'no action found in the reply (expected {{"{form.json_key}": ...}})'
    text = reply.strip()
    if text.startswith(_FENCE) and text.endswith(_FENCE) and len(text) >= 2 * len(_FENCE):
        text = text[len(_FENCE) : -len(_FENCE)].removeprefix("json")
    try:
        record = json.loads(text.strip())
    except (ValueError, RecursionError):
        return None, missing
    value = record.get(form.json_key) if isinstance(record, dict) else None
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        return None, missing
    return str(value), ""


def _read_raw(form: ActionFormat, reply: str) -> _Found:
    return reply, ""


def _read_tools(form: ActionFormat, reply: str) -> _Found:
    return read_call(reply, form.tools)


_READERS = {
    "raw": _read_raw,
    "tags": _read_tags,
    "blocks": _read_blocks,
    "json": _read_json,
    "tools": _read_tools,
}


def find_block(text: str, tag: str) -> str | None:
    """The content of the first complete block ``<tag>...</tag>``, stripped, tags in any case; None if there is none."""
    opened = _tag(tag).search(text)
    closed = _tag(f"/{tag}").search(text, opened.end()) if opened else None
    return text[opened.end() : closed.start()].strip() if opened and closed else None


def cut_reply(reply: str, tags: Sequence[str]) -> str:
    """The reply up to the first closing tag (in lower case) of the first of ``tags`` that is closed, else all of it."""
    for tag in tags:
        head, found, _ = reply.partition(f"</{tag}>")
        if found:
            return head + found
    return reply


def read_blocks(reply: str, tags: Sequence[str]) -> Block:
    """Reads a reply whose action is a block of one of several tags, as verl-agent's search projection does.

    The block is looked for in the reply as far as :func:`cut_reply` leaves it; opening tags are counted in all of it.

    Args:
        reply: What the model wrote.
        tags: Tag names in order of precedence.

    Returns:
        The block; its fault names a missing block, a second opening tag, or tags of two kinds.
    """
    text = cut_reply(reply, tags)
    blocks = ((tag, find_block(text, tag)) for tag in tags)
    tag, content = next(((tag, found) for tag, found in blocks if found is not None), ("", ""))
    opened = {tag: count for tag in tags if (count := len(_tag(tag).findall(reply)))}
    if not tag:
        fault = f"no {' or '.join(f'<{name}>...</{name}>' for name in tags)} block"
    elif len(opened) > 1:
        fault = f"the reply has {' and '.join(f'<{name}>' for name in opened)}; expected one kind"
    else:
        fault = "" if opened[tag] == 1 else f"more than one <{tag}>"
    return Block(tag, content, fault)


def _tag(name: str) -> re.Pattern[str]:
    return re.compile(f"<{re.escape(name)}>", re.IGNORECASE)


def check_fields(what: str, text: str, known: Sequence[str]) -> None:
    """Raises ValueError unless a format string uses known fields only, and those as they are."""
    try:
        used = [field for _, field, _, _ in Formatter().parse(text) if field is not None]
    except ValueError as error:
        raise ValueError(f"{what} is no format string ({error}); a brace of its own is written twice") from error
    for name in used:
        if name not in known:
            raise ValueError(f"{what} uses the field {name!r}; there are {list(known)}.{close_matches(name, known)}")
