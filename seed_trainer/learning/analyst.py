"""Which skill teaches which episode of a round, written now unless the configured source needs none."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from accelerate.utils import gather_object

from seed_envs.profiles import Profile
from seed_envs.trajectory import Trajectory
from seed_trainer.acting.encoding import ChatEncoder
from seed_trainer.acting.sampling import Sampler
from seed_trainer.learning.snapshots import WeightHistory
from seed_trainer.settings.config import SEEDConfig
from seed_trainer.settings.options import parse_skill_source
from seed_trainer.settings.schedules import Moment
from seed_trainer.skills.analyzer import SkillWriter
from seed_trainer.skills.context import SkillContext, SkillMemory
from seed_trainer.skills.library import SkillLibrary
from seed_trainer.skills.parsing import HindsightSkill
from seed_trainer.skills.prompts import Outcome, get_analyzer, opposite, outcome_of
from seed_trainer.skills.rules import ANNOTATORS
from seed_trainer.skills.sources import assign_skills


class Analyst:
    """Owns the library, the memory of earlier skills and the weights of earlier analyzers.

    Args:
        args: Configuration.
        encoder: The model's encoder.
        sampler: The model's sampler.
        profile: How turns are shown.
        policy: Returns the model that writes.

    Raises:
        ValueError: If ``skill_analyzer`` is unknown: now, not after a round.
    """

    def __init__(
        self, args: SEEDConfig, encoder: ChatEncoder, sampler: Sampler, profile: Profile, policy: Callable[[], Any]
    ) -> None:
        self.args = args
        self.policy = policy
        self.encoder = encoder
        self.source = parse_skill_source(args.skill_source)
        self.library = SkillLibrary.load(args.skill_library) if args.skill_library else None
        self.memory = SkillMemory()
        self.weights = WeightHistory(args.ages, self.source)
        self._annotate = ANNOTATORS.find(args.skill_annotator)
        self._sampler = sampler
        self._style = profile.style
        if args.writes_skills:
            get_analyzer(args.skill_analyzer, profile.style)

    def teaching_skills(self, episodes: Sequence[Trajectory], group_size: int, moment: Moment) -> list[HindsightSkill]:
        """Return the teaching skill of every episode: ``s = A_theta_old(episode, outcome)``, or a control's."""
        own: list[HindsightSkill] = []
        if self.args.writes_skills:
            told = [outcome_of(episode) for episode in episodes]
            if self.source.name == "wrong_outcome":
                told = [opposite(outcome) for outcome in told]
            with self.weights.analyzer(self.policy(), moment.round_index):
                own = self.write(episodes, told)
        context = SkillContext(
            episodes,
            group_size,
            moment.round_index,
            moment.rng(1),
            self.library,
            self.memory,
            lambda length: self._random_text(length, moment),
            self._annotate,
            gather_object,
            moment.process,
        )
        return assign_skills(self.source, own, context)

    def write(
        self,
        episodes: Sequence[Trajectory],
        told: Sequence[Outcome] | None = None,
        temperature: float | None = None,
        purpose: str = "skill",
    ) -> list[HindsightSkill]:
        """Let the model write about episodes.

        Args:
            episodes: Finished episodes.
            told: The outcome it is told of each; the true one by default.
            temperature: Takes the place of ``skill_temperature``.
            purpose: Tells the draws of one answer about an episode from those of another.
        """
        analyzer = get_analyzer(self.args.skill_analyzer, self._style)
        writer = SkillWriter(self.encoder, self._sampler, self.args.rollout_layout, analyzer, self.args)
        if temperature is not None:
            writer.decoding = dataclasses.replace(writer.decoding, temperature=temperature)
        told = [outcome_of(episode) for episode in episodes] if told is None else told
        return writer.write(episodes, told, purpose)

    def advice(self, episode: Trajectory) -> str:
        """Return the library's advice for an episode that is about to begin."""
        return "" if self.library is None else self.library.skill(episode.task_type)

    def _random_text(self, length: int, moment: Moment) -> str:
        tokenizer = self.encoder.tokenizer
        ids = moment.rng(3).integers(0, len(tokenizer), size=length).tolist()
        return str(tokenizer.decode(ids, skip_special_tokens=True))
