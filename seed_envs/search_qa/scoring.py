"""From an episode to its reward: the scored answer, the official scores, the optional format reward.

In corrected mode the scored answer is the one the environment executed, and nothing else is ever scanned. Legacy mode
reproduces what Search-R1 and verl-agent did: they search prompt, replies and passages for answer tags.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from seed_envs.arguments import check_choice
from seed_envs.search_qa.answers import NO_SCORES, AnswerScores, score_answer

REWARDS = ("em", "sub_em", "f1", "format")
_TAG = re.compile(r"(</?(?:think|search|information|answer)>)")
_MARKS = ("think", "search", "information", "answer")


class Turn(NamedTuple):
    """One reply as it entered the transcript, and the observation that followed."""

    reply: str
    observation: str


class Verdict(NamedTuple):
    """What an episode is worth: the scored answer (None: there is none), its scores, and the reward."""

    answer: str | None
    scores: AnswerScores
    reward: float


def check_reward(name: str) -> str:
    """Returns the name of a known reward; raises UnknownOption otherwise."""
    check_choice("reward", name, REWARDS)
    return name


def transcript(turns: Sequence[Turn]) -> str:
    """Replies and observations in order."""
    return "".join(turn.reply + turn.observation for turn in turns)


def answer_blocks(text: str) -> list[str]:
    """The contents of all answer blocks from left to right, in linear time."""
    found, start = [], text.find("<answer>")
    while start >= 0 and (end := text.find("</answer>", start)) >= 0:
        found.append(text[start + len("<answer>") : end])
        start = text.find("<answer>", end)
    return found


def legacy_answer(prompt: str, turns: Sequence[Turn], at_least: int) -> str | None:
    """The last answer block of prompt and transcript, if there are at least so many.

    With Search-R1's prompt, which holds two such blocks, an episode without an answer is scored as "Beijing".
    """
    found = answer_blocks(prompt + transcript(turns))
    return found[-1].strip() if len(found) >= at_least else None


def format_is_good(text: str) -> bool:
    """Whether a transcript reads think, (search, information, think) any number of times, answer; only blanks between.

    Tags must come in pairs, also inside thoughts, as in Search-R1's state machine.
    """
    if any(text.count(f"<{mark}>") != text.count(f"</{mark}>") for mark in _MARKS):
        return False
    follows = {
        "start": {"<think>": "thinking"},
        "thinking": {"</think>": "thought"},
        "thought": {"<search>": "searching", "<answer>": "answering"},
        "searching": {"</search>": "searched"},
        "searched": {"<information>": "reading"},
        "reading": {"</information>": "read"},
        "read": {"<think>": "thinking"},
        "answering": {"</answer>": "end"},
    }
    state = "start"
    for piece in _TAG.split(text):
        if _TAG.fullmatch(piece):
            state = follows.get(state, {}).get(piece, "")
            if not state:
                return False
        elif piece.strip() and state in ("start", "thought", "searched", "read", "end"):
            return False
    return state == "end"


def turns_are_good(turns: Sequence[Turn], kinds: Sequence[str]) -> bool:
    """The corrected format check: every reply is one thought followed by one block, the last one an answer."""
    if not turns or kinds[-1] != "answer":
        return False
    for turn, kind in zip(turns, kinds, strict=True):
        match = re.fullmatch(rf"\s*<think>(.*?)</think>\s*<{kind}>(.*?)</{kind}>\s*", turn.reply, re.DOTALL)
        if kind == "invalid" or match is None:
            return False
    return True


def format_reward(answer: str | None, correct: bool, good_format: bool) -> float:
    """1 right; 0.8 right in bad format; 0.2 wrong in good format; 0.1 wrong in bad format; 0 without an answer."""
    if answer is None:
        return 0.0
    if correct:
        return 1.0 if good_format else 0.8
    return 0.2 if good_format else 0.1


def judge(answer: str | None, golds: Sequence[str], reward: str, good_format: bool, legacy: bool) -> Verdict:
    """Scores an answer.

    Args:
        answer: The scored answer, or None.
        golds: Accepted answers.
        reward: One of `REWARDS`.
        good_format: Result of the format check; only looked at for the format reward.
        legacy: Treat golds that normalise to nothing as published numbers did.
    """
    scores = NO_SCORES if answer is None else score_answer(answer, golds, legacy)
    if reward == "format":
        return Verdict(answer, scores, format_reward(answer, scores.em == 1.0, good_format))
    return Verdict(answer, scores, float(getattr(scores, reward)))
