"""Reading run folders for the report: metrics, evaluations, episodes, and what distinguishes the runs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from seed_trainer.cli import UserError

IGNORED = {"seed", "output_dir", "run_name", "logging_dir", "resume_from_checkpoint", "data_seed", "dry_run"}
"""Configuration keys that never tell two arms apart."""


@dataclass
class Run:
    """One run folder.

    Attributes:
        folder: Where it is.
        metrics: Lines of ``metrics.jsonl``.
        episodes: Lines of ``episodes.jsonl``.
        settings: Flat configuration.
        arm: Label shared by runs that differ in their seed only.
    """

    folder: Path
    metrics: list[dict[str, Any]]
    episodes: list[dict[str, Any]]
    settings: dict[str, Any]
    arm: str = ""

    @property
    def seed(self) -> Any:
        """Seed of the run."""
        return self.settings.get("seed", "?")

    @property
    def steps_per_round(self) -> int:
        """Optimiser steps of one round."""
        generation = int(self.settings.get("steps_per_generation") or 1) * int(self.settings.get("num_iterations") or 1)
        return max(1, generation // int(self.settings.get("gradient_accumulation_steps") or 1))

    def series(self, name: str) -> list[tuple[float, float]]:
        """Return (round, value) of a metric wherever it was logged."""
        return [
            (line["step"] / self.steps_per_round, float(line[name]))
            for line in self.metrics
            if isinstance(line.get(name), (int, float))
        ]


@dataclass
class Arm:
    """Runs with the same settings but their seed."""

    name: str
    runs: list[Run] = field(default_factory=list)

    def points(self, name: str) -> list[tuple[float, list[float]]]:
        """Return, for every round that all runs have logged, the values of a metric."""
        series = [dict(run.series(name)) for run in self.runs]
        shared = sorted(set.intersection(*(set(values) for values in series))) if series else []
        return [(x, [values[x] for values in series]) for x in shared]


def _lines(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    records = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            records.append(json.loads(line))
        except json.JSONDecodeError:
            break  # the line that is being written right now
    return records


def read_run(folder: Path) -> Run:
    """Read a run folder.

    Raises:
        UserError: If it is no run folder.
    """
    if not (folder / "metrics.jsonl").exists():
        raise UserError(f"{str(folder)!r} has no metrics.jsonl; give folders written by `seed-train rl`")
    settings: dict[str, Any] = {}
    if (folder / "run.json").exists():
        record = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        settings = {**record.get("training", {}), **record.get("model", {}), **record.get("script", {})}
    return Run(folder, _lines(folder / "metrics.jsonl"), _lines(folder / "episodes.jsonl"), settings)


def group_runs(runs: Sequence[Run]) -> list[Arm]:
    """Group runs that differ in nothing but their seed, and name every group by what sets it apart."""
    keys = sorted({key for run in runs for key in run.settings} - IGNORED)
    differing = [key for key in keys if len({json.dumps(run.settings.get(key), default=str) for run in runs}) > 1]
    signatures = [tuple(json.dumps(run.settings.get(key), default=str) for key in differing) for run in runs]
    names: dict[tuple[str, ...], str] = {}
    methods = [str(run.settings.get("method", run.folder.name)) for run in runs]
    for signature, method in zip(signatures, methods, strict=True):
        alone = len({s for s, m in zip(signatures, methods, strict=True) if m == method}) == 1
        extra = [
            f"{key}={json.loads(value)}" for key, value in zip(differing, signature, strict=True) if key != "method"
        ]
        names[signature] = method if alone else f"{method} ({', '.join(extra[:4])})"
    arms: dict[tuple[str, ...], Arm] = {}
    for run, signature in zip(runs, signatures, strict=True):
        run.arm = names[signature]
        arms.setdefault(signature, Arm(names[signature])).runs.append(run)
    return list(arms.values())


def mean(values: Sequence[float]) -> float:
    """Return the mean."""
    return sum(values) / len(values)


def spread(values: Sequence[float]) -> float:
    """Return the standard error of the mean, 0 for a single value."""
    if len(values) < 2:
        return 0.0
    centre = mean(values)
    return float((sum((value - centre) ** 2 for value in values) / (len(values) - 1) / len(values)) ** 0.5)
