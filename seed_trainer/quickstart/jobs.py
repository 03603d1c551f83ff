"""Runs commands of ``seed-train`` side by side in processes of one thread each, with one progress bar a command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from seed_trainer.callbacks import METRICS_FILE
from seed_trainer.cli import UserError

LOG_FILE = "log.txt"
POLL_SECONDS = 0.5
SHOWN_LOG_LINES = 15


@dataclass(frozen=True)
class Job:
    """One command.

    Attributes:
        name: Label of its bar.
        arguments: What follows ``seed-train``.
        folder: Where its log goes, and where its ``metrics.jsonl`` is looked for.
        steps: Optimiser steps, for the bar; 0 for commands that do not report any.
    """

    name: str
    arguments: tuple[str, ...]
    folder: Path
    steps: int = 0


@dataclass
class _Running:
    job: Job
    process: subprocess.Popen[bytes]
    log: IO[bytes]
    bar: Any


def environment() -> dict[str, str]:
    """Variables of a child: one thread, nothing fetched or reported over the network."""
    fixed = {
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "HF_HUB_OFFLINE": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "TRL_EXPERIMENTAL_SILENCE": "1",
        "PYTHONUNBUFFERED": "1",
    }
    return {**os.environ, **fixed}


def run_jobs(jobs: Sequence[Job], workers: int) -> dict[str, float]:
    """Run commands, at most ``workers`` at a time, in order.

    Args:
        jobs: The commands.
        workers: Processes at a time.

    Returns:
        Wall seconds by job name.

    Raises:
        UserError: When one fails; the others are stopped, and the end of its log is in the message.
    """
    waiting = list(jobs)
    running: list[_Running] = []
    started: dict[str, float] = {}
    seconds: dict[str, float] = {}
    try:
        while waiting or running:
            while waiting and len(running) < workers:
                job = waiting.pop(0)
                started[job.name] = time.monotonic()
                running.append(_start(job, len(seconds) + len(running)))
            time.sleep(POLL_SECONDS)
            for item in list(running):
                _show(item)
                code = item.process.poll()
                if code is None:
                    continue
                running.remove(item)
                seconds[item.job.name] = time.monotonic() - started[item.job.name]
                _finish(item, code)
    finally:
        for item in running:
            item.process.terminate()
            item.process.wait()
            item.log.close()
            item.bar.close()
    return seconds


def _start(job: Job, position: int) -> _Running:
    from tqdm.auto import tqdm

    job.folder.mkdir(parents=True, exist_ok=True)
    log = (job.folder / LOG_FILE).open("wb")
    command = [sys.executable, "-W", "ignore", "-m", "seed_trainer", *job.arguments]
    process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=environment())
    form = "{desc} {percentage:3.0f}% |{bar:24}| {n_fmt}/{total_fmt} [{elapsed}]{postfix}"
    if not job.steps:
        form = "{desc} [{elapsed}]{postfix}"
    bar = tqdm(total=job.steps or None, desc=f"{job.name:<16}", position=position, bar_format=form, leave=True)
    return _Running(job, process, log, bar)


def _show(item: _Running) -> None:
    """Move the bar to the last step the child has logged."""
    lines = _metrics(item.job.folder)
    steps = [line["step"] for line in lines]
    if item.job.steps and steps:
        item.bar.n = min(max(steps), item.job.steps)
    for key, label in (("env/success", "train"), ("eval_success", "panel")):
        values = [line[key] for line in lines if key in line]
        if values:
            item.bar.set_postfix({**_postfix(item.bar), label: f"{values[-1]:.0%}"}, refresh=False)
    item.bar.refresh()


def _postfix(bar: Any) -> dict[str, str]:
    text = bar.postfix or ""
    return dict(part.split("=", 1) for part in text.split(", ") if "=" in part)


def _metrics(folder: Path) -> list[dict[str, Any]]:
    path = folder / METRICS_FILE
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").split("\n")
    # The last piece is either empty or a line that is just being written.
    return [json.loads(line) for line in lines[:-1] if line]


def _finish(item: _Running, code: int) -> None:
    item.log.close()
    if item.job.steps and code == 0:
        item.bar.n = item.job.steps
    item.bar.refresh()
    item.bar.close()
    if code != 0:
        text = (item.job.folder / LOG_FILE).read_text(encoding="utf-8", errors="replace")
        tail = "\n".join(text.splitlines()[-SHOWN_LOG_LINES:])
        raise UserError(
            f"{item.job.name} ended with exit code {code}; command: seed-train {' '.join(item.job.arguments)}\n"
            f"last lines of {item.job.folder / LOG_FILE}:\n{tail}"
        )
