"""Reading run folders for the report: metrics, evaluations, episodes, and what distinguishes the runs."""

from __future__ import annotations

import json
import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from statistics import stdev
from typing import Any

from seed_envs.journal import read_records
from seed_envs.redaction import redact
from seed_trainer.errors import UserError

SHOWN_EPISODES = 8
"""Episodes that a page shows of one run."""
EPISODE_KEYS = {"round", "task_id", "goal", "success", "advantage", "skill", "skill_reason", "skill_origin", "turns"}
T_QUANTILES = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
"""Quantiles for 97.5 % of Student's t with 1 to 10 degrees of freedom."""
IGNORED = {"seed", "output_dir", "run_name", "logging_dir", "resume_from_checkpoint", "data_seed"}
IGNORED |= {"dry_run", "no_preflight"}
"""Configuration keys that never tell two arms apart."""


@dataclass
class Run:
    """One run folder.

    Attributes:
        folder: Where it is.
        metrics: Lines of ``metrics.jsonl``.
        episodes: Some lines of ``episodes.jsonl``: the first and the last ones.
        settings: Flat configuration.
        arm: Label shared by runs that differ in their seed only.
        remarks: What a reader should know about the files, such as lines that could not be read.
    """

    folder: Path
    metrics: list[dict[str, Any]]
    episodes: list[dict[str, Any]]
    settings: dict[str, Any]
    arm: str = ""
    remarks: list[str] = field(default_factory=list)

    @property
    def seed(self) -> Any:
        """Seed of the run."""
        return self.settings.get("seed", "?")

    @property
    def steps_per_round(self) -> float:
        """Optimiser steps of one round; a fraction if several rounds make one step."""
        generation = int(self.settings.get("steps_per_generation") or 1) * int(self.settings.get("num_iterations") or 1)
        return generation / int(self.settings.get("gradient_accumulation_steps") or 1)

    def series(self, name: str) -> list[tuple[float, float]]:
        """Return (round, value) of a metric wherever it was logged as a finite number."""
        return [
            (line["step"] / self.steps_per_round, float(line[name]))
            for line in self.metrics
            if isinstance(line.get(name), (int, float)) and math.isfinite(line[name])
        ]

    @property
    def progress(self) -> str:
        """How far the run has come, if it is not at its end."""
        steps, planned = max((line["step"] for line in self.metrics), default=0), self.settings.get("max_steps")
        if not isinstance(planned, int) or planned <= 0 or steps >= planned:
            return ""
        return f"not finished: round {steps / self.steps_per_round:g} of {planned / self.steps_per_round:g}"


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

    def last(self, name: str) -> list[float]:
        """Return the last value of a metric in every run that has logged it."""
        return [series[-1][1] for series in (run.series(name) for run in self.runs) if series]


def _metric_lines(path: Path, remarks: list[str]) -> list[dict[str, Any]]:
    broken: list[int] = []
    records = [line for line in read_records(path, broken.append) if isinstance(line.get("step"), (int, float))]
    if broken:
        shown = ", ".join(map(str, broken[:5])) + (", ..." if len(broken) > 5 else "")
        remarks.append(f"{len(broken)} unreadable line(s) of {path.name} left out: {shown}")
    return records


def _some_episodes(path: Path) -> list[dict[str, Any]]:
    """Return the first and the last episodes of a file, which may hold thousands."""
    half = SHOWN_EPISODES // 2
    whole = (record for record in read_records(path) if record.keys() >= EPISODE_KEYS)
    first = list(islice(whole, half))
    return first + list(deque(whole, maxlen=half))


def _settings(path: Path, remarks: list[str]) -> dict[str, Any]:
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        return dict(redact({**record.get("training", {}), **record.get("model", {}), **record.get("script", {})}))
    except FileNotFoundError:
        remarks.append(f"no {path.name}: rounds are counted as optimiser steps")
    except (ValueError, AttributeError, TypeError) as error:
        remarks.append(f"{path.name} cannot be read ({type(error).__name__}): rounds are counted as optimiser steps")
    return {}


def read_run(folder: Path) -> Run:
    """Read a run folder, finished or not.

    Raises:
        UserError: If it is no run folder.
    """
    if not (folder / "metrics.jsonl").exists():
        raise UserError(
            f"{str(folder)!r} has no metrics.jsonl; give folders written by `seed-train rl` (the first line is written "
            "after the first round)"
        )
    remarks: list[str] = []
    settings = _settings(folder / "run.json", remarks)
    metrics = _metric_lines(folder / "metrics.jsonl", remarks)
    run = Run(folder, metrics, _some_episodes(folder / "episodes.jsonl"), settings, remarks=remarks)
    if run.progress:
        remarks.append(run.progress)
    return run


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


def deviation(values: Sequence[float]) -> float:
    """Return the sample deviation, 0 for a single value."""
    return stdev(values) if len(values) > 1 else 0.0


def spread(values: Sequence[float]) -> float:
    """Return the standard error of the mean, 0 for a single value."""
    return float(deviation(values) / len(values) ** 0.5)


def interval(values: Sequence[float]) -> tuple[float, float] | None:
    """Return the 95 % interval of the mean by Student's t; None for a single value."""
    if len(values) < 2:
        return None
    degrees = len(values) - 1
    quantile = T_QUANTILES[degrees - 1] if degrees <= len(T_QUANTILES) else 1.96 + 2.4 / degrees
    half = quantile * spread(values)
    return mean(values) - half, mean(values) + half
