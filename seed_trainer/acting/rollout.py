"""The policy adapter: chat requests to sampled token ids, inside the one episode loop of :mod:`seed_envs`.

It attaches to every reply the exact ids it was given and the ids it sampled (:class:`TurnTokens` in ``Step.meta``),
cuts over-long history, and ends an episode that no longer fits. It steps no environment and computes no loss.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from seed_envs.chat import Message, build_messages
from seed_envs.profiles import Profile, TurnContext
from seed_envs.rollout import Reply, Request
from seed_envs.trajectory import EpisodeError, StopReason, Trajectory
from seed_trainer.acting.encoding import ChatEncoder, TokenIds, images_of
from seed_trainer.acting.sampling import Decoding, Sampler

Layout = Literal["turn", "episode"]
META_KEY = "tokens"


@dataclass
class TurnTokens:
    """What one turn was, in tokens.

    Attributes:
        prompt_ids: Everything the policy read before this reply.
        forced_ids: Ids between the previous reply and this one that belong to the previous turn's end (a missing
            end-of-turn token); ``episode`` layout only.
        between_ids: Ids of the new user message and generation prompt (``episode`` layout only).
        reply_ids: Sampled ids.
        logprobs: Their log-probabilities when the sampler gave any.
        turns: The turn contexts behind the prompt, history cut as it was.
        replies: The earlier replies behind the prompt.
        messages: The messages as rendered.
        stream: What the reply was drawn from, if it has a stream.
    """

    prompt_ids: TokenIds
    reply_ids: TokenIds
    logprobs: list[float] | None
    turns: list[TurnContext]
    replies: list[str]
    messages: list[Message]
    forced_ids: TokenIds = field(default_factory=list)
    between_ids: TokenIds = field(default_factory=list)
    stream: str = ""

    @property
    def images(self) -> list[object]:
        """Images of the prompt."""
        return images_of(self.messages)


def tokens_of(trajectory: Trajectory) -> list[TurnTokens]:
    """Return the token records of an episode's turns."""
    return [step.meta[META_KEY] for step in trajectory.steps if META_KEY in step.meta]


def all_named(streams: list[str]) -> list[str] | None:
    """Return the streams if every continuation has one."""
    return streams if all(streams) else None


def as_growing(profile: Profile) -> Profile:
    """Return a window profile turned into one growing conversation, for the ``episode`` layout.

    The first message stays; later messages show the observation (and the admissible actions where the profile shows
    them) instead of repeating instructions and history, which the conversation already holds.
    """
    if profile.style == "growing":
        return profile
    later = "{observation}"
    if "{admissible}" in profile.template.turn:
        later += "\n\nAdmissible actions:\n{admissible}"
    template = dataclasses.replace(profile.template, turn=later)
    return dataclasses.replace(profile, name=f"{profile.name}-growing", template=template, style="growing", history=0)


@dataclass
class _Conversation:
    """What a policy remembers of one live episode."""

    turns: list[TurnContext] = field(default_factory=list)
    replies: list[str] = field(default_factory=list)
    ids: TokenIds = field(default_factory=list)
    ended: bool = True


class TokenPolicy:
    """A language model as a policy of :func:`seed_envs.rollout.rollout`.

    Args:
        encoder: Messages to ids.
        sampler: Continues contexts.
        profile: How turns are shown.
        layout: ``turn`` encodes every prompt anew; ``episode`` extends one sequence and never re-encodes a reply.
        decoding: How replies are sampled.
        max_prompt_length: Longest prompt in tokens.
    """

    def __init__(
        self,
        encoder: ChatEncoder,
        sampler: Sampler,
        profile: Profile,
        layout: Layout,
        decoding: Decoding,
        max_prompt_length: int,
    ) -> None:
        self.encoder = encoder
        self.sampler = sampler
        self.profile = profile
        self.layout = layout
        self.decoding = decoding
        self.max_prompt_length = max_prompt_length
        self._live: dict[int, _Conversation] = {}

    def __call__(self, requests: Sequence[Request]) -> list[Reply]:
        """Answer a batch of requests; an episode whose prompt cannot fit ends with ``context_overflow``."""
        records = [self._open(request) for request in requests]
        if self.layout == "turn":
            prompts = self._turn_prompts(requests, records)
        else:
            prompts = self._episode_prompts(requests, records)
        for request, tokens in zip(requests, prompts, strict=True):
            tokens.stream = f"{request.task.stream}/{request.turn}" if request.task.stream else ""
        fitting = [index for index, tokens in enumerate(prompts) if len(tokens.prompt_ids) <= self.max_prompt_length]
        sampled = self.sampler.sample(
            [requests[index].episode for index in fitting],
            [prompts[index].prompt_ids for index in fitting],
            self.decoding,
            [prompts[index].images for index in fitting],
            all_named([prompts[index].stream for index in fitting]),
        )
        replies = [self._overflow(len(tokens.prompt_ids)) for tokens in prompts]
        for index, result in zip(fitting, sampled, strict=True):
            tokens = prompts[index]
            tokens.reply_ids, tokens.logprobs = result.ids, result.logprobs
            replies[index] = self._close(records[index], tokens)
        return replies

    def _open(self, request: Request) -> _Conversation:
        if request.turn == 0:
            self._live[request.episode] = _Conversation()
        record = self._live[request.episode]
        record.turns.append(request.context)
        return record

    def _close(self, record: _Conversation, tokens: TurnTokens) -> Reply:
        text = self.encoder.decode(tokens.reply_ids)
        record.replies.append(text)
        record.ids = tokens.prompt_ids + tokens.reply_ids
        record.ended = self.encoder.ended(tokens.reply_ids)
        counts = {"prompt_tokens": len(tokens.prompt_ids), "completion_tokens": len(tokens.reply_ids)}
        return Reply(text, meta={META_KEY: tokens, **counts})

    def _overflow(self, length: int) -> Reply:
        error = EpisodeError(
            "ContextOverflow",
            f"the prompt has {length} tokens and max_prompt_length is {self.max_prompt_length}; raise it, or use a "
            "profile with a shorter history",
        )
        return Reply(error=error, stop_reason=StopReason.CONTEXT_OVERFLOW)

    def _turn_prompts(self, requests: Sequence[Request], records: Sequence[_Conversation]) -> list[TurnTokens]:
        """Encode every prompt; where it is too long, drop the oldest history until it fits."""
        turns = [list(record.turns) for record in records]
        messages = [request.messages for request in requests]
        encoded = self.encoder.prompts(messages)
        for index, record in enumerate(records):
            while len(encoded[index]) > self.max_prompt_length and turns[index][-1].history:
                turns[index] = _drop_oldest(turns[index])
                skill = requests[index].skill
                messages[index] = build_messages(self.profile, turns[index], record.replies, skill)
                encoded[index] = self.encoder.prompts([messages[index]])[0]
        return [
            TurnTokens(ids, [], None, chosen, list(record.replies), message)
            for ids, chosen, record, message in zip(encoded, turns, records, messages, strict=True)
        ]

    def _episode_prompts(self, requests: Sequence[Request], records: Sequence[_Conversation]) -> list[TurnTokens]:
        """Extend every sequence by its new user message."""
        messages = [request.messages for request in requests]
        first = [index for index, request in enumerate(requests) if request.turn == 0]
        later = [index for index, request in enumerate(requests) if request.turn > 0]
        begun = dict(zip(first, self.encoder.prompts([messages[index] for index in first]), strict=True))
        added = dict(zip(later, self.encoder.continuations([messages[index][-1:] for index in later]), strict=True))
        result = []
        for index, record in enumerate(records):
            forced = [] if record.ended else [self.encoder.eos_token_ids[0]]
            between = added.get(index, [])
            prompt = begun[index] if index in begun else record.ids + forced + between
            result.append(
                TurnTokens(
                    prompt, [], None, list(record.turns), list(record.replies), messages[index],
                    forced_ids=forced if index in added else [], between_ids=between,
                )
            )  # fmt: skip
        return result


def _drop_oldest(turns: list[TurnContext]) -> list[TurnContext]:
    last = turns[-1]
    return [*turns[:-1], dataclasses.replace(last, history=last.history[1:])]
