"""Evaluation on a fixed panel: the plain policy, its ordinary history, no skill.

Only ``actor_skill=always`` (the starred methods) shows a library skill here. Sampling is seeded by run seed and round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from accelerate import Accelerator
from accelerate.utils import gather_object
from torch import nn

from seed_envs.trajectory import Trajectory
from seed_trainer.acting.actor import Actor
from seed_trainer.acting.play import with_streams
from seed_trainer.settings.config import SEEDConfig
from seed_trainer.settings.schedules import Moment
from seed_trainer.watching.linelog import LineLog
from seed_trainer.watching.panels import EVALUATIONS_FILE, compact_record, panel_tasks, summarise


@contextmanager
def _evaluating(model: nn.Module) -> Iterator[None]:
    """Switch dropout and its like off for the time of the block."""
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)


class PanelPlayer:
    """Plays panels and keeps their episodes in ``evaluations.jsonl``.

    Args:
        args: Configuration.
        actor: The policy.
        accelerator: Says which part of a panel this process plays.
    """

    def __init__(self, args: SEEDConfig, actor: Actor, accelerator: Accelerator) -> None:
        self.args = args
        self.actor = actor
        self.accelerator = accelerator
        self.log = LineLog(Path(args.output_dir) / EVALUATIONS_FILE)

    def measure(
        self, model: nn.Module, panel: Any, prefix: str, moment: Moment, advice: Callable[[Trajectory], str]
    ) -> dict[str, Any]:
        """Play a panel on all processes and return its metrics.

        Args:
            model: What the actor samples from.
            panel: Rows that name the tasks.
            prefix: Begins the name of every metric.
            moment: Where training stands.
            advice: Gives the skill that the starred methods show in the actor's own prompts.
        """
        tasks = with_streams(panel_tasks(panel, self.args.eval_repeats), moment.stream("evaluation"))
        mine = tasks[self.accelerator.process_index :: self.accelerator.num_processes]
        decoding = self.actor.decoding(self.args.eval_temperature)
        with _evaluating(model):
            skill_for = advice if self.args.actor_skill == "always" else None
            episodes = self.actor.play(mine, decoding, skill_for) if mine else []
        self.actor.sampler.forget()
        records: list[dict[str, Any]] = gather_object([compact_record(episode) for episode in episodes])
        if self.accelerator.is_main_process:
            self.log.append(moment.step, {"prefix": prefix, "episodes": records})
        return summarise(records, prefix)
