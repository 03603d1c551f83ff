"""What ``--dry_run`` prints: every resolved value with its origin, and the arithmetic of a round."""

from __future__ import annotations

import dataclasses
from typing import Any

from seed_trainer.settings.arguments import SEEDScriptArguments
from seed_trainer.settings.config import SEEDConfig
from seed_trainer.settings.options import SEEDOptions
from seed_trainer.settings.resolve import Resolved, default_source

SHOWN_TRL_FIELDS = tuple(
    (
        "output_dir seed learning_rate lr_scheduler_type warmup_steps max_grad_norm beta epsilon delta entropy_coef "
        "loss_type temperature num_generations per_device_train_batch_size steps_per_generation "
        "gradient_accumulation_steps num_iterations max_steps logging_steps eval_strategy save_strategy use_vllm bf16 "
        "gradient_checkpointing disable_dropout use_bias_correction_kl report_to resume_from_checkpoint"
    ).split()
)


DERIVED = {
    "max_steps": "rounds",
    "logging_steps": "rounds",
    "eval_strategy": "eval_rounds",
    "eval_steps": "eval_rounds",
    "save_steps": "save_rounds",
    "max_completion_length": "max_turn_length",
}
"""TRL fields that follow from a field of ours unless they are given."""


def resolved_rows(resolved: Resolved) -> list[tuple[str, str, str]]:
    """Return (field, value, origin) of our fields, of the TRL fields that matter, and of every field that was set."""
    ours = {item.name for item in dataclasses.fields(SEEDOptions)} | {
        item.name for item in dataclasses.fields(SEEDScriptArguments)
    }
    rows = []
    for part in resolved.parts:
        for item in dataclasses.fields(part):
            if item.name in ours or item.name in SHOWN_TRL_FIELDS or item.name in resolved.origin:
                follows = DERIVED.get(item.name) if getattr(part, item.name) != item.default else None
                origin = resolved.origin.get(item.name, f"from {follows}" if follows else default_source(item))
                rows.append((item.name, _text(getattr(part, item.name)), origin))
    return rows


def _text(value: Any) -> str:
    return str(getattr(value, "value", value))


def arithmetic(args: SEEDConfig, training_tasks: int) -> list[tuple[str, str]]:
    """Return the sizes that follow from a configuration."""
    world = args.world_size
    episodes = args.episodes_per_process * world
    tasks = episodes // args.num_generations
    rounds = args.max_steps / args.steps_per_round if args.max_steps > 0 else None
    draws = tasks * rounds if rounds else None
    return [
        ("processes", str(world)),
        ("episodes per round", f"{tasks} tasks x {args.num_generations} = {episodes}"),
        ("micro-batches per round", f"{args.steps_per_generation} x {args.num_iterations} epoch(s)"),
        ("micro-batches per mini-batch", str(args.gradient_accumulation_steps)),
        ("mini-batches (optimiser steps) per round", f"{args.steps_per_round:g}"),
        ("rounds", f"{rounds:g}" if rounds else "by num_train_epochs"),
        ("optimiser steps", str(args.max_steps) if args.max_steps > 0 else "by num_train_epochs"),
        (
            "task draws",
            f"{draws:g} from {training_tasks} training tasks" if draws else f"{training_tasks} training tasks",
        ),
        ("layout", f"{args.rollout_layout}: one row per {'turn' if args.rollout_layout == 'turn' else 'episode'}"),
    ]
