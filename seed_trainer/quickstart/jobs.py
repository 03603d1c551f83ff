"""Runs Python modules side by side, in processes of one thread each that fetch nothing.

Imports nothing heavy: the parent only watches.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from seed_trainer.errors import UserError
from seed_trainer.quickstart.board import Board, Row

LOG_FILE = "log.txt"
POLL_SECONDS = 0.5
SHOWN_LOG_LINES = 15


@dataclass(frozen=True)
class Job:
    """One command.

    Attributes:
        name: Label of its line.
        arguments: What follows the module.
        folder: Where its log goes, and where its ``metrics.jsonl`` is looked for.
        steps: Optimiser steps, for the bar; 0 for commands that do not report any.
        module: Which module runs; the default is ``seed-train``.
    """

    name: str
    arguments: tuple[str, ...]
    folder: Path
    steps: int = 0
    module: str = "seed_trainer"

    @property
    def command(self) -> str:
        """The command as one would type it."""
        program = "seed-train" if self.module == "seed_trainer" else f"python -m {self.module}"
        return f"{program} {' '.join(self.arguments)}"


@dataclass
class _State:
    """A job on its way: what is shown of it, and its process while it runs."""

    job: Job
    row: Row
    process: subprocess.Popen[bytes] | None = None
    log: IO[bytes] | None = None

    def start(self) -> None:
        folder = self.job.folder
        folder.mkdir(parents=True, exist_ok=True)
        self.log = (folder / LOG_FILE).open("wb")
        command = [sys.executable, "-m", self.job.module, *self.job.arguments]
        self.process = subprocess.Popen(command, stdout=self.log, stderr=subprocess.STDOUT, env=environment())
        self.row.started = time.monotonic()

    def end(self) -> None:
        if self.log is not None:
            self.log.close()
        self.process, self.row.ended = None, time.monotonic()


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


def run_jobs(jobs: Sequence[Job], workers: int) -> None:
    """Run commands, at most ``workers`` at a time, in order; when this returns or raises, none is left running.

    Args:
        jobs: The commands.
        workers: Processes at a time.

    Raises:
        UserError: When one fails; the others are stopped, and the end of its log is in the message.
    """
    states = [_State(job, Row(job.name, job.folder, job.steps)) for job in jobs]
    board = Board([state.row for state in states])
    try:
        while any(state.row.ended is None for state in states):
            running = sum(state.process is not None for state in states)
            for state in [state for state in states if state.row.started is None][: max(0, workers - running)]:
                state.start()
            time.sleep(POLL_SECONDS)
            codes = [(state, state.process.poll()) for state in states if state.process is not None]
            for state, code in codes:
                if code == 0:
                    state.end()
            board.draw()
            for state, code in codes:
                if code:
                    raise UserError(_failure(state.job, code))
    finally:
        for state in states:
            if state.process is not None:
                state.process.terminate()
                state.process.wait()
                state.end()


def _failure(job: Job, code: int) -> str:
    log = job.folder / LOG_FILE
    tail = "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-SHOWN_LOG_LINES:])
    return f"{job.name} ended with exit code {code}; command: {job.command}\nlast lines of {log}:\n{tail}"
