"""The rules: what a reply does to an episode, and what it is worth in the end. No engine, no tasks, no prompts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from seed_envs.base import MAX_ACTION_LENGTH
from seed_envs.outcomes import Outcome
from seed_envs.search_qa.episode import Episode
from seed_envs.search_qa.prompts import SEARCH_R1_PROMPT
from seed_envs.search_qa.protocol import MAX_QUERY_LENGTH, Dialect, ParsedReply
from seed_envs.search_qa.retrievers.base import Hit
from seed_envs.search_qa.scoring import Turn, format_is_good, judge, legacy_answer, transcript, turns_are_good
from seed_envs.search_qa.showing import fit, made_safe

Search = Callable[[str], tuple[list[Hit], str]]
"""From a query to what the engine found, and why it failed, if it did."""


@dataclass(frozen=True)
class Rules:
    """The rules of one environment; a value.

    Attributes:
        dialect: How replies are read and passages written.
        legacy: Published behaviour with its faults.
        reward: Which score is the reward.
        total_turns: Replies of an episode, the last one included in which no search is left.
        observation_budget: Most characters of an observation; None for no limit.
        truncates: Whether a search that fails ends the episode.
    """

    dialect: Dialect
    legacy: bool
    reward: str
    total_turns: int
    observation_budget: int | None
    truncates: bool

    def act(self, episode: Episode, action: str, search: Search) -> Outcome:
        """Carries out what a reply asks for; a block of an ill-formed reply as well.

        Args:
            episode: Updated in place.
            action: The reply.
            search: Asks the engine.
        """
        if len(action) > MAX_ACTION_LENGTH:
            reason = f"the reply has {len(action)} characters, at most {MAX_ACTION_LENGTH} are read"
            refused = self._refuse(episode, ParsedReply("invalid", "", False, reason, ""))
            return refused._replace(format_valid=False)
        parsed = self.dialect.parse(action)
        return self._turn(episode, parsed, search)._replace(format_valid=parsed.valid)

    def _turn(self, episode: Episode, parsed: ParsedReply, search: Search) -> Outcome:
        if parsed.kind == "answer":
            return self._answer(episode, parsed)
        if parsed.kind == "invalid":
            return self._refuse(episode, parsed)
        if len(episode.turns) + 1 >= self.total_turns:
            valid = parsed.valid and self.legacy
            reason = "" if valid else parsed.reason or "no_search_left"
            return self._refuse(episode, parsed._replace(valid=valid, reason=reason))
        if not parsed.content and not self.legacy:
            return self._refuse(episode, parsed._replace(kind="invalid", valid=False, reason="the query is empty"))
        return self._search(episode, parsed, search)

    def _search(self, episode: Episode, parsed: ParsedReply, search: Search) -> Outcome:
        query = parsed.content[:MAX_QUERY_LENGTH]
        hits, error = search(query)
        episode.retrieval_error = error
        if error and self.truncates:
            episode.record(parsed.kind, parsed.valid, Turn(parsed.text, ""))
            episode.query = query
            return Outcome("", truncated=True, stop_reason="retrieval_error")
        shown, defanged = (hits, 0) if self.legacy else made_safe(hits)
        observation, fitting = fit(shown, self.dialect.information, self.observation_budget)
        episode.record(parsed.kind, parsed.valid, Turn(parsed.text, observation))
        episode.query = query
        # As the engine sent them, except a passage of which only the beginning is shown.
        compared = zip(hits, shown, fitting, strict=False)
        episode.hits = tuple(hit if one.text == safe.text else one for hit, safe, one in compared)
        episode.asked += (query,)
        episode.n_valid_searches += parsed.valid
        episode.truncated_passages += len(hits) - len(fitting)
        episode.cut_passages += fitting[:1] != shown[:1] and bool(fitting)
        episode.defanged += defanged
        episode.show(episode.hits)
        return Outcome(observation, invalid_reason=parsed.reason)

    def _answer(self, episode: Episode, parsed: ParsedReply) -> Outcome:
        episode.record(parsed.kind, parsed.valid, Turn(parsed.text, ""))
        self._judge(episode, parsed.content)
        return Outcome("", episode.reward, True, invalid_reason=parsed.reason)

    def _refuse(self, episode: Episode, parsed: ParsedReply) -> Outcome:
        """A turn without search or answer: an invalid reply, or a search when none is left."""
        last = len(episode.turns) + 1 >= self.total_turns
        observation = "" if last or parsed.kind == "search" else self.dialect.invalid_text
        episode.record(parsed.kind, parsed.valid, Turn(parsed.text, observation))
        episode.n_valid_searches += parsed.kind == "search" and parsed.valid
        if not last:
            return Outcome(observation, action_valid=parsed.valid, invalid_reason=parsed.reason)
        self._judge(episode, None)
        return Outcome(observation, episode.reward, False, parsed.valid, parsed.reason, True, stop_reason="turn_limit")

    def _judge(self, episode: Episode, executed: str | None) -> None:
        """Scores the episode at its end."""
        answer = executed
        if self.legacy:
            prompt = SEARCH_R1_PROMPT.format(question=episode.goal) if self.dialect.final_answer_turn else ""
            answer = legacy_answer(prompt, episode.turns, 2 if self.dialect.final_answer_turn else 1)
        good_format = self.reward == "format" and (
            format_is_good(transcript(episode.turns)) if self.legacy else turns_are_good(episode.turns, episode.kinds)
        )
        verdict = judge(answer, episode.question.answers, self.reward, good_format, self.legacy)
        episode.answer, episode.scores, episode.reward = verdict
