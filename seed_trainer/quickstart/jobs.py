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
QUIET_SECONDS = 20.0
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
    started: float
    bar: Any = None
    said: float = 0.0


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
    seconds: dict[str, float] = {}
    try:
        while waiting or running:
            while waiting and len(running) < workers:
                running.append(_start(waiting.pop(0), len(seconds) + len(running)))
            time.sleep(POLL_SECONDS)
            for item in list(running):
                code = item.process.poll()
                _show(item, ended=code is not None)
                if code is not None:
                    running.remove(item)
                    seconds[item.job.name] = time.monotonic() - item.started
                    _finish(item, code)
    finally:
        for item in running:
            item.process.terminate()
            item.process.wait()
            item.log.close()
    return seconds


def _start(job: Job, position: int) -> _Running:
    job.folder.mkdir(parents=True, exist_ok=True)
    log = (job.folder / LOG_FILE).open("wb")
    command = [sys.executable, "-W", "ignore", "-m", "seed_trainer", *job.arguments]
    process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=environment())
    item = _Running(job, process, log, time.monotonic())
    if sys.stderr.isatty():
        from tqdm.auto import tqdm

        form = "{desc} {percentage:3.0f}% |{bar:24}| {n_fmt}/{total_fmt} [{elapsed}] {postfix}"
        if not job.steps:
            form = "{desc} [{elapsed}] {postfix}"
        item.bar = tqdm(total=job.steps or None, desc=f"{job.name:<18}", position=position, bar_format=form)
    return item


def _show(item: _Running, ended: bool) -> None:
    """Move the bar to the last step that the child has logged; without a terminal, say it now and then."""
    lines = read_metrics(item.job.folder)
    step = max((int(line["step"]) for line in lines), default=0)
    rates = []
    for key, label in (("env/success", "training"), ("eval_success", "panel")):
        values = [line[key] for line in lines if key in line]
        rates += [f"{label} {values[-1]:.0%}"] if values else []
    if item.bar is not None:
        item.bar.n = min(step, item.job.steps) if item.job.steps else 0
        item.bar.set_postfix_str(", ".join(rates), refresh=False)
        item.bar.refresh()
        return
    now = time.monotonic()
    if ended or now - item.said > QUIET_SECONDS:
        item.said = now
        share = f" {min(step, item.job.steps)}/{item.job.steps}" if item.job.steps else ""
        state = " done" if ended else ""
        line = f"  {item.job.name}{share} [{now - item.started:.0f} s] {', '.join(rates)}{state}"
        print(line.rstrip(), file=sys.stderr, flush=True)


def read_metrics(folder: Path) -> list[dict[str, Any]]:
    """The whole lines that a run has logged so far."""
    path = folder / METRICS_FILE
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").split("\n")
    # The last piece is either empty or a line that is just being written.
    return [json.loads(line) for line in lines[:-1] if line]


def _finish(item: _Running, code: int) -> None:
    item.log.close()
    if item.bar is not None:
        item.bar.close()
    if code == 0:
        return
    text = (item.job.folder / LOG_FILE).read_text(encoding="utf-8", errors="replace")
    tail = "\n".join(text.splitlines()[-SHOWN_LOG_LINES:])
    raise UserError(
        f"{item.job.name} ended with exit code {code}; command: seed-train {' '.join(item.job.arguments)}\n"
        f"last lines of {item.job.folder / LOG_FILE}:\n{tail}"
    )
