"""Computing the metrics of a round and of a mini-batch, as :mod:`seed_trainer.watching.diagnostics` explains them.

It measures and never changes what is trained.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict, deque
from collections.abc import Mapping, Sequence
from statistics import pstdev
from typing import Any, NamedTuple

import torch
from accelerate.utils import gather_object
from torch import Tensor

from seed_envs.statistics.summary import Played, summarise_outcomes
from seed_trainer.learning.batches import Row
from seed_trainer.learning.distillation import Scores
from seed_trainer.learning.rounds import Block
from seed_trainer.learning.teacher import loss_mask
from seed_trainer.watching.panels import flat_summary

DECISION_ENTROPY = 0.5
"""Student entropy in nats above which a token counts as a decision."""


def scratch_logs() -> dict[str, Any]:
    """Return an empty structure of the shape of TRL's ``_logs``, to catch its row-wise entries."""
    return {
        "images": deque(maxlen=0),
        "prompt": deque(maxlen=0),
        "completion": deque(maxlen=0),
        "rewards": defaultdict(lambda: deque(maxlen=0)),
        "advantages": deque(maxlen=0),
        "extra": defaultdict(lambda: deque(maxlen=0)),
    }


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else math.nan


def append_metrics(trainer: Any, metrics: Mapping[str, float | None]) -> None:
    """Append process-averaged metrics to the trainer's training metrics.

    NaN means "not measured here" and appends nothing; None is a rate over nothing and is logged as null.
    """
    everyone: list[dict[str, float | None]] = gather_object([dict(metrics)])
    for name in sorted({name for record in everyone for name in record}):
        values = [record[name] for record in everyone if name in record]
        known = [value for value in values if value is not None and not math.isnan(value)]
        if known:
            trainer._metrics["train"][name].append(_mean(known))
        elif None in values:
            trainer._metrics["train"][name].append(math.nan)  # TRL writes null when there is nothing else


class RoundOutcome(NamedTuple):
    """What the metrics of a round need to know of an episode."""

    played: Played
    total_reward: float
    stop_reason: str


def outcomes(block: Block) -> list[RoundOutcome]:
    """Return the outcomes of the round on this process, the group of one task next to each other."""
    return [
        RoundOutcome(Played.of(episode), episode.total_reward, episode.stop_reason.value) for episode in block.episodes
    ]


def outcome_metrics(episodes: Sequence[RoundOutcome], group_size: int) -> dict[str, float | None]:
    """Return outcomes, stop reasons and ties of a round; episodes ended by a fault are counted and enter no rate.

    Args:
        episodes: Those of all processes.
        group_size: Episodes per task.
    """
    common = flat_summary(summarise_outcomes([episode.played for episode in episodes]))
    groups = [episodes[start : start + group_size] for start in range(0, len(episodes), group_size)]
    scored = [known for group in groups if (known := [episode for episode in group if episode.played.scored])]
    won = [[episode.played.success for episode in group] for group in scored]
    totals = [[episode.total_reward for episode in group] for group in scored]
    mean_return = _rate([total for group in totals for total in group])
    tied = _rate([len(set(group)) == 1 for group in totals])
    stops = Counter(episode.stop_reason for episode in episodes)
    return {
        **{f"env/{name}": value for name, value in common.items()},
        "env/return": mean_return,
        "reward": mean_return,
        "reward_std": _rate([pstdev(group) for group in totals]),
        "frac_reward_zero_std": tied,
        "ties/groups": tied,
        "ties/all_won": _rate([all(group) for group in won]),
        "ties/all_lost": _rate([not any(group) for group in won]),
        **{f"stop/{name}": count / len(episodes) for name, count in stops.items()},
    }


def _rate(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _grams(text: str, size: int = 4) -> set[tuple[str, ...]]:
    words = text.split()
    return {tuple(words[i : i + size]) for i in range(len(words) - size + 1)}


def skill_metrics(block: Block) -> dict[str, float | None]:
    """Return how usable and how original the skills of the round's scored episodes are."""
    if not block.skills:
        return {}
    pairs = [pair for pair in zip(block.skills, block.episodes, strict=True) if pair[1].stop_reason.scored]
    if not pairs:
        return {"skill/valid": None}
    skills = [skill for skill, _ in pairs]
    valid = [(skill, episode) for skill, episode in pairs if skill.valid]
    texts = [skill.text for skill, _ in valid if skill.text]
    goal_overlap, copied = [], []
    for skill, episode in valid:
        words, goal = set(skill.text.split()), set(episode.goal.split())
        if words:
            goal_overlap.append(len(words & goal) / len(words))
        grams = _grams(skill.text)
        if grams:
            seen = set().union(*(_grams(step.observation) for step in episode.steps))
            copied.append(len(grams & seen) / len(grams))
    metrics: dict[str, float | None] = {
        "skill/valid": len(valid) / len(skills),
        "skill/tokens": _mean([float(skill.tokens) for skill in skills if skill.tokens]),
        "skill/duplicates": 1 - len(set(texts)) / len(texts) if texts else math.nan,
        "skill/goal_words": _mean(goal_overlap),
        "skill/copied": _mean(copied),
    }
    reasons = Counter(skill.reason for skill in skills if not skill.valid)
    metrics.update({f"skill/invalid/{reason}": count / len(skills) for reason, count in reasons.items()})
    lent = [skill.origin for skill, _ in valid if skill.origin.startswith("shuffled")]
    if lent:
        metrics["skill/same_outcome"] = _mean([float(origin.endswith("same_outcome")) for origin in lent])
    return metrics


def token_metrics(block: Block, batch: Mapping[str, Any]) -> dict[str, float]:
    """Return token counts of the round: what was read, sampled, trained and scored by the teacher."""
    rows = [row for row in block.rows if not row.filler]
    flat = float(sum(sum(row.mask) for row in rows))
    mask_BT = loss_mask(dict(batch)) > 0
    advantages_BT = batch["advantages"].view(len(mask_BT), -1).expand(mask_BT.shape)
    zero = float((advantages_BT[mask_BT] == 0).sum())
    metrics = {
        "tokens/read": float(sum(len(turn.prompt_ids) for row in rows for turn in row.tokens)),
        "rows/real": float(len(rows)),
        "rows/total": float(len(block.rows)),
        "tokens/student": float(sum(len(row.prompt_ids) + len(row.completion_ids) for row in rows)),
        "tokens/sampled": flat,
        "ties/tokens_without_advantage": zero / max(flat, 1.0),
    }
    if block.skills:
        metrics["tokens/teacher"] = float(
            sum(len(row.teacher_prompt_ids or []) + len(row.completion_ids) for row in rows)
        )
        metrics["tokens/skill"] = float(sum(skill.tokens for skill in block.skills))
        metrics["tokens/skill_read"] = float(sum(len(skill.prompt_ids) for skill in block.skills))
    return metrics


def log_round(trainer: Any, block: Block, batch: Mapping[str, Any]) -> None:
    """Put a round's metrics in place of TRL's row-weighted ones and add one table entry per episode."""
    metrics = trainer._metrics["train"]
    for name in ("rewards/episode_return/mean", "rewards/episode_return/std"):
        metrics.pop(name, None)
    for name in ("reward", "reward_std", "frac_reward_zero_std"):
        metrics[name].pop()
    everyone: list[RoundOutcome] = gather_object(outcomes(block))
    measured = {**skill_metrics(block), **token_metrics(block, batch)}
    append_metrics(trainer, {**outcome_metrics(everyone, block.group_size), **measured})
    if trainer.log_completions:
        _log_table(trainer, block)


def _log_table(trainer: Any, block: Block) -> None:
    """Append one entry per episode to TRL's completions table."""
    entries = [
        {
            "prompt": episode.steps[0].messages if episode.steps else [],
            "completion": [{"role": "assistant", "content": "\n".join(step.reply for step in episode.steps)}],
            "return": episode.total_reward,
            "advantage": float(block.advantages_N[index]),
            "skill": block.skills[index].text if block.skills else "",
            "task_id": episode.task_id,
        }
        for index, episode in enumerate(block.episodes)
    ]
    for entry in gather_object(entries):
        trainer._logs["prompt"].append(entry["prompt"])
        trainer._logs["completion"].append(entry["completion"])
        trainer._logs["rewards"]["episode_return"].append(entry["return"])
        trainer._logs["advantages"].append(entry["advantage"])
        trainer._logs["extra"]["skill"].append(entry["skill"])
        trainer._logs["extra"]["task_id"].append(entry["task_id"])


def log_tokens(trainer: Any, rows: Sequence[Row]) -> None:
    """Keep TRL's token counters going; it counts them where it generates, which it does not do here."""
    count = torch.tensor(
        sum(len(row.prompt_ids) + sum(row.mask) for row in rows if not row.filler), device=trainer.accelerator.device
    )
    trainer.state.num_input_tokens_seen += int(trainer.accelerator.gather(count).sum())
    trainer._metrics["train"]["num_tokens"] = [trainer.state.num_input_tokens_seen]
    lengths = [float(sum(row.mask)) for row in rows if not row.filler]
    append_metrics(
        trainer, {"completions/mean_length": _mean(lengths), "completions/max_length": max(lengths, default=math.nan)}
    )


PARTS_OF_A_STEP = ("rollout", "skills", "scoring", "teacher", "staleness", "records")
"""Timed parts that lie inside a training step; what is left of it is the update."""


def log_overhead(metrics: dict[str, list[float]]) -> None:
    """Log the time of the updates, and the cost of skills and teacher against everything else of the same steps."""
    whole = sum(metrics.get("step_time", []))
    if not whole:
        return
    parts = {name: sum(metrics.get(f"time/{name}", [])) for name in PARTS_OF_A_STEP}
    metrics["time/update"].append(max(0.0, whole - sum(parts.values())))
    extra = parts["skills"] + parts["teacher"]
    if whole > extra > 0:
        metrics["time/overhead"].append(extra / (whole - extra))


def gate_metrics(scores: Scores, gates: Tensor, success_B: Tensor, beta: float) -> dict[str, float]:
    """Return the gate's distribution over distilled tokens, and its split by outcome and by decision tokens."""
    chosen = scores.mask > 0
    if not bool(chosen.any()):
        return {"opd/tokens": 0.0, "opd/gate_beta": beta}
    values = gates[chosen]
    shift = (scores.teacher_logps - scores.logps).detach()[chosen]
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
        "opd/entropy_check": _covariance(scores.logps.detach()[chosen], values),
    }


def _covariance(first: Tensor, second: Tensor) -> float:
    return float((first * second).mean() - first.mean() * second.mean())


def split_metrics(
    scores: Scores, gates: Tensor, batch: Mapping[str, Any], task_types: Sequence[str]
) -> dict[str, float]:
    """Return the mean gate by task type, and apart for thinking and action where replies have both."""
    chosen = scores.mask > 0
    parts = {
        f"opd/gate_type/{name}": chosen & (batch["task_type"] == index)[:, None]
        for index, name in enumerate(task_types)
    }
    if "action_tokens" in batch:
        action = batch["action_tokens"] > 0
        parts |= {"opd/gate_action": chosen & action, "opd/gate_think": chosen & ~action}
    return {name: float(gates[where].mean()) for name, where in parts.items() if bool(where.any())}


def log_distillation(trainer: Any, scores: Scores, gates: Tensor, opd: Tensor, batch: Mapping[str, Any]) -> None:
    """Log one mini-batch's distillation."""
    scale = float(trainer.current_gradient_accumulation_steps)
    metrics = gate_metrics(scores, gates, batch["success"], trainer.gate_beta)
    metrics["opd/loss"] = float(opd.detach()) * scale
    trainer.proxy.add(scores, gates, batch, trainer.round_index)
    metrics.update(split_metrics(scores, gates, batch, trainer.task_types))
    append_metrics(trainer, metrics)
