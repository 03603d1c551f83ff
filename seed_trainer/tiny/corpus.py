"""From finished episodes to pre-training samples: token ids and which of them are learned.

Conversations are built by :mod:`seed_envs.chat` and encoded exactly as the chat template would, message by message.
Which episodes are played, and with which advice, is decided in :mod:`seed_trainer.tiny.lessons`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from seed_envs.chat import Message, build_messages
from seed_envs.profiles import Profile
from seed_envs.trajectory import Trajectory
from seed_trainer.skills.prompts import get_analyzer, outcome_of, turn_message
from seed_trainer.tiny.words import AGENT, END, USER


@dataclass(frozen=True)
class Sample:
    """One training sequence.

    Attributes:
        ids: Token ids.
        learned: Per token, whether predicting it is trained.
    """

    ids: list[int]
    learned: list[bool]


class SampleEncoder:
    """Encodes conversations, remembering every message it has seen before.

    Args:
        tokenizer: From :func:`~seed_trainer.tiny.tokenizer.build_tokenizer`.
    """

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer
        self._user, self._agent, self._end = tokenizer.convert_tokens_to_ids([USER, AGENT, END])
        self._cache: dict[str, list[int]] = {}

    def _words(self, text: str) -> list[int]:
        ids = self._cache.get(text)
        if ids is None:
            ids = list(self.tokenizer(text, add_special_tokens=False)["input_ids"])
            self._cache[text] = ids
        return ids

    def encode(self, messages: Sequence[Message], learn: Sequence[bool]) -> Sample:
        """Encode a conversation.

        Args:
            messages: User and assistant messages.
            learn: Per message, whether its words (and the end mark) are trained; only replies can be.
        """
        ids: list[int] = []
        learned: list[bool] = []
        for message, train in zip(messages, learn, strict=True):
            words = self._words(message["content"])
            reply = message["role"] == "assistant"
            piece = [self._agent, *words, self._end] if reply else [self._user, *words]
            ids += piece
            learned += [False] + [reply and train] * (len(piece) - 1)
        return Sample(ids, learned)


def episode_messages(profile: Profile, trajectory: Trajectory, skill: str = "") -> list[Message]:
    """The whole conversation of an episode, ending with its last reply.

    Args:
        profile: Of style ``growing``.
        trajectory: The finished episode.
        skill: Skill spliced into the first message.
    """
    turns = [step.context for step in trajectory.steps]
    replies = [step.reply for step in trajectory.steps]
    messages = build_messages(profile, turns, replies[:-1], skill)
    return [*messages, {"role": "assistant", "content": replies[-1]}]


def analysis_messages(profile: Profile, trajectory: Trajectory, skill: str) -> list[Message]:
    """The conversation of an episode followed by its outcome and the skill written about it."""
    analyzer = get_analyzer("turn", profile.style)
    question = turn_message(analyzer, outcome_of(trajectory))
    return [*episode_messages(profile, trajectory), question, {"role": "assistant", "content": skill}]
