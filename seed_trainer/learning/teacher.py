"""The teacher: the same weights read the same history plus a skill and score the same tokens, without gradient."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from seed_trainer.acting.pictures import COUNTS, IMAGE_KEYS
from seed_trainer.learning.batches import Row, pad_left


def teacher_columns(
    rows: list[Row], teaches: list[bool], pad_token_id: int, multiple: int | None, device: torch.device
) -> dict[str, Tensor]:
    """Return the row-aligned columns that the distillation term needs.

    Args:
        rows: Rows with teacher prompts.
        teaches: For every episode, whether its skill is valid (m of the paper).
        pad_token_id: Padding id.
        multiple: Pad lengths to a multiple of this.
        device: Target device.

    Returns:
        ``teacher_prompt_ids`` and ``teacher_prompt_mask`` (B, P'), ``opd_mask`` (B,).
    """
    ids, mask = pad_left([row.teacher_prompt_ids or row.prompt_ids for row in rows], pad_token_id, multiple)
    opd = torch.tensor([float(teaches[row.episode] and not row.filler) for row in rows])
    return {
        "teacher_prompt_ids": ids.to(device),
        "teacher_prompt_mask": mask.to(device),
        "opd_mask": opd.to(device),
    }


def step_columns(rows: list[Row], pad_token_id: int, multiple: int | None, device: torch.device) -> dict[str, Tensor]:
    """Return the prompts of critical-step skills and ``step_mask`` (B,), 1 on rows that have one."""
    ids, mask = pad_left([row.step_teacher_prompt_ids or row.prompt_ids for row in rows], pad_token_id, multiple)
    chosen = torch.tensor([float(row.step_teacher_prompt_ids is not None and not row.filler) for row in rows])
    return {
        "step_teacher_prompt_ids": ids.to(device),
        "step_teacher_prompt_mask": mask.to(device),
        "step_mask": chosen.to(device),
    }


def teacher_inputs(batch: dict[str, Any], prefix: str = "teacher") -> dict[str, Any]:
    """Return the scoring arguments of the teacher for one batch: its own prompt, the student's completion ids.

    Args:
        batch: A TRL micro-batch with teacher columns.
        prefix: ``teacher``, or ``step_teacher`` for step skills.
    """
    return student_inputs(
        {**batch, "prompt_ids": batch[f"{prefix}_prompt_ids"], "prompt_mask": batch[f"{prefix}_prompt_mask"]}
    )


def student_inputs(batch: dict[str, Any]) -> dict[str, Any]:
    """Return the scoring arguments of the student for one batch."""
    return {
        "input_ids": torch.cat([batch["prompt_ids"], batch["completion_ids"]], dim=1),
        "attention_mask": torch.cat([batch["prompt_mask"], batch["completion_mask"]], dim=1),
        "logits_to_keep": batch["completion_ids"].size(1),
        **{key: batch[key] for key in IMAGE_KEYS if batch.get(key) is not None},
    }


def completion_logits(model: Any, arguments: dict[str, Any], temperature: float) -> Tensor:
    """Return the logits that predict the completion tokens, shape (B, T, V), at the sampling temperature."""
    keep = arguments["logits_to_keep"]
    forward = {key: value for key, value in arguments.items() if key not in COUNTS}
    forward["logits_to_keep"] = keep + 1
    logits: Tensor = model(**forward).logits
    return logits[:, -keep - 1 : -1] / temperature
