"""Pictures in training: what the processor takes of a whole step, in a child that trains the shipped model that sees.

There is no original. Sokoban is drawn at 168x168, the cards at 308x308; every different picture is read once.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from seed_envs.errors import require

from .rows import SpeedRow

ROUND = (
    "--env_profile paper --env_max_steps 4 --train_split train --train_tasks 8 --rounds 2 --rollout_layout turn "
    "--use_cpu true --bf16 false --gradient_checkpointing false --per_device_train_batch_size 4 --num_generations 4 "
    "--steps_per_generation 4 --gradient_accumulation_steps 4 --max_turn_length 16 --max_prompt_length 2000 "
    "--skill_source generic --log_episodes 0 --logging_steps 1 --save_strategy no --report_to none --cpu_threads 1"
).split()


def measure() -> list[SpeedRow]:
    """Trains two rounds of 16 episodes on each picture environment.

    Raises:
        DependencyMissing: Without what training needs.
    """
    require("trl", "train", "training on pictures")
    return [_row("Sokoban 168x168", "seed/Sokoban-v0"), _row("cards 308x308", "seed/EZPoints-v0")]


def _row(name: str, env_id: str) -> SpeedRow:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "seed_trainer", "rl", "--model_name_or_path", "builtin/vision-tiny"]
        command += ["--env_id", env_id, *ROUND, "--output_dir", folder, "--no_preflight", "true"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}: {done.stderr.strip()[-500:]}")
        lines = [json.loads(line) for line in (Path(folder) / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    steps = [line for line in lines if "step_time" in line]
    spent, whole = (sum(line.get(key, 0.0) for line in steps) for key in ("time/pictures", "step_time"))
    turns = sum(line["rows/real"] for line in steps)
    return SpeedRow(
        f"{name}: processor's share of a training step",
        100 * spent / whole,
        None,
        "%",
        how=f"wall clock over {len(steps)} rounds, {turns:.0f} turns",
        higher_is_better=False,
        note=f"{1e3 * spent / turns:.2f} of {1e3 * whole / turns:.1f} ms a turn; half a million weights on one thread, "
        "of larger models it is less",
    )
