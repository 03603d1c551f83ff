"""What a speed comparison is: rows of "ours against the original", and the clock they are measured with.

Every module ``benchmarks/speed/<name>.py`` exposes one function::

    def measure() -> list[SpeedRow]: ...

``python -m benchmarks.speed <name>`` runs it in a child process of its own and prints the rows as a table and JSON.
``measure`` runs both sides itself, in one process, interleaved (:func:`compare_rates`). It may raise
``seed_envs.errors.DataMissing`` or ``DependencyMissing`` when a witness is not there: the comparison is then shown as
skipped, with that message. Nothing here asserts anything about speed.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class SpeedRow:
    """One comparison.

    Attributes:
        workload: What was done, e.g. ``"steps of valid_seen walkthroughs"``.
        ours: The value of this project, in ``unit``.
        original: The value of the original in the same run, or None where none exists (then there is no ratio).
        unit: ``"steps/s"``, ``"ms/query"``, ``"MB"``, ...
        original_name: What the original is, with its version, e.g. ``"TextWorld 1.7.0"``.
        how: One sentence: which clock, how many repetitions, over what.
        higher_is_better: False for times and memory.
        note: Anything a reader must know, or ``""``.
    """

    workload: str
    ours: float
    original: float | None
    unit: str
    original_name: str = ""
    how: str = "CPU time (time.process_time), median of 3 interleaved repetitions"
    higher_is_better: bool = True
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """How many times better ours is (above 1: better), whatever the unit; None without an original."""
        if self.original is None:
            return None
        better, worse = (self.ours, self.original) if self.higher_is_better else (self.original, self.ours)
        return better / worse if worse > 0 else float("inf")

    def to_json(self) -> dict[str, Any]:
        """Fields and ratio."""
        return {**asdict(self), "ratio": self.ratio}


Work = Callable[[], int]
Clock = Callable[[], float]


def compare_rates(
    ours: Work, original: Work, *, seconds: float = 1.0, repeats: int = 3, clock: Clock = time.process_time
) -> tuple[float, float]:
    """Rates of two pieces of work, measured in turns so that a busy machine hits both alike.

    Args:
        ours: Does one portion of work and returns how many units it did. Called once before the clock starts.
        original: The same for the original.
        seconds: CPU seconds per measurement, at least one portion.
        repeats: Measurements of each; the median counts.
        clock: CPU seconds of the process; ``time.thread_time`` where another thread of it (a JVM's) must not count.

    Returns:
        Units per CPU second of ours and of the original.
    """
    ours()
    original()
    rates: tuple[list[float], list[float]] = ([], [])
    for _ in range(repeats):
        for side, work in zip(rates, (ours, original), strict=True):
            side.append(measure_rate(work, seconds, clock))
    return statistics.median(rates[0]), statistics.median(rates[1])


def measure_rate(work: Work, seconds: float = 1.0, clock: Clock = time.process_time) -> float:
    """Units per CPU second of ``work``, repeated until ``seconds`` CPU seconds have passed on ``clock``."""
    done, started = 0, clock()
    while True:
        done += work()
        elapsed = clock() - started
        if elapsed >= seconds:
            return done / elapsed
