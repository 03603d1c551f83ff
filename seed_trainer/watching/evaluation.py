"""Evaluation on a fixed panel: the plain policy, its ordinary history, no skill.

Only ``actor_skill=always`` (the starred methods) shows a library skill here. Sampling is seeded by run seed and round.
"""

from __future__ import annotations

from typing import Any

from accelerate.utils import gather_object

from seed_trainer.acting.generation import Decoding
from seed_trainer.watching.panels import compact_record, panel_tasks, summarise


def evaluate_panel(trainer: Any, panel: Any, prefix: str) -> dict[str, Any]:
    """Play a panel on all processes and return its metrics; also appends one line to ``evaluations.jsonl``."""
    args = trainer.args
    tasks = panel_tasks(panel, args.eval_repeats)
    mine = tasks[trainer.accelerator.process_index :: trainer.accelerator.num_processes]
    decoding = Decoding(args.max_turn_length, args.eval_temperature, trainer.top_p, trainer.top_k)
    with trainer.clock("evaluation"):
        skill_for = trainer.library_skill if args.actor_skill == "always" else None
        episodes = trainer.player.play(mine, trainer._policy(decoding), skill_for=skill_for) if mine else []
        trainer.sampler.forget()
    records: list[dict[str, Any]] = gather_object([compact_record(episode) for episode in episodes])
    if trainer.is_world_process_zero():
        trainer.evaluations.append(trainer.state.global_step, {"prefix": prefix, "episodes": records})
    return summarise(records, prefix)
