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
from accelerate import Accelerator
from accelerate.utils import gather_object
from transformers import TrainerState

from seed_envs.statistics.summary import Played, summarise_outcomes
from seed_trainer.learning.batches import Row
from seed_trainer.learning.rounds import Block
from seed_trainer.learning.scores import loss_mask
from seed_trainer.skills.relevance import names_something
from seed_trainer.watching.panels import flat_summary
from seed_trainer.watching.sink import MetricSink


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
        "skill/unrelated": _mean([not names_something(skill.text, episode) for skill, episode in pairs if skill.text]),
        "skill/goal_words": _mean(goal_overlap),
        "skill/copied": _mean(copied),
    }
    if block.skill_rewards_N is not None:
        metrics["skill/reward"] = float(block.skill_rewards_N.mean())
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
        "ties/idle": float("idle" in batch),
    }
    if block.skills:
        taught = rows if "opd_mask" in batch else []
        metrics["tokens/teacher"] = float(
            sum(len(row.teacher_prompt_ids or []) + len(row.completion_ids) for row in taught)
        )
        metrics["tokens/skill"] = float(sum(skill.tokens for skill in block.skills))
        metrics["tokens/skill_read"] = float(sum(len(skill.prompt_ids) for skill in block.skills))
    return metrics


def log_round(sink: MetricSink, block: Block, batch: Mapping[str, Any]) -> None:
    """Put a round's metrics in place of TRL's row-weighted ones."""
    for name in ("rewards/episode_return/mean", "rewards/episode_return/std"):
        sink.lists.pop(name, None)
    for name in ("reward", "reward_std", "frac_reward_zero_std"):
        sink.lists[name].pop()
    everyone: list[RoundOutcome] = gather_object(outcomes(block))
    measured = {**skill_metrics(block), **token_metrics(block, batch)}
    sink.append({**outcome_metrics(everyone, block.group_size), **measured})


def log_table(logs: dict[str, Any], block: Block) -> None:
    """Append one entry per episode to TRL's completions table.

    Args:
        logs: TRL's ``_logs``.
        block: The round.
    """
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
        logs["prompt"].append(entry["prompt"])
        logs["completion"].append(entry["completion"])
        logs["rewards"]["episode_return"].append(entry["return"])
        logs["advantages"].append(entry["advantage"])
        logs["extra"]["skill"].append(entry["skill"])
        logs["extra"]["task_id"].append(entry["task_id"])


def log_tokens(sink: MetricSink, state: TrainerState, accelerator: Accelerator, rows: Sequence[Row]) -> None:
    """Keep TRL's token counters going; it counts them where it generates, which it does not do here."""
    count = torch.tensor(
        sum(len(row.prompt_ids) + sum(row.mask) for row in rows if not row.filler), device=accelerator.device
    )
    state.num_input_tokens_seen += int(accelerator.gather(count).sum())
    sink.lists["num_tokens"] = [state.num_input_tokens_seen]
    lengths = [float(sum(row.mask)) for row in rows if not row.filler]
    sink.append({"completions/mean_length": _mean(lengths), "completions/max_length": max(lengths, default=math.nan)})


PARTS_OF_A_STEP = ("pictures", "rollout", "skills", "scoring", "teacher", "staleness", "records")
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
