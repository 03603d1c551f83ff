"""The report page: grouping of runs, self-containment, escaping; and the inspect and doctor commands."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from seed_envs.pages import gate_colour
from seed_trainer.cli import main
from seed_trainer.errors import UserError
from seed_trainer.report.data import group_runs, interval, mean, read_run, spread
from seed_trainer.report.page import render
from seed_trainer.report.svg import ticks


def make_run(folder: Path, seed: int, method: str = "seed", coef: float = 0.01, success: float = 0.5) -> Path:
    folder.mkdir(parents=True)
    settings = {"seed": seed, "output_dir": str(folder), "opd_coef": coef, "steps_per_generation": 4}
    (folder / "run.json").write_text(json.dumps({"training": settings, "script": {"method": method}, "model": {}}))
    lines: list[dict[str, Any]] = [
        {"step": step, "env/success": success + step / 100, "opd/gate_mean": 0.5, "time/rollout": 1.0, "kl": None}
        for step in (4, 8, 12)
    ]
    lines.append({"step": 12, "eval_success": success, "eval_success_low": 0.4, "eval_success_high": 0.6})
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"step": 16, "torn')
    record = {
        "step": 4,
        "round": 1,
        "task_id": "t<1>",
        "goal": "put <b>it</b> away",
        "success": True,
        "advantage": 0.5,
        "skill": "<script>alert(1)</script>",
        "skill_reason": "",
        "skill_origin": "own",
        "turns": [{"observation": "<img src=x>", "reply": "go", "valid": False, "reason": "a & b"}],
        "rows": [
            {
                "tokens": ["go", "<end>", "no"],
                "mask": [1, 1, 0],
                "student": [-1.0, -0.1, -3.0],
                "teacher": [-0.5, -0.1, -3.0],
                "gate": [0.92, 0.5, 0.5],
            }
        ],
    }
    (folder / "episodes.jsonl").write_text(json.dumps(record) + "\n")
    return folder


def test_runs_that_differ_in_their_seed_make_one_arm(tmp_path: Path) -> None:
    folders = [make_run(tmp_path / f"seed{s}", s) for s in (1, 2)] + [make_run(tmp_path / "grpo", 1, "grpo", 0.0, 0.3)]
    arms = group_runs([read_run(folder) for folder in folders])
    assert [(arm.name, len(arm.runs)) for arm in arms] == [("seed", 2), ("grpo", 1)]
    assert arms[0].points("env/success") == [(1.0, [0.54, 0.54]), (2.0, [0.58, 0.58]), (3.0, [0.62, 0.62])]


def test_arms_of_one_method_are_told_apart_by_what_differs(tmp_path: Path) -> None:
    folders = [make_run(tmp_path / str(c), 1, coef=c) for c in (0.01, 0.3)]
    assert [arm.name for arm in group_runs([read_run(f) for f in folders])] == [
        "seed (opd_coef=0.01)",
        "seed (opd_coef=0.3)",
    ]


class Outside(HTMLParser):
    """Collects whatever a page would load or run."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("script", "link", "img", "iframe", "object"):
            self.found.append(tag)
        self.found += [f"{name}={value}" for name, value in attrs if name in ("src", "href") or name.startswith("on")]


def test_page_is_self_contained_and_escapes_what_models_wrote(tmp_path: Path) -> None:
    page = render(group_runs([read_run(make_run(tmp_path / "run", 1))]))
    parser = Outside()
    parser.feed(page)
    assert parser.found == []
    assert "&lt;script&gt;alert(1)" in page and "url(" not in page and "@import" not in page
    assert "student -1.000, teacher -0.500, gate 0.920" in page
    assert "[0.400, 0.600]" in page and page.count("<svg") > 3


def test_folder_without_metrics_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UserError, match="no metrics.jsonl"):
        read_run(tmp_path)
    assert main(["report", str(tmp_path)]) == 2
    assert "seed-train report:" in capsys.readouterr().err


def test_a_broken_line_is_left_out_and_named_not_what_follows_it(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", 1)
    path = folder / "metrics.jsonl"
    lines = path.read_text().splitlines()[:-1]
    odd = ["[1, 2]", "{", '{"step": 6, "env/success": NaN, "kl": Infinity}', '{"env/success": 1.0}']
    path.write_text("\n".join([lines[0], *odd, *lines[1:]]) + "\n")
    run = read_run(folder)
    assert [x for x, _ in run.series("env/success")] == [1.0, 2.0, 3.0]
    page = render(group_runs([run]))
    assert "2 unreadable line(s) of metrics.jsonl left out: 2, 3" in page and "nan" not in page.lower()


def test_an_unfinished_run_says_so_and_a_broken_run_file_is_no_obstacle(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", 1)
    record = json.loads((folder / "run.json").read_text())
    record["training"]["max_steps"] = 40
    (folder / "run.json").write_text(json.dumps(record))
    assert "not finished: round 3 of 10" in render(group_runs([read_run(folder)]))
    (folder / "run.json").write_text('{"training": ')
    page = render(group_runs([read_run(folder)]))
    assert "run.json cannot be read (JSONDecodeError)" in page
    (folder / "metrics.jsonl").write_text("")
    assert "<h2>Curves</h2>" in render(group_runs([read_run(folder)])), "a run without a single line is no error"


def test_seeds_are_summed_up_with_deviation_and_interval(tmp_path: Path) -> None:
    folders = [make_run(tmp_path / f"seed{s}", s, success=0.4 + 0.1 * s) for s in (1, 2, 3)]
    page = render(group_runs([read_run(folder) for folder in folders]))
    assert "0.600 &plusmn; 0.100 <small>[0.352, 0.848]</small>" in page, "t with two degrees of freedom is 4.303"
    far = [make_run(tmp_path / f"far{s}", s, success=float(s)) for s in (0, 1)]
    assert "0.500 &plusmn; 0.707 <small>[0.000, 1.000]</small>" in render(group_runs([read_run(f) for f in far]))
    assert interval([0.5]) is None and interval([1.0] * 20) == (1.0, 1.0)


def test_thousands_of_episodes_and_rounds_make_no_endless_page(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", 1)
    (line,) = (folder / "episodes.jsonl").read_text().splitlines()
    record = json.loads(line)
    with (folder / "episodes.jsonl").open("w") as file:
        for number in range(10_000):
            file.write(json.dumps({**record, "round": number}) + "\n")
    with (folder / "metrics.jsonl").open("w") as file:
        for step in range(5_000):
            file.write(json.dumps({"step": 4 * step, "env/success": 0.5, "kl": step}) + "\n")
    run = read_run(folder)
    assert [episode["round"] for episode in run.episodes] == [0, 1, 2, 3, 9996, 9997, 9998, 9999]
    assert len(render(group_runs([run]))) < 200_000


def test_numbers_of_the_charts() -> None:
    assert ticks(0.0, 1.0) == pytest.approx([0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
    assert ticks(-3.0, 12.0) == pytest.approx([0.0, 5.0, 10.0])
    assert mean([1.0, 3.0]) == 2.0 and spread([1.0, 3.0]) == pytest.approx(1.0) and spread([1.0]) == 0.0
    assert gate_colour(0.5) == "rgb(255,255,255)" and gate_colour(1.0) != gate_colour(0.0)


def test_inspect_shows_student_teacher_and_analysis(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", "--skill", "LOOK IN THE FRIDGE"]) == 0
    shown = capsys.readouterr().out
    assert "student prompt, turn 1" in shown, "with history"
    student, teacher = shown.split("===== student prompt")[1].split("===== teacher prompt")
    assert "LOOK IN THE FRIDGE" not in student
    assert "LOOK IN THE FRIDGE" in teacher.split("===== reply")[0]
    assert "Outcome: success" in shown and '"episode_skill": "LOOK IN THE FRIDGE"' in shown
    assert main(["inspect", "--turn", "99"]) == 2
    assert "the oracle's episode has" in capsys.readouterr().err


def test_doctor_finds_this_installation_well(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    shown = capsys.readouterr().out
    assert "all well" in shown and "trl" in shown
