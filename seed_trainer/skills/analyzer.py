"""The policy writes a hindsight skill about every finished episode.

Asks the same model that played (whatever weights it holds right now) with the whole episode and its outcome, and
validates the answer. It never repairs or invents a skill: an unusable one keeps its named reason.
"""

from __future__ import annotations

from collections.abc import Sequence

from seed_envs.chat import Message
from seed_envs.markers import defuse
from seed_envs.trajectory import Trajectory
from seed_trainer.acting.encoding import ChatEncoder, TokenIds, images_of
from seed_trainer.acting.rollout import Layout, all_named, tokens_of
from seed_trainer.acting.sampling import Decoding, Sampler
from seed_trainer.settings.options import SEEDOptions
from seed_trainer.skills.parsing import HindsightSkill
from seed_trainer.skills.prompts import Analyzer, Outcome, document_messages, turn_message
from seed_trainer.skills.relevance import names_something

ANSWER_PER_SKILL = 16
"""Tokens that an answer may spend on each token the skill in it may have: JSON, a summary, step skills."""


class SkillWriter:
    """Writes skills with a language model.

    Args:
        encoder: The model's encoder.
        sampler: The model's sampler.
        layout: Rollout layout; the ``episode`` layout reuses the exact token ids of the episode.
        analyzer: How to ask.
        options: Length limits and temperature.
    """

    def __init__(
        self,
        encoder: ChatEncoder,
        sampler: Sampler,
        layout: Layout,
        analyzer: Analyzer,
        options: SEEDOptions,
    ) -> None:
        self.encoder = encoder
        self.sampler = sampler
        self.layout = layout
        self.analyzer = analyzer
        self.options = options
        longest = ANSWER_PER_SKILL * options.max_skill_length
        bounded = min(options.max_analysis_length, longest)
        limit = options.max_skill_length + 1 if analyzer.style == "turn" else bounded
        self.decoding = Decoding(limit, options.skill_temperature)

    def write(
        self, trajectories: Sequence[Trajectory], outcomes: Sequence[Outcome], purpose: str = "skill"
    ) -> list[HindsightSkill]:
        """Write one skill per episode.

        Args:
            trajectories: Finished episodes.
            outcomes: Label told for each of them.
            purpose: Tells the draws of one answer about an episode from those of another.

        Returns:
            Skills in order. Episodes ended by a fault, or without a turn, are not analysed.
        """
        asked = [index for index, episode in enumerate(trajectories) if analysable(episode)]
        prompts, images = self._prompts([trajectories[i] for i in asked], [outcomes[i] for i in asked])
        self.sampler.forget()
        streams = all_named([_stream(trajectories[index], purpose) for index in asked])
        keys = [("skill", index) for index in asked]
        answers = self.sampler.sample(keys, prompts, self.decoding, images, streams)
        self.sampler.forget()
        skills = [HindsightSkill(reason="not_written") for _ in trajectories]
        for index, prompt, answer in zip(asked, prompts, answers, strict=True):
            skill = skills[index] = self.read(answer.ids)
            skill.prompt_ids, skill.answer_ids = prompt, answer.ids
            # Any words make a plain answer; a JSON answer has shown by its form that the question was understood.
            if skill.valid and self.analyzer.style == "turn" and not names_something(skill.text, trajectories[index]):
                skill.reason = "unrelated"
        return skills

    def read(self, ids: TokenIds) -> HindsightSkill:
        """Turn an answer's ids into a skill or a named reason."""
        skill = self.analyzer.parse(self.encoder.decode(ids), 1)
        skill.tokens = len(ids)
        if not self.encoder.ended(ids):
            skill.reason = "loop" if skill.reason == "loop" else "truncated"
        elif skill.valid and self._length(skill.text, ids) > self.options.max_skill_length:
            skill.reason = "too_long"
        limit = self.options.max_skill_length
        skill.step_skills = {step: text for step, text in skill.step_skills.items() if self._length(text, ids) <= limit}
        return skill

    def _length(self, text: str, ids: TokenIds) -> int:
        if self.analyzer.style == "turn":
            return len(ids)
        return len(self.encoder.tokenizer(text, add_special_tokens=False)["input_ids"])

    def _prompts(
        self, trajectories: Sequence[Trajectory], outcomes: Sequence[Outcome]
    ) -> tuple[list[TokenIds], list[list[object]]]:
        if self.analyzer.style == "turn" and self.layout == "episode":
            seen = [tokens_of(episode)[-1].images for episode in trajectories]
            return self._continued(trajectories, outcomes), seen
        messages = [self._messages(episode, outcome) for episode, outcome in zip(trajectories, outcomes, strict=True)]
        return self.encoder.prompts(messages), [images_of(message) for message in messages]

    def _continued(self, trajectories: Sequence[Trajectory], outcomes: Sequence[Outcome]) -> list[TokenIds]:
        """Extend the episode's own token sequence by the analysis request."""
        requests = self.encoder.continuations([[turn_message(self.analyzer, outcome)] for outcome in outcomes])
        prompts = []
        for episode, request in zip(trajectories, requests, strict=True):
            last = tokens_of(episode)[-1]
            forced = [] if self.encoder.ended(last.reply_ids) else [self.encoder.eos_token_ids[0]]
            prompts.append(last.prompt_ids + last.reply_ids + forced + request)
        return prompts

    def _messages(self, episode: Trajectory, outcome: Outcome) -> list[Message]:
        return analysis_messages(episode, outcome, self.analyzer, self.encoder, self.options.max_analysis_prompt_length)


def _stream(episode: Trajectory, purpose: str) -> str:
    """Return the stream of an answer about an episode; none if the episode itself was drawn from none."""
    stream = next((tokens.stream for tokens in reversed(tokens_of(episode))), "")
    return f"{stream}/{purpose}" if stream else ""


def analysis_messages(
    episode: Trajectory,
    outcome: Outcome,
    analyzer: Analyzer,
    encoder: ChatEncoder | None = None,
    max_length: int | None = None,
) -> list[Message]:
    """Return the conversation that asks for the skill of one episode, as trained in stage 1 and used in stage 2.

    Args:
        episode: A finished episode with at least one turn.
        outcome: Label told to the analyzer.
        analyzer: The way of asking.
        encoder: Measures requests, where they have a length limit.
        max_length: That limit in tokens; ``document`` requests leave middle steps out to keep it.
    """
    if analyzer.style == "turn":
        # The conversation as it was: episodes that were read from a file have messages, but no turn contexts.
        last = episode.steps[-1]
        said = {"role": "assistant", "content": defuse(last.reply)}
        return [*last.messages, said, turn_message(analyzer, outcome)]
    if encoder is None or max_length is None:
        return document_messages(episode, analyzer, outcome)
    return document_messages(episode, analyzer, outcome, lambda messages: encoder.length(messages) <= max_length)


def analysable(episode: Trajectory) -> bool:
    """Return whether an episode can teach anything: it has a turn, and no fault of the machinery ended it."""
    return bool(episode.steps) and episode.stop_reason.scored
