"""``python -m benchmarks.coverage``: how often the intervals of success rates and scores hold the truth, simulated.

Every task draws its own difficulty from a beta distribution around the true rate; the correlation says how much of the
variance lies between tasks: 0 makes all episodes independent, 1 makes all repeats of a task agree. A cell of the table
is the lowest share over the correlations. The last rows stand for scores: a mean of a hundred trials per task.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from seed_envs.command_line import COMPLETE, INCOMPLETE, Parser, run
from seed_envs.statistics.intervals import CONFIDENCE
from seed_envs.statistics.means import weighted_mean_cdf

from .folder import write_bytes
from .markdown import table

TASKS = (5, 6, 8, 12, 20, 36, 64)
REPEATS = (1, 2, 3, 5, 10, 20)
RATES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 0.95, 0.99, 1.0)
CORRELATIONS = (0.0, 0.1, 0.4, 1.0)
#: Trials in a score that is no success.
SCORE = 100
#: What every cell must reach.
LEAST = 0.93


def coverage(tasks: int, repeats: int, rate: float, correlation: float, simulations: int, seed: int = 0) -> float:
    """Share of simulated runs whose interval contains the true rate.

    An interval of ``bounded_interval`` contains a rate exactly when neither of its two distributions puts it into a
    tail, which is one evaluation instead of a search; the tests compare both.

    Args:
        tasks: Tasks of a run.
        repeats: Episodes per task.
        rate: The true success rate.
        correlation: Of two repeats of a task, 0 to 1.
        simulations: Runs.
        seed: Of the simulation.
    """
    entropy = [seed, tasks, repeats, round(rate * 1000), round(correlation * 1000)]
    rng = np.random.default_rng(np.random.SeedSequence(entropy))
    solved = rng.binomial(repeats, _difficulties(rng, rate, correlation, (simulations, tasks)))
    counts = np.stack([np.sum(solved == value, axis=1) for value in range(repeats + 1)], axis=1)
    return float(np.mean(contains(rate, np.arange(repeats + 1) / repeats, counts.astype(float))))


def contains(rate: float, values: NDArray[np.float64], counts: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether each sample's interval contains ``rate``; see ``weighted_mean_cdf`` for the shapes."""
    ones, joined = np.ones(len(values) + 1), np.append(counts, np.ones((len(counts), 1)), axis=1)
    tail = (1 - CONFIDENCE) / 2
    above_low = weighted_mean_cdf(rate, np.append(values, 0.0), ones, joined) >= tail
    never_below = ~np.any(counts[:, values < rate] > 0, axis=1)
    below_high = never_below | (weighted_mean_cdf(rate, np.append(values, 1.0), ones, joined) <= 1 - tail)
    found: NDArray[np.bool_] = above_low & below_high
    return found


def _difficulties(
    rng: np.random.Generator, rate: float, correlation: float, shape: tuple[int, int]
) -> NDArray[np.float64]:
    if correlation == 0 or rate in (0.0, 1.0):
        return np.full(shape, rate)
    if correlation == 1:
        return (rng.random(shape) < rate).astype(float)
    strength = 1 / correlation - 1
    return rng.beta(rate * strength, (1 - rate) * strength, shape)


def coverage_rows(simulations: int) -> list[tuple[int, int, list[float]]]:
    """Tasks, repeats, and the lowest coverage over the correlations for every rate."""
    return [
        (tasks, repeats, [_lowest(tasks, repeats, rate, simulations) for rate in RATES])
        for repeats in (*REPEATS, SCORE)
        for tasks in TASKS
    ]


def _lowest(tasks: int, repeats: int, rate: float, simulations: int) -> float:
    correlations = CORRELATIONS if repeats > 1 else (0.0,)
    return min(coverage(tasks, repeats, rate, correlation, simulations) for correlation in correlations)


def coverage_markdown(rows: Sequence[tuple[int, int, list[float]]], simulations: int, command: str) -> str:
    """The page of a simulation."""
    header = ["tasks", "repeats", *(f"rate {rate:g}" for rate in RATES)]
    cells = [
        [str(tasks), "score" if repeats == SCORE else str(repeats), *(f"{100 * share:.1f}" for share in shares)]
        for tasks, repeats, shares in rows
    ]
    lowest = min(min(shares) for _, _, shares in rows)
    return (
        "# Coverage of the intervals\n\n"
        f"Percent of {simulations:,} simulated runs whose {100 * CONFIDENCE:.0f} % interval of the success rate "
        "contains the true rate: the lowest over correlations of "
        f"{', '.join(f'{value:g}' for value in CORRELATIONS)} between the repeats of a task. The rows named `score` "
        f"have scores of {SCORE} trials per task instead of successes. Lowest cell: {100 * lowest:.1f} %.\n\n"
        f"{table(header, cells)}\n\nMade by `{command}`.\n"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Simulate and write the table.

    Returns:
        0 when every cell reaches :data:`LEAST`, 1 otherwise.
    """
    parser = Parser(prog="python -m benchmarks.coverage", description=__doc__)
    parser.add_argument("--simulations", type=int, default=2000, help="runs per cell (default 2000)")
    default = Path(__file__).resolve().parent / "results" / "coverage.md"
    parser.add_argument("--out", type=Path, default=default, metavar="FILE", help="where the table goes")
    return run(parser, arguments, _write)


def _write(options: argparse.Namespace) -> int:
    rows = coverage_rows(options.simulations)
    command = f"python -m benchmarks.coverage --simulations {options.simulations}"
    write_bytes(options.out, coverage_markdown(rows, options.simulations, command).encode())
    lowest = min(min(shares) for _, _, shares in rows)
    print(f"lowest coverage {100 * lowest:.1f} %, in {options.out}")
    return COMPLETE if lowest >= LEAST else INCOMPLETE


if __name__ == "__main__":
    sys.exit(main())
