"""Runs commands of ``seed-train`` side by side in processes of one thread each, with one progress bar a command.

Imports nothing heavy: the parent only watches.
"""

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

from seed_trainer.cli import UserError

METRICS_FILE = "metrics.jsonl"
LOG_FILE = "log.txt"
POLL_SECONDS = 0.5
QUIET_SECONDS = 20.0
SHOWN_LOG_LINES = 15
BAR_WIDTH = 24


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
class _State:
    """A job on its way: its process while it runs, and the line that is shown for it."""

    job: Job
    process: subprocess.Popen[bytes] | None = None
    log: IO[bytes] | None = None
    started: float = 0.0
    seconds: float | None = None
    said: float = 0.0

    def line(self) -> str:
        """Name, bar, steps, time and the latest success rates."""
        lines = read_metrics(self.job.folder) if self.process is not None or self.seconds is not None else []
        step = min(max((int(line["step"]) for line in lines), default=0), self.job.steps)
        bar = ""
        if self.job.steps:
            full = BAR_WIDTH * step // self.job.steps
            bar = f"|{'#' * full}{'.' * (BAR_WIDTH - full)}| {step}/{self.job.steps}"
        spent = self.seconds if self.seconds is not None else time.monotonic() - self.started
        clock = f"[{spent:.0f} s]" if self.process is not None or self.seconds is not None else "waiting"
        rates = []
        for key, label in (("env/success", "training"), ("eval_success", "panel")):
            values = [line[key] for line in lines if key in line]
            rates += [f"{label} {values[-1]:.0%}"] if values else []
        done = "done" if self.seconds is not None else ""
        parts = (f"{self.job.name:<18}", bar, clock, ", ".join(rates), done)
        return "  " + " ".join(part for part in parts if part)


class _Board:
    """Shows all jobs: on a terminal as lines that move, else as a new line now and then."""

    def __init__(self, states: Sequence[_State]) -> None:
        self.states = states
        self.moving = sys.stderr.isatty()
        self._drawn = False

    def draw(self) -> None:
        if self.moving:
            up = f"\x1b[{len(self.states)}A" if self._drawn else ""
            print(up + "".join(f"\r\x1b[K{state.line()}\n" for state in self.states), end="", file=sys.stderr)
            self._drawn = True
        else:
            now = time.monotonic()
            for state in self.states:
                ended = state.seconds is not None and state.said >= 0
                if ended or (state.process is not None and now - state.said > QUIET_SECONDS):
                    print(state.line(), file=sys.stderr)
                    state.said = -1.0 if ended else now
        sys.stderr.flush()


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
    states = [_State(job) for job in jobs]
    board = _Board(states)
    try:
        while any(state.seconds is None for state in states):
            running = sum(state.process is not None for state in states)
            for state in [state for state in states if state.process is None and state.seconds is None]:
                if running < workers:
                    _start(state)
                    running += 1
            time.sleep(POLL_SECONDS)
            codes = [(state, state.process.poll()) for state in states if state.process is not None]
            for state, code in codes:
                if code is not None:
                    _end(state)
            board.draw()
            for state, code in codes:
                if code:
                    raise UserError(_failure(state.job, code))
    finally:
        for state in states:
            if state.process is not None:
                state.process.terminate()
                state.process.wait()
                _end(state)
    return {state.job.name: state.seconds or 0.0 for state in states}


def _start(state: _State) -> None:
    folder = state.job.folder
    folder.mkdir(parents=True, exist_ok=True)
    state.log = (folder / LOG_FILE).open("wb")
    command = [sys.executable, "-W", "ignore", "-m", "seed_trainer", *state.job.arguments]
    state.process = subprocess.Popen(command, stdout=state.log, stderr=subprocess.STDOUT, env=environment())
    state.started = time.monotonic()


def _end(state: _State) -> None:
    if state.log is not None:
        state.log.close()
    state.process, state.seconds = None, time.monotonic() - state.started


def _failure(job: Job, code: int) -> str:
    log = job.folder / LOG_FILE
    tail = "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-SHOWN_LOG_LINES:])
    return (
        f"{job.name} ended with exit code {code}; command: seed-train {' '.join(job.arguments)}\n"
        f"last lines of {log}:\n{tail}"
    )


def read_metrics(folder: Path) -> list[dict[str, Any]]:
    """The whole lines that a run has logged so far."""
    path = folder / METRICS_FILE
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").split("\n")
    # The last piece is either empty or a line that is just being written.
    return [json.loads(line) for line in lines[:-1] if line]
