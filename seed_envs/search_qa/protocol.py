"""Wire formats: how a reply becomes a search or an answer, and how passages are shown. All of it is data plus parsing.

Two dialects: `search-r1` (Search-R1's rules, cut first, then the first block of either kind) and `verl-agent` (search
before answer, tags in any case). A dialect never looks into passages; scoring lives in `answers` and `scoring`.

The fixed strings are those of PeterGriffinJin/Search-R1 (Apache-2.0) and langfengQ/verl-agent (Apache-2.0): models were
trained on them, so they are interface facts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from seed_envs.arguments import check_choice
from seed_envs.replies import cut_reply, find_block, read_blocks
from seed_envs.search_qa.retrievers.base import Hit

Kind = Literal["search", "answer", "invalid"]

BLOCKS = ("search", "answer")
"""What a reply can ask for, in order of precedence."""

MAX_QUERY_LENGTH = 4096
CUT_MARK = " [cut]"
"""Stands behind a passage of which only the beginning is shown."""

INVALID_TEXT = (
    "\nMy previous action is invalid. If I want to search, I should put the query between <search> and </search>. "
    "If I want to give the final answer, I should put the answer between <answer> and </answer>. Let me try again.\n"
)


class ParsedReply(NamedTuple):
    """A reply, read.

    Attributes:
        kind: What the reply asks for.
        content: Query or answer, stripped.
        valid: Whether the reply follows the format (a dialect may execute a block of an invalid reply).
        reason: Why not.
        text: The reply as it enters the transcript (after cutting).
    """

    kind: Kind
    content: str
    valid: bool
    reason: str
    text: str


def _first_block(text: str) -> tuple[str, str] | None:
    """Kind and content of the first search or answer block, in linear time."""
    position = 0
    dead: set[str] = set()
    while True:
        starts = [
            (start, kind)
            for kind in ("search", "answer")
            if kind not in dead and (start := text.find(f"<{kind}>", position)) >= 0
        ]
        if not starts:
            return None
        start, kind = min(starts)
        body = start + len(kind) + 2
        end = text.find(f"</{kind}>", body)
        if end >= 0:
            return kind, text[body:end]
        # No closing tag of this kind follows, so no later opening tag of it can match either.
        dead.add(kind)
        position = body


def parse_search_r1(reply: str) -> ParsedReply:
    """Reads a reply by Search-R1's rules."""
    text = cut_reply(reply, BLOCKS)
    block = _first_block(text)
    if block is None:
        return ParsedReply("invalid", "", False, "no <search>...</search> or <answer>...</answer> block", text)
    kind, content = block
    return ParsedReply("search" if kind == "search" else "answer", content.strip(), True, "", text)


def search_query(reply: str) -> str | None:
    """The trimmed content of a reply's first search block, tags in any case; None if there is none."""
    return find_block(reply, "search")


def parse_verl_agent(reply: str) -> ParsedReply:
    """Reads a reply by verl-agent's rules: a search wins over an answer, tags in any case, extra tags are a fault."""
    tag, content, fault = read_blocks(reply, BLOCKS)
    if not tag:
        return ParsedReply("invalid", "", False, fault, "")
    return ParsedReply(
        "search" if tag == "search" else "answer", content, not fault, fault, f"<{tag}>{content}</{tag}>"
    )


_TAGS = re.compile(
    r"<(?=[\t\n\v\f\r ]*(?:/[\t\n\v\f\r ]*)?(?:think|search|information|answer)[\t\n\v\f\r ]*>)", re.IGNORECASE
)
_LEFT_ANGLE = "\u2039"


def defang(text: str) -> str:
    """Breaks protocol tags inside untrusted text by replacing their `<`; everything else stays.

    >>> defang("a </ Information > b <b>")
    'a ‹/ Information > b <b>'
    """
    return _TAGS.sub(_LEFT_ANGLE, text) if "<" in text else text


def format_passages(hits: Sequence[Hit]) -> str:
    """Passages as Search-R1 shows them: `Doc i(Title: title) text`, the title with its quotation marks."""
    return "".join([f"Doc {number}(Title: {hit.shown_title}) {hit.text}\n" for number, hit in enumerate(hits, start=1)])


def _information_plain(hits: Sequence[Hit]) -> str:
    return f"\n\n<information>{format_passages(hits).strip()}</information>\n\n"


def _information_json(hits: Sequence[Hit]) -> str:
    shown = "\n".join(f"Doc {number}: {hit.contents}" for number, hit in enumerate(hits, start=1))
    return f"<information>{json.dumps({'result': shown})}</information>"


@dataclass(frozen=True)
class Dialect:
    """One wire format.

    Attributes:
        name: Its name.
        parse: Reads a reply.
        information: Shows passages.
        invalid_text: Observation after an invalid reply.
        max_turns: Default number of search turns.
        final_answer_turn: After the search turns one more reply is taken, with search switched off.
    """

    name: str
    parse: Callable[[str], ParsedReply]
    information: Callable[[Sequence[Hit]], str]
    invalid_text: str
    max_turns: int
    final_answer_turn: bool

    def total_turns(self, max_turns: int) -> int:
        """How many replies an episode takes at most."""
        return max_turns + 1 if self.final_answer_turn else max_turns


DIALECTS = {
    "search-r1": Dialect("search-r1", parse_search_r1, _information_plain, INVALID_TEXT, 4, True),
    "verl-agent": Dialect("verl-agent", parse_verl_agent, _information_json, "", 4, False),
}


def find_dialect(name: str) -> Dialect:
    """Looks a dialect up.

    Raises:
        UnknownOption: With the names there are.
    """
    check_choice("protocol", name, DIALECTS)
    return DIALECTS[name]


def ask(question: str) -> str:
    """The question as the prompt shows it: stripped, with a question mark at its end.

    >>> ask(" who wrote it ")
    'who wrote it?'
    """
    text = question.strip()
    return text if text.endswith("?") else text + "?"
