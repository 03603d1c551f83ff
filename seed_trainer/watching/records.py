"""Sampled episodes with their skills and a per-token view, for reports: ``episodes.jsonl``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from seed_trainer.learning import losses
from seed_trainer.learning.rounds import Block
from seed_trainer.learning.teacher import student_inputs, teacher_inputs
from seed_trainer.settings.config import SEEDConfig
from seed_trainer.watching.linelog import LineLog

EPISODES_FILE = "episodes.jsonl"


class EpisodeRecorder:
    """Writes a few episodes of every ``log_episodes_every``-th round.

    Costs one extra forward pass of student and teacher over the written rows; changes nothing in training.
    """

    def __init__(self, args: SEEDConfig) -> None:
        self.args = args
        self.log = LineLog(Path(args.output_dir) / EPISODES_FILE)

    def record(self, trainer: Any, block: Block, batch: Mapping[str, Any]) -> None:
        """Write episodes of this round, a success and a failure first."""
        args, round_index = self.args, trainer.round_index
        if not args.log_episodes or round_index % args.log_episodes_every or not trainer.is_world_process_zero():
            return
        chosen = self._choose(block)
        rows = [index for index, row in enumerate(block.rows) if row.episode in chosen and not row.filler]
        scores = self._scores(trainer, batch, rows)
        for episode in chosen:
            parts = [scores[i] for i in rows if block.rows[i].episode == episode]
            self.log.append(trainer.state.global_step, self._line(trainer, block, episode, parts))

    def _choose(self, block: Block) -> list[int]:
        won = [index for index, episode in enumerate(block.episodes) if episode.success]
        lost = [index for index, episode in enumerate(block.episodes) if not episode.success]
        mixed = [index for pair in zip(won, lost, strict=False) for index in pair]
        rest = [index for index in range(len(block.episodes)) if index not in mixed]
        return (mixed + rest)[: self.args.log_episodes]

    def _scores(self, trainer: Any, batch: Mapping[str, Any], rows: list[int]) -> dict[int, dict[str, Any]]:
        """Return tokens, mask, log-probabilities and gates of rows (text models only for the latter)."""
        index = torch.tensor(rows, dtype=torch.long, device=batch["completion_ids"].device)
        part = {
            name: value[index]
            for name, value in batch.items()
            if isinstance(value, torch.Tensor) and value.ndim and len(value) == len(batch["completion_ids"])
        }
        if not rows or "pixel_values" in batch:
            return {row: {} for row in rows}
        student = trainer._score_chunks(trainer.model, student_inputs(part), max(1, len(rows) // 16))
        teacher = None
        if "teacher_prompt_ids" in part:
            with trainer.teacher_weights.lent(trainer._unwrapped):
                teacher = trainer._score_chunks(trainer.model, teacher_inputs(part, None), max(1, len(rows) // 16))
        result = {}
        for at, row in enumerate(rows):
            length = int(part["completion_mask"][at].sum())
            mask = part["tool_mask"][at, :length] if "tool_mask" in part else part["completion_mask"][at, :length]
            entry: dict[str, Any] = {
                "tokens": [
                    trainer._tokenizer.decode([token]) for token in part["completion_ids"][at, :length].tolist()
                ],
                "mask": mask.tolist(),
                "student": [round(value, 4) for value in student[at, :length].tolist()],
            }
            if teacher is not None and float(part["opd_mask"][at].sum()) > 0:
                entry["teacher"] = [round(value, 4) for value in teacher[at, :length].tolist()]
                gates = losses.gate_BT(losses.shift_BT(teacher[at], student[at]), trainer.gate_beta)
                entry["gate"] = [round(value, 4) for value in gates[:length].tolist()]
            result[row] = entry
        return result

    def _line(self, trainer: Any, block: Block, episode: int, parts: list[dict[str, Any]]) -> dict[str, Any]:
        played = block.episodes[episode]
        skill = block.skills[episode] if block.skills else None
        return {
            "round": trainer.round_index,
            "task_id": played.task_id,
            "task_type": played.task_type,
            "goal": played.goal,
            "success": played.success,
            "return": played.total_reward,
            "advantage": float(block.advantages_N[episode]),
            "stop_reason": played.stop_reason.value,
            "skill": skill.text if skill else "",
            "skill_reason": skill.reason if skill else "",
            "skill_origin": skill.origin if skill else "",
            "turns": [
                {
                    "observation": step.observation,
                    "reply": step.reply,
                    "action": step.action,
                    "readable": step.format_valid,
                    "valid": step.action_valid,
                    "reason": step.invalid_reason,
                }
                for step in played.steps
            ],
            "rows": parts,
        }
