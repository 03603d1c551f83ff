"""``seed-train quickstart``: stage 1, then SEED and GRPO side by side, then one table, one transcript, two pictures.

Every step is an ordinary ``seed-train`` command, printed before it runs, so each can be repeated alone. It prints what
was measured, whichever method comes out ahead.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from seed_trainer.cli import UserError
from seed_trainer.quickstart.jobs import Job, run_jobs
from seed_trainer.quickstart.results import Panel, read_panels, results_table, verdict

MODEL = "builtin/alfworld-tiny"
CONFIG = "quickstart"
METHODS = {"SEED": "seed", "GRPO": "grpo"}
TRANSCRIPT_TASKS = 48
ENV_ID = "seed/ALFWorld-v0"
TITLE = "Quick start: SEED and GRPO (a demonstration, no evidence)"
MARKER = "QUICKSTART.txt"


@dataclass(frozen=True)
class Plan:
    """Sizes of the demonstration.

    Attributes:
        folder: Where everything goes.
        seeds: Runs per method.
        rounds: Updates per run.
        panel: Tasks of the held-out panel.
        sft_tasks: Training tasks of stage 1.
        workers: Processes at a time.
        model: The base model.
    """

    folder: Path
    seeds: int = 2
    rounds: int = 20
    panel: int = 120
    sft_tasks: int = 48
    workers: int = 2
    model: str = MODEL

    def run_folder(self, method: str, seed: int) -> Path:
        """Folder of one RL run."""
        return self.folder / f"{METHODS[method]}-{seed}"


def build_parser() -> argparse.ArgumentParser:
    """The options."""
    plan = Plan(Path("runs/quickstart"))
    parser = argparse.ArgumentParser(prog="seed-train quickstart", description=__doc__)
    parser.add_argument("--output_dir", type=Path, default=plan.folder, help="default: %(default)s")
    parser.add_argument("--seeds", type=int, default=plan.seeds, help="runs per method (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=plan.rounds, help="updates per run (default: %(default)s)")
    parser.add_argument("--eval_tasks", type=int, default=plan.panel, help="panel size (default: %(default)s)")
    parser.add_argument("--sft_tasks", type=int, default=plan.sft_tasks, help="stage 1 tasks (default: %(default)s)")
    parser.add_argument("--workers", type=int, default=min(2, os.cpu_count() or 1), help="processes at a time")
    parser.add_argument("--model_name_or_path", default=plan.model, help="base model (default: %(default)s)")
    return parser


def main(argv: Sequence[str]) -> int:
    """Run the command."""
    options = build_parser().parse_args(list(argv))
    for name in ("seeds", "rounds", "eval_tasks", "sft_tasks", "workers"):
        if getattr(options, name) < 1:
            raise UserError(f"--{name} {getattr(options, name)}: expected at least 1")
    plan = Plan(
        options.output_dir,
        options.seeds,
        options.rounds,
        options.eval_tasks,
        options.sft_tasks,
        options.workers,
        options.model_name_or_path,
    )
    # The parent loads models too, at the end; nothing is looked up or reported over the network.
    os.environ.update({"HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1"})
    started = time.monotonic()
    prepare(plan.folder)
    stage_1(plan)
    stage_2(plan)
    conclude(plan)
    print(f"\nTook {(time.monotonic() - started) / 60:.1f} minutes. Nothing was downloaded.")
    return 0


def prepare(folder: Path) -> None:
    """Make the output folder; an earlier demonstration in it is replaced, anything else is left alone.

    Raises:
        UserError: When the folder holds something else.
    """
    if folder.exists() and any(folder.iterdir()):
        if not (folder / MARKER).exists():
            raise UserError(f"--output_dir {folder}: not empty, and not made by this command; choose another folder")
        for item in folder.iterdir():
            if item.is_dir():
                shutil.rmtree(item)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MARKER).write_text("This folder is made, and made anew, by `seed-train quickstart`.\n", encoding="utf-8")


def stage_1(plan: Plan) -> None:
    """Collect episodes of the base model with rule-written skills, and fine-tune on the skills; measure the base."""
    data, sft = plan.folder / "stage1-data", plan.folder / "stage1"
    _say(f"Stage 1: {plan.model} plays {plan.sft_tasks} training tasks; rules write a skill about every episode.")
    collect = Job(
        "episodes",
        (
            "data",
            *("--env_profile", "compact", "--split", "compact_train", "--tasks", str(plan.sft_tasks)),
            *("--repeats", "8", "--policy", plan.model, "--temperature", "1.0", "--max_turn_length", "10"),
            *("--max_prompt_length", "1000", "--annotator", "rules_terse", "--output_dir", str(data)),
        ),
        data,
    )
    measure = Job(
        "base on the panel",
        (*_rl(plan, "vanilla", 0, plan.folder / "before"), "--model_name_or_path", plan.model),
        plan.folder / "before",
    )
    _run([collect, measure], plan)
    _say("Then it learns to write them.")
    tune = Job(
        "skill SFT",
        (
            *("sft", "--config", f"{CONFIG}_sft", "--model_name_or_path", plan.model),
            *("--data", str(data), "--output_dir", str(sft)),
        ),
        sft,
    )
    _run([tune], plan)


def stage_2(plan: Plan) -> None:
    """Train every method with every seed from the model of stage 1."""
    from seed_trainer.resolve import load_config

    config = load_config(CONFIG)
    steps = plan.rounds * int(config["steps_per_generation"])
    names = " and ".join(METHODS)
    _say(f"Stage 2: {names}, {plan.seeds} seeds each, {plan.rounds} updates of 64 episodes, equal in all else.")
    jobs = [
        Job(
            f"{method}, seed {seed}",
            (
                *_rl(plan, METHODS[method], seed, plan.run_folder(method, seed)),
                *("--model_name_or_path", str(plan.folder / "stage1")),
            ),
            plan.run_folder(method, seed),
            steps,
        )
        for seed in range(plan.seeds)
        for method in METHODS
    ]
    _run(jobs, plan)


def _rl(plan: Plan, method: str, seed: int, folder: Path) -> tuple[str, ...]:
    return (
        *("rl", "--config", CONFIG, "--method", method, "--seed", str(seed), "--output_dir", str(folder)),
        *("--rounds", str(plan.rounds), "--eval_tasks", str(plan.panel)),
    )


def _say(text: str) -> None:
    print(f"\n{text}", file=sys.stderr, flush=True)


def _run(jobs: Sequence[Job], plan: Plan) -> None:
    for job in jobs:
        print(f"  seed-train {' '.join(job.arguments)}", file=sys.stderr, flush=True)
    run_jobs(jobs, plan.workers)


def conclude(plan: Plan) -> None:
    """Print table, transcript and paths."""
    from seed_trainer.commands import report
    from seed_trainer.commands.rl import resolve_model
    from seed_trainer.quickstart import curves, transcripts
    from seed_trainer.resolve import load_config

    steps_per_round = int(load_config(CONFIG)["steps_per_generation"])
    before = read_panels(plan.folder / "before")[0][1]
    runs: dict[str, list[list[tuple[int, Panel]]]] = {
        method: [read_panels(plan.run_folder(method, seed)) for seed in range(plan.seeds)] for method in METHODS
    }
    curves.draw(runs, before, steps_per_round, plan.folder / "curves.png")
    tasks = [f"compact/test/{number}" for number in range(TRANSCRIPT_TASKS)]
    models = {
        "before": resolve_model(plan.model),
        "after stage 1": str(plan.folder / "stage1"),
        "after SEED": str(plan.run_folder("SEED", 0)),
    }
    played = {name: transcripts.attempts(path, ENV_ID, "compact", tasks, 0) for name, path in models.items()}
    counts = ((name, *transcripts.agreement(attempts)) for name, attempts in played.items())
    words = ", ".join(f"{name} {same}/{total}" for name, same, total in counts)
    summary = (
        f"{results_table(before, runs)}\n\n{verdict(runs)}\n"
        f"Skills that say word for word what the rules would write about the same attempt: {words}."
    )
    (plan.folder / "results.md").write_text(summary + "\n", encoding="utf-8")
    print(f"\nSuccess on {plan.panel} held-out tasks (sampled as in training):\n\n{summary}\n")
    pair = played["after stage 1"], played["after SEED"]
    index = transcripts.telling_pair(*pair)
    titles = ("before RL", "after SEED")
    text = "\n\n".join(transcripts.show(title, side[index]) for title, side in zip(titles, pair, strict=True))
    (plan.folder / "transcript.txt").write_text(text + "\n", encoding="utf-8")
    print(text)
    folders = [str(plan.run_folder(method, seed)) for method in METHODS for seed in range(plan.seeds)]
    print()
    report.main([*folders, "--output", str(plan.folder / "report.html"), "--title", TITLE])
    for name in ("curves.png", "results.md", "transcript.txt"):
        print(plan.folder / name)
