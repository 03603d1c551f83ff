"""``seed-train quickstart``: stage 1, then SEED and GRPO side by side, then one table, one transcript, two pictures.

This process only watches and lays out; the work is done by the commands of :mod:`seed_trainer.quickstart.stages`. It
prints what was measured, whichever method comes out ahead. It does not resume: a run always starts anew.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from seed_envs.command_line import INTERRUPTED, Parser, stoppable
from seed_envs.errors import DependencyMissing, require
from seed_trainer.errors import UserError
from seed_trainer.quickstart.results import Panel, read_panels, results_table, verdict
from seed_trainer.quickstart.stages import METHODS, POLICIES, Plan, play, say, stage_1, stage_2, steps_per_round
from seed_trainer.quickstart.transcripts import agreement, read_attempts, show, telling_pair

TITLE = "Quick start: SEED and GRPO (a demonstration, no evidence)"
MARKER = "QUICKSTART.txt"
PACKAGES = ("torch", "transformers", "trl", "datasets", "accelerate", "matplotlib", "yaml")
FOLDERS = ("before", "stage1-data", "stage1", "attempts", *(f"{name}-[0-9]*" for name in METHODS.values()))
PICTURE, RESULTS, TRANSCRIPT, REPORT = FILES = ("curves.png", "results.md", "transcript.txt", "report.html")


def build_parser() -> Parser:
    """The options."""
    plan = Plan(Path("runs/quickstart"))
    about = "Stage 1, then SEED and GRPO side by side, on the embedded problem; minutes on two CPU cores, no downloads."
    parser = Parser(prog="seed-train quickstart", description=about)
    parser.add_argument("--output_dir", type=Path, default=plan.folder, help="default: %(default)s")
    parser.add_argument("--seeds", type=int, default=plan.seeds, help="runs per method (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=plan.rounds, help="updates per run (default: %(default)s)")
    parser.add_argument("--eval_tasks", type=int, default=plan.panel, help="panel size (default: %(default)s)")
    parser.add_argument("--sft_tasks", type=int, default=plan.sft_tasks, help="stage 1 tasks (default: %(default)s)")
    parser.add_argument(
        "--workers", type=int, default=min(2, os.cpu_count() or 1), help="processes at a time (default: %(default)s)"
    )
    parser.add_argument("--model_name_or_path", default=plan.model, help="base model (default: %(default)s)")
    return parser


def main(argv: Sequence[str]) -> int:
    """Run the command."""
    options = build_parser().parse_args(list(argv))
    for name in ("seeds", "rounds", "eval_tasks", "sft_tasks", "workers"):
        if getattr(options, name) < 1:
            raise UserError(f"--{name} {getattr(options, name)}: expected at least 1")
    check_installation()
    plan = Plan(
        options.output_dir,
        options.seeds,
        options.rounds,
        options.eval_tasks,
        options.sft_tasks,
        options.workers,
        options.model_name_or_path,
    )
    started = time.monotonic()
    try:
        with stoppable():
            prepare(plan.folder)
            stage_1(plan)
            stage_2(plan)
            play(plan)
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


def conclude(plan: Plan) -> None:
    """Print table, transcript and paths."""
    from seed_trainer.commands import report
    from seed_trainer.quickstart import curves

    before = read_panels(plan.folder / "before")[0][1]
    runs: dict[str, list[list[tuple[int, Panel]]]] = {
        method: [read_panels(plan.run_folder(method, seed)) for seed in range(plan.seeds)] for method in METHODS
    }
    curves.draw(runs, before, steps_per_round(), plan.folder / PICTURE)
    played = {name: read_attempts(plan.attempts_folder(name)) for name in POLICIES}
    counts = ((name, *agreement(attempts)) for name, attempts in played.items())
    words = ", ".join(f"{name} {same}/{total}" for name, same, total in counts)
    summary = (
        f"{results_table(before, runs)}\n\n{verdict(runs)}\n"
        f"Skills that say word for word what the rules would write about the same attempt: {words}."
    )
    (plan.folder / RESULTS).write_text(summary + "\n", encoding="utf-8")
    print(f"\nSuccess on {plan.panel} held-out tasks (sampled as in training):\n\n{summary}\n")
    pair = played[POLICIES[1]], played[POLICIES[2]]
    index = telling_pair(*pair)
    titles = ("before RL", "after SEED")
    text = "\n\n".join(show(title, side[index]) for title, side in zip(titles, pair, strict=True))
    (plan.folder / TRANSCRIPT).write_text(text + "\n", encoding="utf-8")
    print(f"{text}\n")
    folders = [str(plan.run_folder(method, seed)) for method in METHODS for seed in range(plan.seeds)]
    report.main([*folders, "--output", str(plan.folder / REPORT), "--title", TITLE])
    for name in (PICTURE, RESULTS, TRANSCRIPT):
        print(plan.folder / name)
