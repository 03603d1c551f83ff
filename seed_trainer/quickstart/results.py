"""Reads what the runs measured and lays it out: one table, and the numbers behind the curves. It decides nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seed_envs.intervals import wilson
from seed_trainer.tables import table
from seed_trainer.watching.linelog import read_records

EVALUATIONS_FILE = "evaluations.jsonl"
CAUTION = "a demonstration and no evidence: near-identical arms differ by as much from seed to seed."
FEW = {1: "One seed is", 2: "Two seeds are", 3: "Three seeds are"}


@dataclass(frozen=True)
class Panel:
    """Episodes of one policy on the panel, possibly pooled over seeds."""

    won: int
    played: int
    turns: int

    @property
    def success(self) -> float:
        """Share of episodes won."""
        return self.won / max(1, self.played)

    @property
    def mean_turns(self) -> float:
        """Mean length of an episode."""
        return self.turns / max(1, self.played)

    def __add__(self, other: Panel) -> Panel:
        return Panel(self.won + other.won, self.played + other.played, self.turns + other.turns)


def read_panels(folder: Path) -> list[tuple[int, Panel]]:
    """Every evaluation of a run: optimiser step and result, in order of the steps.

    Raises:
        FileNotFoundError: When the run was not evaluated.
    """
    path = folder / EVALUATIONS_FILE
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing: this run was not evaluated")
    panels = [(record["step"], _panel(record["episodes"])) for record in read_records(path)]
    return sorted(panels, key=lambda pair: pair[0])


def _panel(episodes: Sequence[dict[str, Any]]) -> Panel:
    scored = [episode for episode in episodes if episode["scored"]]
    return Panel(
        sum(bool(episode["success"]) for episode in scored),
        len(scored),
        sum(int(episode["steps"]) for episode in scored),
    )


def pooled(panels: Sequence[Panel]) -> Panel:
    """Panels of several seeds as one."""
    return sum(panels, Panel(0, 0, 0))


def results_table(before: Panel, runs: dict[str, list[list[tuple[int, Panel]]]]) -> str:
    """The final table.

    Args:
        before: The base model.
        runs: Method -> seeds -> evaluations, each beginning with the model after stage 1.

    Returns:
        Markdown.
    """
    rows = [_row("before", before)]
    first = [seed[0][1] for seeds in runs.values() for seed in seeds]
    rows.append(_row("after stage 1", pooled(first)))
    for method, seeds in runs.items():
        for number, seed in enumerate(seeds):
            rows.append(_row(f"after RL, {method}, seed {number}", seed[-1][1]))
        rows.append(_row(f"after RL, {method}, all seeds", pooled([seed[-1][1] for seed in seeds])))
    return table(rows, ("policy", "success", "95 % interval", "turns", "episodes"))


def _row(name: str, panel: Panel) -> tuple[str, ...]:
    low, high = wilson(panel.won, panel.played)
    interval = f"{low:.1%} to {high:.1%}"
    return name, f"{panel.success:.1%}", interval, f"{panel.mean_turns:.1f}", f"{panel.won}/{panel.played}"


def verdict(runs: dict[str, list[list[tuple[int, Panel]]]]) -> str:
    """Two sentences on what was measured, whichever way it came out."""
    means = {
        method: sum(panel.success for seed in seeds for _, panel in seed) / sum(len(seed) for seed in seeds)
        for method, seeds in runs.items()
    }
    ends = {method: pooled([seed[-1][1] for seed in seeds]) for method, seeds in runs.items()}
    curve = ", ".join(f"{method} {value:.1%}" for method, value in means.items())
    last = ", ".join(f"{method} {panel.success:.1%}" for method, panel in ends.items())
    seeds = len(next(iter(runs.values())))
    return f"Mean of the curve: {curve}. At the end: {last}.\n{FEW.get(seeds, f'{seeds} seeds are')} {CAUTION}"
