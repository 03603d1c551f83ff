"""What the quick start says and draws: numbers as measured, with intervals and the words of caution."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from seed_trainer.quickstart.results import Panel, pooled, read_panels, results_table, seed_row, verdict
from seed_trainer.watching.panels import outcome_of_record


def episode(index: int, won: bool, steps: int = 10) -> dict[str, Any]:
    scores = {"success": won, "score": float(won), "scored": True}
    return {"task_id": f"t/{index}", "task_type": "all", "steps": steps, "invalid": 0, **scores}


def panel(won: int, played: int, steps: int = 10) -> Panel:
    return Panel([outcome_of_record(episode(index, index < won, steps)) for index in range(played)])


def write_run(folder: Path, rates: list[tuple[int, int, int]]) -> None:
    """An evaluations file: step, episodes won, episodes played; one more episode was ended by a fault."""
    folder.mkdir(parents=True)
    with (folder / "evaluations.jsonl").open("w", encoding="utf-8") as file:
        for step, won, played in rates:
            episodes = [episode(index, index < won) for index in range(played)]
            episodes.append({**episode(played, False), "steps": 3, "scored": False})
            file.write(json.dumps({"step": step, "prefix": "eval", "episodes": episodes}) + "\n")


@pytest.fixture
def runs(tmp_path: Path) -> dict[str, list[list[tuple[int, Panel]]]]:
    for name, end in (("seed-0", 70), ("seed-1", 60), ("grpo-0", 65), ("grpo-1", 65)):
        write_run(tmp_path / name, [(0, 20, 100), (8, 40, 100), (16, end, 100)])
    return {
        method: [read_panels(tmp_path / f"{method.lower()}-{seed}") for seed in range(2)] for method in ("SEED", "GRPO")
    }


def test_panels_leave_out_faults_and_pool(runs: dict[str, list[list[tuple[int, Panel]]]]) -> None:
    first = runs["SEED"][0]
    assert [step for step, _ in first] == [0, 8, 16]
    last = first[-1][1]
    assert (last.won, last.played, last.turns) == (70, 100, 10.0) and last.interval == pytest.approx(
        [0.6002, 0.7876], abs=1e-4
    )
    assert pooled([first[-1][1], runs["SEED"][1][-1][1]]).success == pytest.approx(0.65)


def test_table_and_verdict_say_what_was_measured_also_when_equal(
    runs: dict[str, list[list[tuple[int, Panel]]]],
) -> None:
    table = results_table(panel(15, 100, 14), runs)
    assert "| before " in table and "15.0%" in table and "14.0" in table
    row = next(line for line in table.splitlines() if "after RL, SEED, all seeds" in line)
    assert "65.0%" in row and "55.3% to 73.8%" in row and "130/200" in row
    text = verdict(runs)
    assert "SEED 65.0%, GRPO 65.0%" in text and "Two seeds are a demonstration and no evidence" in text
    one = {method: seeds[:1] for method, seeds in runs.items()}
    assert "One seed is a demonstration and no evidence" in verdict(one)


def test_the_table_of_pictures_has_no_stage_1_and_says_what_is_won_blind(
    runs: dict[str, list[list[tuple[int, Panel]]]],
) -> None:
    rows = results_table(
        panel(15, 100),
        runs,
        {"before, black": panel(3, 100), f"{seed_row('SEED', 0)}, black": panel(4, 100)},
        stages=False,
    )
    assert "after stage 1" not in rows
    assert [line.split("|")[1].strip() for line in rows.splitlines()[-2:]] == [
        "before, black",
        "after RL, SEED, seed 0, black",
    ]
    assert "3/100" in rows and "4/100" in rows


def test_a_panel_of_faults_has_no_rate(tmp_path: Path) -> None:
    write_run(tmp_path / "flaky", [(0, 0, 0)])
    ((_, nothing),) = read_panels(tmp_path / "flaky")
    assert (nothing.success, nothing.interval, nothing.turns, nothing.played) == (None, None, None, 0)
    runs = {"SEED": [[(0, nothing)]]}
    assert (
        "nan" not in results_table(nothing, runs)
        and "0/0 |" in results_table(nothing, runs)
        and "SEED -." in verdict(runs)
    )
    pytest.importorskip("matplotlib", reason="packages: needs matplotlib")
    from seed_trainer.quickstart.curves import draw

    draw(runs, nothing, 4, tmp_path / "curves.png")


def test_a_run_without_evaluations_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="was not evaluated"):
        read_panels(tmp_path)


def test_curves_are_drawn(runs: dict[str, list[list[tuple[int, Panel]]]], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="packages: needs matplotlib")
    from PIL import Image

    from seed_trainer.quickstart.curves import draw

    draw(runs, panel(15, 100, 14), 4, tmp_path / "curves.png")
    with Image.open(tmp_path / "curves.png") as image:
        colours = image.convert("RGB").getcolors(10**6)
    assert image.size[0] > 800 and colours is not None and len(colours) > 50
