"""``seed-train quickstart``: stage 1, then SEED and GRPO side by side, then one table, one transcript, two pictures.

This process only watches and lays out; the work is done by the commands of :mod:`seed_trainer.quickstart.stages`. It
prints what was measured, whichever method comes out ahead. It does not resume: a run always starts anew.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from seed_envs.command_line import INTERRUPTED, Parser, stoppable
from seed_envs.errors import DependencyMissing, require
from seed_trainer.errors import UserError
from seed_trainer.quickstart.problems import BLIND, PROBLEMS
from seed_trainer.quickstart.results import Panel, read_panels, results_table, seed_row, verdict
from seed_trainer.quickstart.stages import (
    POLICIES,
    Plan,
    look,
    look_again,
    play,
    say,
    stage_1,
    stage_2,
    steps_per_round,
)
from seed_trainer.quickstart.transcripts import agreement, read_attempts, show, telling_pair

TITLE = "Quick start (a demonstration, no evidence)"
MARKER = "QUICKSTART.txt"
PACKAGES = ("torch", "transformers", "trl", "datasets", "accelerate", "matplotlib", "yaml")
_RUNS = sorted({f"{name}-[0-9]*" for problem in PROBLEMS.values() for name in problem.methods.values()})
FOLDERS = ("before", "stage1-data", "stage1", "attempts", *(f"{mode}-*" for mode in BLIND), *_RUNS)
PICTURE, RESULTS, TRANSCRIPT, REPORT = FILES = ("curves.png", "results.md", "transcript.txt", "report.html")


def build_parser() -> Parser:
    """The options."""
    plan = Plan(Path())
    about = (
        "SEED and GRPO side by side. Words: household games, after stage 1. Cards and rooms: EZPoints and Sokoban from "
        "pixels, and the same policies before another task's pictures. Minutes on two CPU cores, no downloads."
    )
    parser = Parser(prog="seed-train quickstart", description=about)
    parser.add_argument("--problem", choices=sorted(PROBLEMS), default="words", help="default: %(default)s")
    parser.add_argument("--output_dir", type=Path, help="default: the problem's, under runs/")
    parser.add_argument("--seeds", type=int, default=plan.seeds, help="runs per method (default: %(default)s)")
    parser.add_argument("--rounds", type=int, help="updates per run (default: the problem's)")
    parser.add_argument("--eval_tasks", type=int, help="panel size (default: the problem's)")
    parser.add_argument("--sft_tasks", type=int, default=plan.sft_tasks, help="stage 1 tasks (default: %(default)s)")
    parser.add_argument(
        "--workers", type=int, default=min(2, os.cpu_count() or 1), help="processes at a time (default: %(default)s)"
    )
    parser.add_argument("--model_name_or_path", help="base model (default: the problem's)")
    return parser


def main(argv: Sequence[str]) -> int:
    """Run the command."""
    options = build_parser().parse_args(list(argv))
    problem = PROBLEMS[options.problem]
    options.rounds = problem.rounds if options.rounds is None else options.rounds
    for name in ("seeds", "rounds", "eval_tasks", "sft_tasks", "workers"):
        value = getattr(options, name)
        if value is not None and value < 1:
            raise UserError(f"--{name} {value}: expected at least 1")
    check_installation()
    plan = Plan(
        options.output_dir or Path(problem.folder),
        options.seeds,
        options.rounds,
        problem.panel if options.eval_tasks is None else options.eval_tasks,
        options.sft_tasks,
        options.workers,
        options.model_name_or_path or problem.model,
        problem,
    )
    started = time.monotonic()
    try:
        with stoppable():
            prepare(plan.folder)
            for step in steps_of(plan):
                step(plan)
            conclude(plan)
    except KeyboardInterrupt:
        print("\nInterrupted; nothing is left running. The same command starts anew.", file=sys.stderr)
        return INTERRUPTED
    print(f"\nTook {(time.monotonic() - started) / 60:.1f} minutes. Nothing was downloaded.")
    return 0


def check_installation() -> None:
    """Look for what the jobs need, before the first one starts; nothing is imported.

    Raises:
        UserError: Naming the first package that is missing and the command that installs it.
    """
    try:
        for package in PACKAGES:
            require(package, "train", "the quick start")
    except DependencyMissing as error:
        raise UserError(str(error)) from None


def prepare(folder: Path) -> None:
    """Make the output folder; an earlier demonstration in it is replaced, anything else is left alone.

    Raises:
        UserError: When the folder holds something else, or cannot be written to.
    """
    try:
        if folder.exists() and any(folder.iterdir()):
            if not (folder / MARKER).exists():
                raise UserError(
                    f"--output_dir {folder}: not empty, and not made by this command; choose another folder"
                )
            say(f"{folder} holds an earlier quick start, finished or not; it is replaced.")
            for item in [item for pattern in FOLDERS for item in folder.glob(pattern)]:
                shutil.rmtree(item)
            for name in FILES:
                (folder / name).unlink(missing_ok=True)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / MARKER).write_text(
            "This folder is made, and made anew, by `seed-train quickstart`.\n", encoding="utf-8"
        )
    except OSError as error:
        raise UserError(
            f"--output_dir {folder} cannot be written to ({error.strerror}); choose another folder"
        ) from None


def steps_of(plan: Plan) -> list[Callable[[Plan], None]]:
    """The steps of a problem, in order."""
    first: list[Callable[[Plan], None]] = [stage_1] if plan.problem.stages else [look]
    return [*first, stage_2, *([play] if plan.problem.stages else []), *([look_again] if plan.problem.blind else [])]


def conclude(plan: Plan) -> None:
    """Print table, transcript and paths."""
    from seed_trainer.commands import report
    from seed_trainer.quickstart import curves

    problem = plan.problem
    before = _last(plan.folder / "before")
    runs: dict[str, list[list[tuple[int, Panel]]]] = {
        method: [read_panels(plan.run_folder(method, seed)) for seed in range(plan.seeds)] for method in problem.methods
    }
    curves.draw(runs, before, steps_per_round(problem), plan.folder / PICTURE)
    summary = f"{results_table(before, runs, _blind(plan), problem.stages)}\n\n{verdict(runs)}"
    text = ""
    if problem.stages:
        played = {name: read_attempts(plan.attempts_folder(name)) for name in POLICIES}
        counts = ((name, *agreement(attempts)) for name, attempts in played.items())
        words = ", ".join(f"{name} {same}/{total}" for name, same, total in counts)
        summary += f"\nSkills that say word for word what the rules would write about the same attempt: {words}."
        pair = played[POLICIES[1]], played[POLICIES[2]]
        index = telling_pair(*pair)
        titles = ("before RL", "after SEED")
        text = "\n\n".join(show(title, side[index]) for title, side in zip(titles, pair, strict=True))
        (plan.folder / TRANSCRIPT).write_text(text + "\n", encoding="utf-8")
    (plan.folder / RESULTS).write_text(summary + "\n", encoding="utf-8")
    print(f"\nSuccess on held-out tasks (sampled as in training):\n\n{summary}\n\n{text}")
    folders = [str(run) for run in plan.runs().values()]
    report.main([*folders, "--output", str(plan.folder / REPORT), "--title", TITLE])
    for name in (PICTURE, RESULTS, TRANSCRIPT):
        if (plan.folder / name).exists():
            print(plan.folder / name)


def _last(folder: Path) -> Panel:
    return read_panels(folder)[-1][1]


def _blind(plan: Plan) -> dict[str, Panel]:
    """What is won without the own pictures, by the row's name."""
    runs = {"before": plan.folder / "before"}
    for method in plan.problem.methods:
        runs |= {seed_row(method, seed): plan.run_folder(method, seed) for seed in range(plan.seeds)}
    return {
        f"{name}, {BLIND[mode]}": _last(plan.blind_folder(mode, run))
        for mode in plan.problem.blind
        for name, run in runs.items()
    }
