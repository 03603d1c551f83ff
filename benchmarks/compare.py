"""Two runs on the same tasks: paired differences of success, score and reward.

Runs on different tasks are refused; different prompts, step limits or seeds are allowed, because those are what one
compares, and are named.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from dataclasses import asdict
from pathlib import Path
from typing import Any

from seed_envs.statistics.intervals import CONFIDENCE

from .errors import RunsDiffer
from .folder import RunFolder
from .heads import read_run
from .paired import compare_paired
from .records import EpisodeRecord, latest


def compare_runs(first: Path, second: Path, confidence: float = CONFIDENCE) -> dict[str, Any]:
    """Compare run ``second`` with run ``first``, task by task.

    Args:
        first: Folder of run A.
        second: Folder of run B.
        confidence: Coverage of the intervals.

    Returns:
        ``measures`` (success, score, reward, each as in :class:`~.paired.PairedResult`), the two runs, and notes on
        what else differs.

    Raises:
        RunsDiffer: When the runs are not on the same tasks.
        RunFolderInvalid: When a folder holds no run.
    """
    folders = RunFolder(first), RunFolder(second)
    configs = [folder.read_config() for folder in folders]
    hashes = [config["manifest"]["sha256"] for config in configs]
    if hashes[0] != hashes[1]:
        names = [config["manifest"]["name"] for config in configs]
        raise RunsDiffer(
            f"{first} and {second} are not on the same tasks: {names[0]} ({hashes[0][:12]}...) "
            f"against {names[1]} ({hashes[1][:12]}...)"
        )
    tasks = [_by_task(folder) for folder in folders]
    common = [task for task in tasks[0] if task in tasks[1]]
    measures = {name: asdict(_measure(name, common, tasks, confidence)) for name in ("success", "score", "reward")}
    return {
        "suite": configs[0]["run"]["suite"]["name"],
        "manifest": hashes[0],
        "confidence": confidence,
        "first": {"folder": str(first), "agent": configs[0]["run"]["agent"]["spec"]},
        "second": {"folder": str(second), "agent": configs[1]["run"]["agent"]["spec"]},
        "left_out": len(tasks[0].keys() | tasks[1].keys()) - len(common) + _unplayed(configs, tasks),
        "measures": measures,
        "notes": _notes(configs),
    }


def _by_task(folder: RunFolder) -> dict[str, list[EpisodeRecord]]:
    groups: dict[str, list[EpisodeRecord]] = defaultdict(list)
    for record in sorted(latest(read_run(folder)).values(), key=lambda record: record.index):
        if record.scored:
            groups[record.task_id].append(record)
    return groups


def _measure(name: str, common: list[str], tasks: list[dict[str, list[EpisodeRecord]]], confidence: float) -> Any:
    means = [
        [statistics.fmean(float(getattr(record, name)) for record in runs[task]) for task in common] for runs in tasks
    ]
    once = all(len(runs[task]) == 1 for runs in tasks for task in common)
    return compare_paired(means[0], means[1], binary=name == "success" and once, confidence=confidence)


def _unplayed(configs: list[dict[str, Any]], tasks: list[dict[str, list[EpisodeRecord]]]) -> int:
    """Tasks of the smaller plan that neither run has scored."""
    chosen = min(config["manifest"]["chosen"] for config in configs)
    return max(0, chosen - len(tasks[0].keys() | tasks[1].keys()))


def _notes(configs: list[dict[str, Any]]) -> list[str]:
    """What else differs between the runs, apart from the agent."""
    first, second = (config["run"] for config in configs)
    pairs = {key: (first[key], second[key]) for key in ("repeats", "seed", "max_steps", "env_kwargs")}
    for key in ("temperature", "top_p", "max_new_tokens", "thinking", "skill_prompt"):
        pairs[key] = (first["agent"][key], second["agent"][key])
    notes = [f"{key} differs ({one} against {other})" for key, (one, other) in pairs.items() if one != other]
    if configs[0]["prompt"]["sha256"] != configs[1]["prompt"]["sha256"]:
        notes.insert(0, f"the prompts differ ({first['profile']} against {second['profile']})")
    return notes
