"""Evaluation on a fixed panel: the plain policy, its ordinary history, no skill.

Only ``actor_skill=always`` (the starred methods) shows a library skill here. Sampling is seeded by run seed and round.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from accelerate.utils import gather_object

from seed_envs.intervals import wilson
from seed_envs.tasks import TaskSpec
from seed_envs.trajectory import Trajectory
from seed_trainer.acting.generation import Decoding
from seed_trainer.watching.linelog import read_records

EVALUATIONS_FILE = "evaluations.jsonl"


def panel_tasks(panel: Any, repeats: int) -> list[TaskSpec]:
    """Return the tasks of a panel, each ``repeats`` times in a row."""
    return [
        TaskSpec(
            task_id=row.get("task_id"),
            split=row.get("split"),
            seed=None if row.get("seed") is None else int(row["seed"]),
            group=index,
        )
        for index, row in enumerate(panel)
        for _ in range(repeats)
    ]


def summarise(records: Sequence[dict[str, Any]], prefix: str = "eval") -> dict[str, float]:
    """Return the metrics of a panel from compact episode records.

    Episodes ended by a fault are counted apart and not scored.
    """
    scored = [record for record in records if record["scored"]]
    count, wins = len(scored), sum(record["success"] for record in scored)
    low, high = wilson(wins, count)
    by_type: dict[str, list[bool]] = defaultdict(list)
    for record in scored:
        by_type[record["task_type"]].append(record["success"])
    steps = sum(record["steps"] for record in scored)
    metrics = {
        "success": wins / count if count else 0.0,
        "success_low": low,
        "success_high": high,
        "success_macro": sum(sum(v) / len(v) for v in by_type.values()) / len(by_type) if by_type else 0.0,
        "score": sum(record["score"] for record in scored) / count if count else 0.0,
        "turns": steps / count if count else 0.0,
        "invalid_actions": sum(record["invalid"] for record in scored) / steps if steps else 0.0,
        "episodes": float(count),
        "faults": float(len(records) - count),
    }
    for name, values in sorted(by_type.items()):
        metrics |= {f"success/{name}": sum(values) / len(values), f"episodes/{name}": float(len(values))}
    return {f"{prefix}_{name}": float(value) for name, value in metrics.items()}


def compact_record(episode: Trajectory) -> dict[str, Any]:
    """Return what an evaluation keeps of an episode."""
    return {
        "task_id": episode.task_id,
        "task_type": episode.task_type or "all",
        "success": episode.success,
        "score": episode.score,
        "steps": episode.num_steps,
        "invalid": sum(not step.action_valid for step in episode.steps),
        "stop_reason": episode.stop_reason.value,
        "scored": episode.stop_reason.scored,
        "actions": [step.action for step in episode.steps],
        "error": None if episode.error is None else episode.error.message,
    }


def read_evaluations(folder: Path) -> list[tuple[int, dict[str, float]]]:
    """Return step and metrics of every evaluation a run has written."""
    return [(int(line["step"]), summarise(line["episodes"])) for line in read_records(folder / EVALUATIONS_FILE)]


def evaluate_panel(trainer: Any, panel: Any, prefix: str) -> dict[str, float]:
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
