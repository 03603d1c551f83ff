"""Reads what the runs measured and lays it out: one table, and the numbers behind the curves. It decides nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from seed_envs.journal import read_records
from seed_envs.statistics.summary import Outcome, summarise_outcomes
from seed_envs.tables import number, table
from seed_trainer.watching.panels import EVALUATIONS_FILE, outcome_of_record

CAUTION = "a demonstration and no evidence: near-identical arms differ by as much from seed to seed."
FEW = {1: "One seed is", 2: "Two seeds are", 3: "Three seeds are"}


class Panel:
    """Episodes of one policy on the panel, possibly pooled over seeds, whose episodes of a task are its repeats.

    Args:
        outcomes: The episodes, those ended by a fault included; they are not scored.

    Attributes:
        success: Share of episodes won, None without any.
        interval: Its 95 % interval.
        turns: Mean length of an episode.
    """

    def __init__(self, outcomes: Sequence[Outcome]) -> None:
        self.outcomes = tuple(outcomes)
        summary = summarise_outcomes(self.outcomes)
        self.success: float | None = summary["success"]["rate"]
        self.interval: list[float] | None = summary["success"]["interval"]
        self.turns: float | None = summary["steps"]["mean"]
        self.won, self.played = summary["success"]["solved"], summary["success"]["n"]


def read_panels(folder: Path) -> list[tuple[int, Panel]]:
    """Every evaluation of a run: optimiser step and result, in order of the steps.

    Raises:
        FileNotFoundError: When the run was not evaluated.
    """
    path = folder / EVALUATIONS_FILE
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing: this run was not evaluated")
    lines = sorted(read_records(path), key=lambda line: line["step"])
    return [(line["step"], Panel([outcome_of_record(record) for record in line["episodes"]])) for line in lines]


def pooled(panels: Sequence[Panel]) -> Panel:
    """Panels of several seeds as one."""
    return Panel([outcome for panel in panels for outcome in panel.outcomes])


def results_table(
    before: Panel,
    runs: dict[str, list[list[tuple[int, Panel]]]],
    blind: Mapping[str, Panel] | None = None,
    stages: bool = True,
) -> str:
    """The final table.

    Args:
        before: The base model.
        runs: Method -> seeds -> evaluations, each beginning with the model they start from.
        blind: What policies win without their pictures, by the names of the rows.
        stages: Whether stage 1 came before the runs.

    Returns:
        Markdown.
    """
    rows = [("before", before)]
    if stages:
        rows.append(("after stage 1", pooled([seed[0][1] for seeds in runs.values() for seed in seeds])))
    for method, seeds in runs.items():
        rows += [(seed_row(method, index), seed[-1][1]) for index, seed in enumerate(seeds)]
        rows.append((f"after RL, {method}, all seeds", pooled([seed[-1][1] for seed in seeds])))
    rows += (blind or {}).items()
    heads = ("policy", "success", "95 % interval", "turns", "episodes")
    return table(heads, [_row(name, panel) for name, panel in rows])


def seed_row(method: str, seed: int) -> str:
    """Name of the row of one trained policy."""
    return f"after RL, {method}, seed {seed}"


def _row(name: str, panel: Panel) -> tuple[str, ...]:
    interval = "-" if panel.interval is None else " to ".join(map(_share, panel.interval))
    return name, _share(panel.success), interval, number(panel.turns, 1), f"{panel.won}/{panel.played}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"


def verdict(runs: dict[str, list[list[tuple[int, Panel]]]]) -> str:
    """Two sentences on what was measured, whichever way it came out."""
    curves = {method: [panel.success for seed in seeds for _, panel in seed] for method, seeds in runs.items()}
    ends = {method: pooled([seed[-1][1] for seed in seeds]) for method, seeds in runs.items()}
    curve = ", ".join(f"{method} {_share(_mean(values))}" for method, values in curves.items())
    last = ", ".join(f"{method} {_share(panel.success)}" for method, panel in ends.items())
    seeds = len(next(iter(runs.values())))
    return f"Mean of the curve: {curve}. At the end: {last}.\n{FEW.get(seeds, f'{seeds} seeds are')} {CAUTION}"


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
