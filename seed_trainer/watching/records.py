"""Sampled episodes with their skills and a per-token view, for reports: ``episodes.jsonl``.

The per-token view is what the loss was computed from, copied as it passes: no forward pass of its own, and no gate that
was not trained.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from seed_trainer.learning.batches import Row
from seed_trainer.learning.rounds import Block
from seed_trainer.learning.scorer import Batch
from seed_trainer.learning.scores import Scores, loss_mask
from seed_trainer.settings.config import SEEDConfig
from seed_trainer.settings.schedules import Moment
from seed_trainer.watching.linelog import LineLog

EPISODES_FILE = "episodes.jsonl"


class EpisodeRecorder:
    """Writes a few episodes of every ``log_episodes_every``-th round, once all of their rows have been trained.

    Args:
        args: Configuration.
        tokenizer: Shows tokens as text.
        log: The file.
    """

    def __init__(self, args: SEEDConfig, tokenizer: Any, log: LineLog) -> None:
        self.args = args
        self.tokenizer = tokenizer
        self.log = log
        self._step = 0
        self._lines: list[dict[str, Any]] = []
        self._awaited: dict[int, dict[str, Any]] = {}

    def begin(self, block: Block, batch: Batch, moment: Moment) -> None:
        """Choose episodes of a round, a success and a failure first, and wait for the scores of their rows."""
        self._lines, self._awaited = [], {}
        if not self.args.log_episodes or moment.round_index % self.args.log_episodes_every or moment.process:
            return
        self._step = moment.step
        mask = loss_mask(batch)
        for episode in self._choose(block):
            rows = {
                index: self._entry(row, mask[index])
                for index, row in enumerate(block.rows)
                if row.episode == episode and not row.filler
            }
            self._lines.append(_line(block, episode, moment, list(rows.values())))
            if "idle" not in batch:
                self._awaited |= rows
        self._write_if_complete()

    def take(self, scores: Scores, batch: Batch) -> None:
        """Copy what a mini-batch is trained with, in the first pass over the round."""
        for at, index in enumerate(batch["row"].tolist()):
            entry = self._awaited.pop(index, None)
            if entry is not None:
                length = len(entry["tokens"])
                entry["student"] = _rounded(scores.student[at, :length])
                if bool(scores.mask[at].any()):
                    entry["teacher"] = _rounded(scores.teacher[at, :length])
                    entry["gate"] = _rounded(scores.gates[at, :length])
        self._write_if_complete()

    def _write_if_complete(self) -> None:
        if self._lines and not self._awaited:
            for line in self._lines:
                self.log.append(self._step, line)
            self._lines = []

    def _choose(self, block: Block) -> list[int]:
        scored = [index for index, episode in enumerate(block.episodes) if episode.stop_reason.scored]
        won = [index for index in scored if block.episodes[index].success]
        lost = [index for index in scored if not block.episodes[index].success]
        mixed = [index for pair in zip(won, lost, strict=False) for index in pair]
        rest = [index for index in range(len(block.episodes)) if index not in mixed]
        return (mixed + rest)[: self.args.log_episodes]

    def _entry(self, row: Row, mask_T: Tensor) -> dict[str, Any]:
        tokens = [self.tokenizer.decode([token]) for token in row.completion_ids]
        return {"tokens": tokens, "mask": mask_T[: len(tokens)].tolist()}


def _rounded(values_T: Tensor) -> list[float]:
    return [round(value, 4) for value in values_T.tolist()]


def _line(block: Block, episode: int, moment: Moment, rows: list[dict[str, Any]]) -> dict[str, Any]:
    played = block.episodes[episode]
    skill = block.skills[episode] if block.skills else None
    return {
        "round": moment.round_index,
        "task_id": played.task_id,
        "task_type": played.task_type,
        "goal": played.goal,
        "success": played.success,
        "return": played.total_reward,
        "advantage": float(block.advantages_N[episode]),
        "stop_reason": played.stop_reason.value,
        "data": played.data,
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
        "rows": rows,
    }
