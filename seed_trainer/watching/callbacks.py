"""What a run writes beside checkpoints: ``metrics.jsonl`` and a progress bar that shows success."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from transformers import ProgressCallback, TrainerCallback

from seed_trainer.watching.linelog import LineLog

METRICS_FILE = "metrics.jsonl"


class RunFiles(TrainerCallback):
    """Appends every log line to ``metrics.jsonl`` and starts the run's other line files with it.

    Args:
        output_dir: Folder of the run.
        others: Line files that are written elsewhere.
    """

    def __init__(self, output_dir: str, others: Sequence[LineLog] = ()) -> None:
        self.metrics = LineLog(Path(output_dir) / METRICS_FILE)
        self.logs = [self.metrics, *others]
        self.kept: dict[str, int] | None = None

    def lengths(self) -> dict[str, int]:
        """Return the length of every file in bytes, all of it on the disk."""
        return {log.path.name: log.length() for log in self.logs}

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Keep only what the starting point has seen: by the lengths in the checkpoint, else by step."""
        if state.is_world_process_zero:
            for log in self.logs:
                log.begin(state.global_step, None if self.kept is None else self.kept.get(log.path.name))

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **kwargs: Any) -> None:
        """Append one line."""
        if state.is_world_process_zero and logs is not None:
            self.metrics.append(state.global_step, logs)


class SuccessProgress(ProgressCallback):
    """The ordinary progress bar, with the latest success rates instead of printed dictionaries.

    Where the error stream is no terminal, a line per log line takes the place of the bar.
    """

    def __init__(self, max_str_len: int = 100) -> None:
        super().__init__(max_str_len)
        self.shown: dict[str, str] = {}
        self.printed = ""

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **kwargs: Any) -> None:
        """Show success beside the bar."""
        names = {"env/success": "train", "eval_success": "panel"}
        for name, label in names.items():
            if logs and logs.get(name) is not None:
                self.shown[label] = f"{logs[name]:.0%}"
        if state.is_world_process_zero and self.training_bar is not None and self.shown:
            shown = " ".join(f"{label} {value}" for label, value in self.shown.items())
            self.training_bar.set_postfix_str(shown)
            line = f"step {state.global_step} of {state.max_steps}: {shown}"
            if self.training_bar.disable and line != self.printed:
                self.printed = line
                print(line, file=sys.stderr, flush=True)
