"""Two runs on the same tasks: paired differences of success, score and reward.

Runs on different tasks are refused; different prompts, step limits or seeds are allowed, because those are what one
compares, and are named.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
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
    one, other = open_runs([first, second])
    return {
        "suite": one.suite,
        "manifest": one.config["manifest"]["sha256"],
        "confidence": confidence,
        "first": {"folder": str(first), "agent": one.agent},
        "second": {"folder": str(second), "agent": other.agent},
        **compare_pair(one, other, confidence),
    }


@dataclass(frozen=True)
class Run:
    """One of the runs that are compared: its folder, configuration, and scored episodes by task."""

    folder: RunFolder
    config: dict[str, Any]
    tasks: dict[str, list[EpisodeRecord]]

    @property
    def suite(self) -> str:
        """Name of the suite."""
        return str(self.config["run"]["suite"]["name"])

    @property
    def agent(self) -> str:
        """How the agent was named."""
        return str(self.config["run"]["agent"]["spec"])


def open_runs(folders: Sequence[Path]) -> list[Run]:
    """Read runs that are to be compared.

    Raises:
        RunsDiffer: When they are not all on the same tasks.
        RunFolderInvalid: When a folder holds no run.
    """
    runs = [Run(folder, folder.read_config(), {}) for folder in map(RunFolder, folders)]
    tasks = runs[0].config["manifest"]
    for run in runs[1:]:
        others = run.config["manifest"]
        if others["sha256"] != tasks["sha256"]:
            raise RunsDiffer(
                f"{runs[0].folder.path} and {run.folder.path} are not on the same tasks: {tasks['name']} "
                f"({tasks['sha256'][:12]}...) against {others['name']} ({others['sha256'][:12]}...)"
            )
    for run in runs:
        run.tasks.update(_by_task(run.folder))
    return runs


def compare_pair(one: Run, other: Run, confidence: float, only: Collection[str] | None = None) -> dict[str, Any]:
    """Paired measures of two runs.

    Args:
        one: The run that differences are taken from.
        other: The other run.
        confidence: Coverage of the intervals.
        only: Tasks to look at; None takes all.

    Returns:
        ``measures``, ``left_out`` (tasks without a scored episode in one of them) and ``notes``.
    """
    configs, tasks = [one.config, other.config], [one.tasks, other.tasks]
    common = [task for task in tasks[0] if task in tasks[1] and (only is None or task in only)]
    return {
        "left_out": len(tasks[0].keys() | tasks[1].keys()) - len(common) + _unplayed(configs, tasks),
        "measures": {
            name: asdict(_measure(name, common, tasks, confidence)) for name in ("success", "score", "reward")
        },
        "notes": _notes(configs),
    }


def perception(seen: Path, blind: Path, confidence: float = CONFIDENCE) -> dict[str, Any]:
    """What an agent wins by looking: its success with pictures less its success without, task by task.

    Args:
        seen: Folder of the run with pictures.
        blind: Folder of the same agent's run with ``--blind``.
        confidence: Coverage of the interval.

    Raises:
        RunsDiffer: When the runs are not on the same tasks, or not one with and one without pictures.
        RunFolderInvalid: When a folder holds no run.
    """
    modes = [RunFolder(folder).read_config()["run"].get("blind", "") for folder in (seen, blind)]
    if modes[0] or not modes[1]:
        raise RunsDiffer(
            f"{seen} and {blind}: expected a run with pictures and one with --blind, got blind={modes[0]!r} and "
            f"blind={modes[1]!r}"
        )
    success = compare_runs(blind, seen, confidence)["measures"]["success"]
    kept = ("tasks", "difference", "interval", "p_value", "interval_method", "test")
    return {
        "mode": modes[1],
        "seen": success["second"],
        "blind": success["first"],
        **{key: success[key] for key in kept},
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
    pairs["blind"] = (first.get("blind", ""), second.get("blind", ""))
    for key in ("temperature", "top_p", "max_new_tokens", "thinking", "skill_prompt"):
        pairs[key] = (first["agent"][key], second["agent"][key])
    notes = [f"{key} differs ({one} against {other})" for key, (one, other) in pairs.items() if one != other]
    if configs[0]["prompt"]["sha256"] != configs[1]["prompt"]["sha256"]:
        notes.insert(0, f"the prompts differ ({first['profile']} against {second['profile']})")
    return notes
