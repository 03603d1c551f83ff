"""Who writes the skills of stage 1: the environment's rules, a model behind an endpoint, or the policy itself.

Every raw answer is on disk before it is read, so none is ever paid for twice. A skill that fails the format check is
asked for once more with the error and the end of the answer; what still fails is counted by reason and left out.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seed_envs.chat import Message
from seed_envs.endpoints.client import ChatClient
from seed_envs.endpoints.wire import Answer
from seed_envs.errors import EndpointError, EndpointRefused
from seed_envs.journal import Journal, read_records
from seed_envs.trajectory import Trajectory
from seed_trainer.skills.analyzer import SkillWriter, analysable
from seed_trainer.skills.parsing import REASONS, HindsightSkill
from seed_trainer.skills.prompts import ANALYZERS, Analyzer, document_messages, outcome_of
from seed_trainer.skills.rules import ANNOTATORS, by_rules, by_terse_rules, rules_of

ANSWERS_FILE = "answers.jsonl"
MIN_WORDS = 5
TAIL = 400
BATCH = 16
"""Episodes that the policy analyses at once."""


@dataclass(frozen=True)
class Annotation:
    """The skill of one episode and who wrote it."""

    skill: HindsightSkill
    annotator: str


class RuleAnnotator:
    """Annotates with a function of :data:`ANNOTATORS`.

    Args:
        env_id: Id of the environment.
        name: Name of the function.

    Raises:
        UserError: If there is no such function, or the environment has no rules.
    """

    def __init__(self, env_id: str, name: str = "rules") -> None:
        self._annotate = ANNOTATORS.find(name)
        terse = self._annotate is by_terse_rules
        self.name, self.min_words = name, 1 if terse else MIN_WORDS
        if self._annotate in (by_rules, by_terse_rules):
            rules = rules_of(env_id, terse)
            self.name = f"rules:{rules.__module__}:{rules.__qualname__}"

    def annotate(self, episodes: Sequence[Trajectory]) -> list[Annotation]:
        """Return one annotation per episode."""
        return [Annotation(self._skill(episode), self.name) for episode in episodes]

    def _skill(self, episode: Trajectory) -> HindsightSkill:
        if not analysable(episode):
            return HindsightSkill(reason="not_written")
        return _checked(self._annotate(episode), self.min_words)


def _checked(text: str, min_words: int = MIN_WORDS) -> HindsightSkill:
    short = len(text.split()) < min_words
    return HindsightSkill(text.strip(), "blank" if not text.strip() else "too_short" if short else "", origin="rules")


class PolicyAnnotator:
    """Annotates with the model that played, asked as in stage 2.

    Args:
        writer: Asks it.
        name: What to call it in the records.
    """

    def __init__(self, writer: SkillWriter, name: str) -> None:
        self.writer = writer
        self.name = f"policy:{name}"

    def annotate(self, episodes: Sequence[Trajectory]) -> list[Annotation]:
        """Return one annotation per episode."""
        found: list[Annotation] = []
        for start in range(0, len(episodes), BATCH):
            part = episodes[start : start + BATCH]
            skills = self.writer.write(part, [outcome_of(episode) for episode in part])
            found += [Annotation(skill, self.name) for skill in skills]
        return found


class EndpointAnnotator:
    """Annotates with a model behind an OpenAI-compatible endpoint.

    Args:
        endpoint: Where to ask.
        parameters: Fields of every request: temperature, length limit.
        folder: Where ``answers.jsonl`` is kept.
        workers: Requests at the same time.
        analyzer: A ``document`` analyzer.
    """

    def __init__(
        self,
        endpoint: ChatClient,
        parameters: Mapping[str, Any],
        folder: Path,
        workers: int = 4,
        analyzer: Analyzer = ANALYZERS["json"],
    ) -> None:
        self.endpoint = endpoint
        self.parameters = parameters
        self.path = folder / ANSWERS_FILE
        self.workers = workers
        self.analyzer = analyzer
        self._lock = threading.Lock()
        self._refused = ""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._kept = dict(self._read())

    def annotate(
        self, episodes: Sequence[Trajectory], progress: Callable[[], None] = lambda: None
    ) -> tuple[list[Annotation | None], list[str]]:
        """Annotate episodes, asking only for what is not on disk yet.

        Returns:
            Annotations in order (None where the endpoint failed for good), and the failures as text. After a refusal
            that every request would meet, such as a wrong key, nothing more is asked.
        """
        found: list[Annotation | None] = [None] * len(episodes)
        failures: dict[int, str] = {}
        name = f"endpoint:{self.endpoint.model}"
        workers = ThreadPoolExecutor(self.workers)
        waiting = {workers.submit(self._one, number, episode): number for number, episode in enumerate(episodes)}
        try:
            for future in as_completed(waiting):
                number = waiting[future]
                try:
                    found[number] = Annotation(future.result(), name)
                except EndpointError as error:
                    failures[number] = str(error)
                progress()
        finally:
            workers.shutdown(cancel_futures=True)  # an interruption waits for answers under way, not for the rest
        return found, [f"episode {number}: {failures[number]}" for number in sorted(failures)]

    def spent(self) -> tuple[int, int]:
        """Return prompt and answer tokens of every answer on disk, earlier sessions included."""
        answers = [answer for _, answer in self._read(everything=True)]
        return sum(answer.prompt_tokens for answer in answers), sum(answer.completion_tokens for answer in answers)

    def _one(self, number: int, episode: Trajectory) -> HindsightSkill:
        if not analysable(episode):
            return HindsightSkill(reason="not_written")
        messages = document_messages(episode, self.analyzer, outcome_of(episode))
        skill, answer = self._ask(number, 0, messages)
        if skill.valid:
            return skill
        repair = [*messages, {"role": "assistant", "content": answer.text[-TAIL:]}, _repair_request(skill, answer)]
        return self._ask(number, 1, repair)[0]

    def _ask(self, number: int, attempt: int, messages: list[Message]) -> tuple[HindsightSkill, Answer]:
        answer = self._kept.get((number, attempt))
        if answer is None:
            if self._refused:
                raise EndpointError(f"not asked after a refusal that holds for every request: {self._refused}")
            try:
                answer = self.endpoint.ask(messages, self.parameters)
            except EndpointRefused as error:
                self._refused = str(error) if error.hopeless else self._refused
                raise
            self._keep(number, attempt, answer)
        skill = self.analyzer.parse(answer.text, MIN_WORDS)
        skill.tokens, skill.origin = answer.completion_tokens, "endpoint"
        if answer.finish_reason == "length":
            skill.reason = "truncated"
        return skill, answer

    def _keep(self, number: int, attempt: int, answer: Answer) -> None:
        asked = {"model": self.endpoint.model, "analyzer": self.analyzer.name}
        record = {**asked, "number": number, "attempt": attempt, "answer": vars(answer)}
        with self._lock:
            self._kept[number, attempt] = answer
            with Journal(self.path, shared=True) as journal:
                journal.append_record(record)

    def _read(self, everything: bool = False) -> Iterator[tuple[tuple[int, int], Answer]]:
        """Yield the answers on disk to this way of asking; a line torn by an interruption is asked for again."""
        asked = (self.endpoint.model, self.analyzer.name)
        for record in read_records(self.path):
            if everything or (record.get("model"), record.get("analyzer")) == asked:
                yield (record["number"], record["attempt"]), Answer(**record["answer"])


def _repair_request(skill: HindsightSkill, answer: Answer) -> Message:
    text = (
        f"That answer cannot be used: {REASONS[skill.reason]}. Its end was shown above. Answer again with the valid "
        "JSON object alone."
    )
    return {"role": "user", "content": text}


def acceptance(annotations: Sequence[Annotation | None]) -> dict[str, float]:
    """Return the acceptance rate and the share of every reason for refusal."""
    total = max(len(annotations), 1)
    reasons = Counter("no_answer" if item is None else item.skill.reason or "accepted" for item in annotations)
    return {name: count / total for name, count in sorted(reasons.items())}
