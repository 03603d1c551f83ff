"""The simulation behind the intervals: it judges the shipped function, and the function covers what it promises."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from seed_benchmarks import coverage
from seed_envs.statistics.means import bounded_interval


def test_the_simulation_judges_the_interval_that_is_shipped() -> None:
    rng = np.random.default_rng(0)
    solved = np.vstack([rng.binomial(5, 0.3, size=(20, 12)), np.zeros((1, 12)), np.full((1, 12), 5)]).astype(int)
    counts = np.stack([(solved == value).sum(axis=1) for value in range(6)], axis=1).astype(float)
    for rate in (0.0, 0.22, 0.3, 1.0):
        expected = []
        for row in solved:
            low, high = bounded_interval(np.repeat(row / 5, 5).tolist(), np.repeat(range(12), 5).tolist())
            expected.append(low <= rate <= high)
        assert coverage.contains(rate, np.arange(6) / 5, counts).tolist() == expected


@pytest.mark.parametrize("tasks", [5, 64])
@pytest.mark.parametrize(("repeats", "correlation"), [(1, 0.0), (3, 0.4), (20, 0.1), (20, 1.0), (coverage.SCORE, 0.4)])
def test_intervals_cover(tasks: int, repeats: int, correlation: float) -> None:
    shares = [coverage.coverage(tasks, repeats, rate, correlation, 600) for rate in (0.0, 0.02, 0.1, 0.5, 0.95, 1.0)]
    assert min(shares) >= coverage.LEAST
    assert shares[0] == shares[-1] == 1.0


def test_simulated_difficulties_have_the_rate_and_the_correlation_they_claim() -> None:
    rng = np.random.default_rng(1)
    drawn = coverage._difficulties(rng, 0.2, 0.3, (400, 500))
    assert drawn.mean() == pytest.approx(0.2, abs=0.003)
    assert drawn.var() == pytest.approx(0.3 * 0.2 * 0.8, rel=0.02)


def test_the_shipped_table_has_every_cell_and_none_too_low() -> None:
    text = (Path(coverage.__file__).resolve().parent / "results" / "coverage.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| ") and "tasks" not in line and "---" not in line]
    assert len(rows) == len(coverage.TASKS) * (len(coverage.REPEATS) + 1)
    cells = [[float(cell) for cell in row.split("|")[3:-1]] for row in rows]
    assert all(len(row) == len(coverage.RATES) for row in cells)
    assert min(map(min, cells)) >= 100 * coverage.LEAST
    assert "Made by `python -m benchmarks.coverage" in text


def test_a_small_table_is_written_and_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coverage, "TASKS", (5,))
    monkeypatch.setattr(coverage, "REPEATS", (1, 2))
    monkeypatch.setattr(coverage, "SCORE", 4)
    assert coverage.main(["--simulations", "200", "--out", str(tmp_path / "table.md")]) == 0
    text = (tmp_path / "table.md").read_text(encoding="utf-8")
    assert "| score" in text and "200 simulated runs" in text
    monkeypatch.setattr(coverage, "LEAST", 1.01)
    assert coverage.main(["--simulations", "20", "--out", str(tmp_path / "table.md")]) == 1
