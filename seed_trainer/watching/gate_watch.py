"""Metrics of the gates that one mini-batch was trained with: distribution, split by outcome and kind, alignment."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from seed_trainer.learning.rounds import Block
from seed_trainer.learning.scores import Scores
from seed_trainer.settings.schedules import Moment
from seed_trainer.watching.gate_proxy import GateProxy
from seed_trainer.watching.sink import MetricSink

DECISION_ENTROPY = 0.5
"""Student entropy in nats above which a token counts as a decision."""


class GateWatch:
    """Logs the distillation of every mini-batch and sums its gates up for the proxy of value alignment.

    Args:
        sink: Where metrics go.
        proxy: Sums of gates by episode.
    """

    def __init__(self, sink: MetricSink, proxy: GateProxy) -> None:
        self.sink = sink
        self.proxy = proxy
        self.task_types: list[str] = []

    def columns(self, block: Block, device: torch.device) -> dict[str, Tensor]:
        """Return what gates are split by, row-aligned: ``success`` and ``task_type`` (B,)."""
        types = [block.episodes[row.episode].task_type or "all" for row in block.rows]
        self.task_types += sorted(set(types) - set(self.task_types))
        return {
            "success": block.success_N[[row.episode for row in block.rows]].to(device),
            "task_type": torch.tensor([self.task_types.index(name) for name in types], device=device),
        }

    def log(self, scores: Scores, opd: float, batch: Mapping[str, Any], moment: Moment) -> None:
        """Log one mini-batch; ``opd`` is the value of its distillation term."""
        self.proxy.add(scores, batch, moment.round_index)
        gates = {**gate_metrics(scores, batch["success"]), **split_metrics(scores, batch, self.task_types)}
        self.sink.append({**gates, "opd/loss": opd})

    def log_untaught(self, moment: Moment) -> None:
        """Log a round in which no skill teaches, so that no teacher was asked."""
        self.sink.append({"opd/tokens": 0.0, "opd/gate_beta": moment.gate_beta, "opd/loss": 0.0})

    def flush(self) -> dict[str, float]:
        """Return the alignment metrics of everything logged since the last call, on all processes."""
        return self.proxy.flush()

    def pending(self) -> dict[str, Any]:
        """Return what this process has summed up, for a checkpoint; JSON."""
        return {"types": self.task_types, "proxy": self.proxy.pending()}

    def restore(self, pending: Mapping[str, Any]) -> None:
        """Take back what :meth:`pending` returned."""
        self.task_types = pending["types"]
        self.proxy.restore(pending["proxy"])


def gate_metrics(scores: Scores, success_B: Tensor) -> dict[str, float]:
    """Return the gate's distribution over distilled tokens, and its split by outcome and by decision tokens."""
    chosen, gates, beta = scores.mask > 0, scores.gates, scores.rule.beta
    if not bool(chosen.any()):
        return {"opd/tokens": 0.0, "opd/gate_beta": beta}
    values, shift = gates[chosen], scores.shift[chosen]
    won = (success_B[:, None] > 0).expand_as(chosen)
    decision = scores.entropies > DECISION_ENTROPY
    deciles = values.float().sort().values[[int(share * (len(values) - 1) / 10 + 0.5) for share in range(1, 10)]]

    def part(where: Tensor) -> float:
        picked = gates[chosen & where]
        return float(picked.mean()) if picked.numel() else math.nan

    return {
        "opd/tokens": float(chosen.sum()),
        "opd/gate_beta": beta,
        "opd/gate_mean": float(values.mean()),
        "opd/gate_std": float(values.std(correction=0)),
        **{f"opd/gate_p{share}0": float(value) for share, value in enumerate(deciles, start=1)},
        "opd/gate_above_half": float((values > 0.5).float().mean()),
        "opd/gate_saturated": float(((values < 0.05) | (values > 0.95)).float().mean()),
        "opd/gate_saturated_low": float((values < 0.05).float().mean()),
        "opd/gate_saturated_high": float((values > 0.95).float().mean()),
        "opd/gate_success": part(won),
        "opd/gate_failure": part(~won),
        "opd/gate_decision_success": part(won & decision),
        "opd/gate_decision_failure": part(~won & decision),
        "opd/delta_mean": float(shift.mean()),
        "opd/abs_delta_mean": float(shift.abs().mean()),
        "opd/entropy_check": _covariance(scores.student.detach()[chosen], values),
    }


def _covariance(first: Tensor, second: Tensor) -> float:
    return float((first * second).mean() - first.mean() * second.mean())


def split_metrics(scores: Scores, batch: Mapping[str, Any], task_types: Sequence[str]) -> dict[str, float]:
    """Return the mean gate by task type, and apart for thinking and action where replies have both."""
    chosen = scores.mask > 0
    parts = {
        f"opd/gate_type/{name}": chosen & (batch["task_type"] == index)[:, None]
        for index, name in enumerate(task_types)
    }
    if "action_tokens" in batch:
        action = batch["action_tokens"] > 0
        parts |= {"opd/gate_action": chosen & action, "opd/gate_think": chosen & ~action}
    return {name: float(scores.gates[where].mean()) for name, where in parts.items() if bool(where.any())}
