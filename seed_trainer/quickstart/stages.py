"""The steps of the quick start: stage 1, stage 2 with every method and seed, and a last look at the policies.

Every step is an ordinary command, printed before it runs, so each can be repeated alone.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from seed_trainer.quickstart.jobs import Job, run_jobs
from seed_trainer.quickstart.problems import BLIND, PROBLEMS, Problem
from seed_trainer.settings.resolve import load_config

POLICIES = ("before", "after stage 1", "after SEED")
REPEATS = 8
"""Episodes per task of stage 1."""
TRANSCRIPT_TASKS = 48


@dataclass(frozen=True)
class Plan:
    """Sizes of the demonstration.

    Attributes:
        folder: Where everything goes.
        seeds: Runs per method.
        rounds: Updates per run.
        panel: Tasks of the held-out panel; 0 is the whole split.
        sft_tasks: Training tasks of stage 1.
        workers: Processes at a time.
        model: The base model.
        problem: What is played, and which steps there are.
    """

    folder: Path
    seeds: int = 2
    rounds: int = 20
    panel: int = 120
    sft_tasks: int = 48
    workers: int = 2
    model: str = PROBLEMS["words"].model
    problem: Problem = PROBLEMS["words"]

    @property
    def start(self) -> str:
        """The model that stage 2 starts from."""
        return str(self.folder / "stage1") if self.problem.stages else self.model

    def run_folder(self, method: str, seed: int) -> Path:
        """Folder of one RL run."""
        return self.folder / f"{self.problem.methods[method]}-{seed}"

    def blind_folder(self, mode: str, run: Path) -> Path:
        """Folder of the evaluation, blind, of what is in a run folder or was before the runs."""
        return self.folder / f"{mode}-{run.name}"

    def runs(self) -> dict[str, Path]:
        """The folders of all RL runs, by what each is called."""
        seeds = range(self.seeds)
        return {f"{name}, seed {k}": self.run_folder(name, k) for k in seeds for name in self.problem.methods}

    def attempts_folder(self, policy: str) -> Path:
        """Folder of the games that one of the policies played at the end."""
        return self.folder / "attempts" / policy.replace(" ", "-")


def stage_1(plan: Plan) -> None:
    """Collect episodes of the base model with rule-written skills, and fine-tune on the skills; measure the base."""
    data, sft = plan.folder / "stage1-data", plan.folder / "stage1"
    say(f"Stage 1: {plan.model} plays {plan.sft_tasks} training tasks; rules write a skill about every episode.")
    collect = Job(
        "episodes",
        (
            "data",
            *("--env_profile", "compact", "--split", "compact_train", "--tasks", str(plan.sft_tasks)),
            *("--repeats", str(REPEATS), "--policy", plan.model, "--temperature", "1.0", "--max_turn_length", "10"),
            *("--max_prompt_length", "1000", "--annotator", "rules_terse", "--output_dir", str(data)),
        ),
        data,
    )
    _run([collect, _measured(plan, "base on the panel", plan.model, plan.folder / "before")], plan)
    say("Then it learns to write them.")
    tune = Job(
        "skill SFT",
        (
            *("sft", "--config", f"{plan.problem.config}_sft", "--model_name_or_path", plan.model),
            *("--data", str(data), "--output_dir", str(sft)),
        ),
        sft,
        _sft_steps(plan.problem, plan.sft_tasks * REPEATS),
    )
    _run([tune], plan)


def look(plan: Plan) -> None:
    """Measure the base, and also what it wins without its pictures."""
    before = plan.folder / "before"
    say(f"Before: {plan.model} plays the panel, with its pictures and with {_shown(plan)}.")
    base = {"base": (plan.model, before)}
    _run([_measured(plan, "base on the panel", plan.model, before), *_blind(plan, base)], plan)


def look_again(plan: Plan) -> None:
    """Measure what the trained policies win without their pictures: what they win without looking."""
    say(f"Afterwards: the trained policies play the panel with {_shown(plan)}.")
    _run(_blind(plan, {name: (str(run), run) for name, run in plan.runs().items()}), plan)


def _shown(plan: Plan) -> str:
    return " and with ".join(BLIND[mode] for mode in plan.problem.blind)


def _blind(plan: Plan, policies: dict[str, tuple[str, Path]]) -> list[Job]:
    """Name -> model and folder of its run: one job a policy and a way to be blind."""
    return [
        _measured(plan, f"{name}, {mode}", model, plan.blind_folder(mode, run), "--env_blind", mode)
        for name, (model, run) in policies.items()
        for mode in plan.problem.blind
    ]


def _measured(plan: Plan, name: str, model: str, folder: Path, *more: str) -> Job:
    return Job(name, (*_rl(plan, "vanilla", 0, folder), "--model_name_or_path", model, *more), folder)


def _sft_steps(problem: Problem, examples: int) -> int:
    """Optimiser steps of stage 1: batches of what is not held out, in every epoch."""
    config = load_config(f"{problem.config}_sft")
    trained: int = examples - math.ceil(config["validation_share"] * examples)
    return int(config["num_train_epochs"]) * math.ceil(trained / int(config["per_device_train_batch_size"]))


def stage_2(plan: Plan) -> None:
    """Train every method with every seed from the same model."""
    methods = plan.problem.methods
    steps = plan.rounds * steps_per_round(plan.problem)
    names, seeds, updates = " and ".join(methods), _count(plan.seeds, "seed"), _count(plan.rounds, "update")
    say(f"Stage 2: {names}, {seeds} each, {updates} of 64 episodes, equal in all else.")
    jobs = [
        Job(
            f"{method}, seed {seed}",
            (
                *_rl(plan, methods[method], seed, plan.run_folder(method, seed)),
                *("--model_name_or_path", plan.start),
            ),
            plan.run_folder(method, seed),
            steps,
        )
        for seed in range(plan.seeds)
        for method in methods
    ]
    _run(jobs, plan)


def _rl(plan: Plan, method: str, seed: int, folder: Path) -> tuple[str, ...]:
    return (
        *("rl", "--config", plan.problem.config, "--method", method, "--seed", str(seed), "--output_dir", str(folder)),
        *("--rounds", str(plan.rounds), "--eval_tasks", str(plan.panel), *plan.problem.arguments),
    )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' if number != 1 else ''}"


def say(text: str) -> None:
    """Print a line about what comes next; progress goes to the error stream, results to the output."""
    print(f"\n{text}", file=sys.stderr, flush=True)


def _run(jobs: Sequence[Job], plan: Plan) -> None:
    for job in jobs:
        print(f"  {job.command}", file=sys.stderr, flush=True)
    run_jobs(jobs, plan.workers)


def steps_per_round(problem: Problem) -> int:
    """Optimiser steps of one update of the x-axis (a round)."""
    return int(load_config(problem.config)["steps_per_generation"])


def play(plan: Plan) -> None:
    """Let the policy before, between and after the stages play the same games and write about its attempts."""
    say(f"Afterwards: three policies play the same {TRANSCRIPT_TASKS} games and write a skill about each attempt.")
    models = (plan.model, str(plan.folder / "stage1"), str(plan.run_folder("SEED", 0)))
    jobs = []
    for name, model in zip(POLICIES, models, strict=True):
        folder = plan.attempts_folder(name)
        arguments = ("--model", model, "--tasks", str(TRANSCRIPT_TASKS), "--output_dir", str(folder))
        jobs.append(Job(name, arguments, folder, module="seed_trainer.quickstart.attempts"))
    _run(jobs, plan)
