"""What a run writes beside checkpoints: ``metrics.jsonl`` and a progress bar that shows success."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from transformers import ProgressCallback, TrainerCallback

METRICS_FILE = "metrics.jsonl"


class MetricsFile(TrainerCallback):
    """Appends every log line to ``<output_dir>/metrics.jsonl`` with its step; a resumed run drops lines it repeats."""

    def __init__(self, output_dir: str) -> None:
        self.path = Path(output_dir) / METRICS_FILE

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Keep only lines of steps that the starting point has seen."""
        if not state.is_world_process_zero:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        kept = []
        if state.global_step > 0 and self.path.exists():
            lines = self.path.read_text(encoding="utf-8").splitlines()
            kept = [line for line in lines if json.loads(line)["step"] <= state.global_step]
        self.path.write_text("".join(line + "\n" for line in kept), encoding="utf-8")

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **kwargs: Any) -> None:
        """Append one line."""
        if state.is_world_process_zero and logs is not None:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"step": state.global_step, **logs}) + "\n")


class SuccessProgress(ProgressCallback):
    """The ordinary progress bar, with the latest success rates instead of printed dictionaries."""

    def __init__(self, max_str_len: int = 100) -> None:
        super().__init__(max_str_len)
        self.shown: dict[str, str] = {}

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **kwargs: Any) -> None:
        """Show success beside the bar."""
        names = {"env/success": "train", "eval_success": "panel"}
        for name, label in names.items():
            if logs and logs.get(name) is not None:
                self.shown[label] = f"{logs[name]:.0%}"
        if state.is_world_process_zero and self.training_bar is not None and self.shown:
            self.training_bar.set_postfix_str(" ".join(f"{label} {value}" for label, value in self.shown.items()))


def default_callbacks(args: Any) -> list[TrainerCallback]:
    """Return the callbacks every run has."""
    return [MetricsFile(args.output_dir)]
