"""``seed-train align``: measure value alignment (Eq. 8) of a saved policy under a configuration of ``rl``."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from seed_trainer.errors import UserError
from seed_trainer.settings.arguments import SEEDScriptArguments
from seed_trainer.settings.options import SEEDOptions, option
from seed_trainer.settings.quick import GRPO_SOURCES, look
from seed_trainer.settings.resolve import resolve

if TYPE_CHECKING:
    from seed_trainer.trainer import SEEDTrainer

OUTPUT_FILE = "alignment.json"


@dataclass
class AlignArguments:
    """Size of the measurement: states x (responses or tokens) x continuations episodes are played."""

    states: int = option(32, "Number of states S.")
    branch: Literal["responses", "tokens"] = option(
        "responses", "What is branched: whole sampled responses, or the likeliest tokens of one decision."
    )
    responses: int = option(4, "Sampled responses per state, K (branch=responses).")
    continuations: int = option(4, "Continuations per response, M.")
    align_seed: int = option(0, "Seed of states and samples.")


def main(argv: Sequence[str]) -> int:
    """Run the command and write ``alignment.json`` into the output folder."""
    glance = look(argv, [SEEDScriptArguments, SEEDOptions, AlignArguments], GRPO_SOURCES)
    glance.require("output_dir", "runs/NAME")
    from trl import ModelConfig

    from seed_trainer.commands.building import build_trainer, datasets, environment, model_name, resolve_model
    from seed_trainer.settings.config import SEEDConfig
    from seed_trainer.settings.tasks import draw_tasks
    from seed_trainer.watching.branching import measure_alignment, measure_token_alignment
    from seed_trainer.watching.panels import panel_tasks

    parts = [SEEDScriptArguments, SEEDConfig, ModelConfig, AlignArguments]
    resolved = resolve(argv, parts, "Measure value alignment.", prog="seed-train align")
    align = resolved.parts.pop()
    script, args, _ = resolved.parts
    if not args.output_dir or args.output_dir == "trainer_output":
        raise UserError("set output_dir: --output_dir runs/NAME")
    for name in ("states", "responses", "continuations"):
        if getattr(align, name) < (1 if name == "states" else 2):
            raise UserError(f"{name}={getattr(align, name)} is too small: the estimate is cross-fitted over at least 2")
    if script.cpu_threads > 0:
        import torch

        torch.set_num_threads(script.cpu_threads)
    make_env, profile = environment(script)
    train, panel = datasets(script, make_env)
    source = panel if panel is not None else train
    trainer = build_trainer(resolved, make_env, profile, train, panel)
    if trainer.teacher_weights.kept:
        _load_teacher(trainer, resolve_model(model_name(resolved)))
    rows = [source[int(index)] for index in draw_tasks([str(i) for i in range(len(source))], align.states)]
    tasks = panel_tasks(rows, 1)
    if align.branch == "tokens":
        result = measure_token_alignment(trainer, tasks, align.continuations, align.align_seed)
    else:
        result = measure_alignment(trainer, tasks, align.responses, align.continuations, align.align_seed)
    trainer.player.close()
    record = {**dataclasses.asdict(result), **dataclasses.asdict(align), "model": resolved.parts[2].model_name_or_path}
    path = Path(args.output_dir) / OUTPUT_FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    print(
        f"Cov(Q, w) {result.covariance:+.4f} [{result.low:+.4f}, {result.high:+.4f}] over {result.states} states, "
        f"gain {result.gain:+.4f}, mean gate {result.mean_gate:.3f}; same-sample estimate {result.naive:+.4f}\n{path}"
    )
    return 0


def _load_teacher(trainer: SEEDTrainer, folder: str) -> None:
    """Give a trainer the teacher that was saved beside its policy; the policy itself would be another one."""
    try:
        trainer.teacher_weights.load(Path(folder), trainer.accelerator.device)
    except ValueError:
        policy = trainer.args.teacher_policy
        raise UserError(
            f"teacher_policy={policy} has a teacher with weights of its own, and {folder!r} holds none: give a "
            "checkpoint with --model_name_or_path runs/NAME/checkpoint-N, or measure with --teacher_policy live"
        ) from None
