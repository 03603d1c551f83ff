"""How much an old analyzer's skills change the gate on today's episodes, and whether Proposition 3 bounds it.

For every age k: the analyzer of k rounds ago writes skills about today's episodes, today's teacher scores the same
tokens under them, and the trained gates are compared token by token. Age 0 writes today's skills again and has to give
exactly 0 with a greedy analyzer. Measures only; costs one analysis and one teacher pass per age.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from seed_trainer.learning import losses
from seed_trainer.learning.analyst import Analyst
from seed_trainer.learning.rounds import Block
from seed_trainer.learning.scorer import Batch, Scorer
from seed_trainer.learning.scores import GateRule, Scores, distilled_mask
from seed_trainer.learning.teaching import Teaching
from seed_trainer.settings.config import SEEDConfig
from seed_trainer.settings.schedules import Moment
from seed_trainer.skills.parsing import HindsightSkill
from seed_trainer.watching.gradients import distillation_cosine
from seed_trainer.watching.sink import MetricSink

NOISE = "noise"
"""In place of an age: today's analyzer, sampling its skills anew. No age can be told from less than this."""


def staleness_metrics(fresh: Scores, stale: Scores, age: str) -> dict[str, float]:
    """Return gap, bound, their ratio and the share of tokens that break the bound, over the tokens of ``stale.mask``.

    Proposition 3 is about the gap gate; with another gate there is no bound to report.

    Args:
        fresh: Scores under the skills of analyzer k.
        stale: Scores of the same tokens under the skills of analyzer j.
        age: k - j, or :data:`NOISE`.
    """
    chosen = stale.mask > 0
    gap = (fresh.gates - stale.gates)[chosen].abs()
    metrics = {f"stale/gate_gap/{age}": float(gap.mean())}
    if stale.rule.kind != "gap":
        return metrics
    bound = losses.staleness_bound(stale.rule.beta, (fresh.shift - stale.shift)[chosen].abs())
    mean_bound = float(bound.mean())
    return metrics | {
        f"stale/bound/{age}": mean_bound,
        f"stale/ratio/{age}": float(gap.mean()) / mean_bound if mean_bound > 0 else math.nan,
        f"stale/violations/{age}": float((gap > bound + 1e-6).float().mean()),
    }


class StalenessWatch:
    """Measures every configured age that is old enough, and the noise floor.

    Args:
        args: Configuration.
        analyst: Writes the skills, and keeps the analyzers of earlier rounds.
        teaching: Splices them into teacher prompts.
        scorer: Forward passes.
        sink: Where metrics go.
    """

    def __init__(
        self, args: SEEDConfig, analyst: Analyst, teaching: Teaching, scorer: Scorer, sink: MetricSink
    ) -> None:
        self.args = args
        self.analyst = analyst
        self.teaching = teaching
        self.scorer = scorer
        self.sink = sink

    def due(self, block: Block, moment: Moment) -> bool:
        """Return whether this round is measured."""
        return bool(self.args.ages and block.skills) and moment.round_index % self.args.staleness_every == 0

    def measure(self, block: Block, batch: Batch, moment: Moment) -> None:
        """Measure a round before its first update.

        Every process goes through the same steps, whatever its own skills are, because logging is collective.
        """
        rule = GateRule(self.args.opd_gate, moment.gate_beta)
        fresh = self.scorer.scores(batch, rule, self.args.steps_per_generation)
        own = [row.teacher_prompt_ids for row in block.rows]
        for age in self.args.ages:
            past = moment.round_index - age
            if age == 0 or past in self.analyst.weights.rounds:
                with self.analyst.weights.at(self.scorer.unwrapped, past):
                    skills = self.analyst.write(block.episodes, purpose=f"stale/{age}")
                self.sink.append(self._compare(block, batch, fresh, skills, str(age)))
        if self.args.staleness_noise_temperature:
            temperature = self.args.staleness_noise_temperature
            skills = self.analyst.write(block.episodes, temperature=temperature, purpose=NOISE)
            self.sink.append(self._compare(block, batch, fresh, skills, NOISE))
        for row, ids in zip(block.rows, own, strict=True):
            row.teacher_prompt_ids = ids
        # Autocast keeps casted copies of weights, which were exchanged meanwhile.
        torch.clear_autocast_cache()

    def _compare(
        self, block: Block, batch: Batch, fresh: Scores, skills: Sequence[HindsightSkill], name: str
    ) -> dict[str, float]:
        """Return the metrics of other skills about the same episodes; empty if no episode has two usable skills.

        Args:
            block: The round, whose rows are given the other skills' teacher prompts.
            batch: Its rows as tensors.
            fresh: Their scores under today's skills.
            skills: The other skill of every episode.
            name: Age, or :data:`NOISE`.
        """
        too_long = self.teaching.splice(block.rows, skills)
        both = [
            other.valid and known.valid and index not in too_long
            for index, (other, known) in enumerate(zip(skills, block.skills, strict=True))
        ]
        inputs = {**batch, **self.teaching.prompt_columns(block.rows, both)}
        teacher = self.scorer.other_teacher(self.scorer.model, inputs, self.args.steps_per_generation)
        other = fresh.under(teacher, distilled_mask(inputs))
        if not bool(other.mask.any()):
            return {}
        metrics = staleness_metrics(fresh, other, name)
        if self.args.staleness_gradients and name != NOISE:
            metrics[f"stale/grad_cosine/{name}"] = distillation_cosine(self.scorer, batch, fresh, other)
        return metrics
