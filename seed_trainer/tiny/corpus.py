"""From finished episodes to pre-training samples: token ids and which of them are learned.

Conversations are built by :mod:`seed_envs.chat` and encoded exactly as the chat template would, message by message.
Which episodes are played, and with which advice, is decided in :mod:`seed_trainer.tiny.lessons`.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from seed_envs.chat import Message, build_messages
from seed_envs.profiles import Profile
from seed_envs.trajectory import Trajectory
from seed_trainer.skills.prompts import get_analyzer, outcome_of, turn_message
from seed_trainer.tiny.words import AGENT, END, USER


class Picture(NamedTuple):
    """A picture kept small: its shape and its compressed bytes."""

    shape: tuple[int, ...]
    data: bytes

    @classmethod
    def of(cls, pixels: Any) -> Picture:
        """Compress an array of uint8."""
        return cls(pixels.shape, zlib.compress(pixels.tobytes(), 1))

    def pixels(self) -> Any:
        """The array of uint8."""
        return np.frombuffer(zlib.decompress(self.data), np.uint8).reshape(self.shape)


@dataclass(frozen=True)
class Sample:
    """One training sequence.

    Attributes:
        ids: Token ids.
        learned: Per token, whether predicting it is trained.
        pictures: Pictures behind the placeholder tokens, in order.
    """

    ids: list[int]
    learned: list[bool]
    pictures: tuple[Picture, ...] = ()


class SampleEncoder:
    """Encodes conversations, remembering every message it has seen before.

    Args:
        tokenizer: From :func:`~seed_trainer.tiny.tokenizer.build_tokenizer`.
        placeholders: Ids that a picture becomes.
        side: Pictures are kept resampled to squares of this side in pixels.
    """

    def __init__(self, tokenizer: Any, placeholders: Sequence[int] = (), side: int = 0) -> None:
        self.tokenizer, self.placeholders, self.side = tokenizer, list(placeholders), side
        self._pictures: dict[int, Picture] = {}
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
        pictures: list[Picture] = []
        for message, train in zip(messages, learn, strict=True):
            words = self._content(message["content"], pictures)
            reply = message["role"] == "assistant"
            piece = [self._agent, *words, self._end] if reply else [self._user, *words]
            ids += piece
            learned += [False] + [reply and train] * (len(piece) - 1)
        return Sample(ids, learned, tuple(pictures))

    def _content(self, content: Any, pictures: list[Picture]) -> list[int]:
        """The ids of a message's content; its pictures are added to the list."""
        if isinstance(content, str):
            return self._words(content)
        pictures += [self._picture(part["image"]) for part in content if part["type"] == "image"]
        parts = [self.placeholders if part["type"] == "image" else self._words(part["text"]) for part in content]
        return [token for part in parts for token in part]

    def _picture(self, pixels: Any) -> Picture:
        from PIL import Image

        key = hash(pixels.tobytes())
        if key not in self._pictures:
            shrunk = Image.fromarray(pixels).resize((self.side, self.side), Image.Resampling.BICUBIC)
            self._pictures[key] = Picture.of(np.asarray(shrunk))
        return self._pictures[key]


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
