"""The rows that a second package adds beside its environment: one of every kind."""

from __future__ import annotations

from seed_benchmarks.agents.base import AgentRow
from seed_benchmarks.suite import Suite
from seed_envs.rollout import Reply
from seed_envs.search_qa.retrievers.factory import Engine
from seed_trainer.settings.presets import Method
from seed_trainer.skills.parsing import parse_json_skill
from seed_trainer.skills.prompts import Analyzer

SUITE = Suite("demo/first_four", "demo/Guess-v0", "train", 4, first=4, about="four numbers")
AGENT = AgentRow("guess_rows:Always", "always:NUMBER, says the same number again and again")
ENGINE = Engine("guess_rows:open_shelf", "shelf:NAME")
METHOD = Method({"opd_coef": 0.0, "gigpo_coef": 0.0, "learning_rate": 0.25}, "GRPO at a rate that is easy to see.")
ANALYZER = Analyzer(
    name="haiku",
    style="document",
    request="{episode}\nAnswer in three lines.\n{focus}{skeleton}",
    focus={"success": "what helped", "failure": "what was missing", "unknown": "anything"},
    skeleton="{}",
    answer='{{"episode_skill": {skill}}}',
    parse=parse_json_skill,
)


class Always:
    """Says one number."""

    placement = "worker"
    default_batch = 1
    skill_for = None

    def __init__(self, settings, argument, profile):
        from seed_benchmarks.agents.base import Placement

        self.placement, self._reply = Placement.WORKER, profile.action_format.format(argument)

    def act(self, requests):
        return [Reply(self._reply) for _ in requests]

    def describe(self):
        return {"kind": "Always"}

    def close(self):
        return None


def annotate(episode):
    """A skill of another hand."""
    return f"Say five plain words about {episode.task_id}."


def open_shelf(name, corpus, **options):
    """The engine that ships with the library, under another name."""
    from seed_envs.search_qa.retrievers.bm25 import open_bm25

    return open_bm25("bm25", corpus, **options)
