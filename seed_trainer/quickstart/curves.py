"""Draws success on the panel against updates, one line a method with its seeds behind it."""

from __future__ import annotations

import math
from pathlib import Path

from seed_trainer.quickstart.results import Panel, pooled

COLOURS = {"SEED": "#1b6ca8", "GRPO": "#c7681c"}
MARKERS = {"SEED": "o", "GRPO": "s"}
DASHES = {"SEED": "-", "GRPO": "--"}


def draw(runs: dict[str, list[list[tuple[int, Panel]]]], before: Panel, steps_per_round: int, path: Path) -> None:
    """Write a picture of the learning curves.

    Args:
        runs: Method -> seeds -> evaluations.
        before: The base model, drawn as a level line.
        steps_per_round: Optimiser steps of one update of the x-axis (a round: one batch of episodes).
        path: PNG file.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    figure = Figure(figsize=(7.2, 4.4), dpi=140, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.axhline(_percent(before.success), color="0.55", linewidth=1, linestyle=":", label="before")
    for method, seeds in runs.items():
        colour = COLOURS.get(method)
        rounds = [step / steps_per_round for step, _ in seeds[0]]
        together = [pooled([seed[index][1] for seed in seeds]) for index in range(len(rounds))]
        for seed in seeds:
            values = [_percent(panel.success) for _, panel in seed]
            axes.plot(rounds, values, color=colour, alpha=0.35, linewidth=1, linestyle=DASHES.get(method))
        low, high = zip(*(map(_percent, panel.interval or (None, None)) for panel in together), strict=True)
        axes.fill_between(rounds, low, high, color=colour, alpha=0.12)
        axes.plot(
            rounds,
            [_percent(panel.success) for panel in together],
            color=colour,
            linewidth=2.2,
            marker=MARKERS.get(method, "o"),
            linestyle=DASHES.get(method),
            label=f"{method} ({len(seeds)} seed{'s'[: len(seeds) > 1]})",
        )
    axes.set_xlabel("updates (rounds of 64 episodes)")
    axes.set_ylabel("success on the held-out panel, %")
    axes.set_ylim(0, 100)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    axes.grid(alpha=0.25)
    axes.legend(loc="upper left", frameon=False)
    title = "Mean over seeds with 95 % band; thin lines are single seeds (a demonstration, no evidence)"
    axes.set_title(title, fontsize=9, color="0.35")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    figure.savefig(path)


def _percent(share: float | None) -> float:
    """In percent; NaN, which leaves a gap, for a rate over nothing."""
    return math.nan if share is None else 100 * share
