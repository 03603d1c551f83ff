"""Evaluation on a fixed panel: the plain policy, its ordinary history, no skill.

Only ``actor_skill=always`` (the starred methods) shows a library skill here. Sampling is seeded by run seed and round.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from accelerate import Accelerator
from accelerate.utils import gather_object

from seed_envs.trajectory import Trajectory
from seed_trainer.acting.actor import Actor
from seed_trainer.watching.panels import compact_record, panel_tasks


def play_panel(
    actor: Actor,
    panel: Any,
    accelerator: Accelerator,
    skill_for: Callable[[Trajectory], str] | None = None,
) -> list[dict[str, Any]]:
    """Play a panel on all processes and return the compact records of its episodes.

    Args:
        actor: The policy.
        panel: Rows that name the tasks.
        accelerator: Says which part of the panel this process plays.
        skill_for: Gives the skill to show in the actor's own prompts.
    """
    tasks = panel_tasks(panel, actor.args.eval_repeats)
    mine = tasks[accelerator.process_index :: accelerator.num_processes]
    decoding = actor.decoding(actor.args.eval_temperature)
    episodes = actor.play(mine, decoding, skill_for) if mine else []
    actor.sampler.forget()
    records: list[dict[str, Any]] = gather_object([compact_record(episode) for episode in episodes])
    return records
