"""Every metric of a run, explained in one line. ``docs/metrics.md`` is generated from this table.

``<name>`` stands for a task type, a stop reason, a reason or an age. :mod:`seed_trainer.watching.measures` computes
them. Metrics whose names are not here come from TRL and transformers.
"""

from __future__ import annotations

import re

from seed_envs.tables import table

METRICS: dict[str, dict[str, str]] = {
    "Outcome of the training episodes": {
        "env/success": "Share of scored episodes that solved their task; null when a fault ended all.",
        "env/success_macro": "Mean over task types of their success shares.",
        "env/success/<name>": "Success share of one task type.",
        "env/episodes/<name>": "Number of scored episodes of one task type.",
        "env/faults": "Number of episodes ended by a fault of environment or machinery; they enter no rate.",
        "env/score": "Mean score of the environment, 0 to 1.",
        "env/return": "Mean sum of rewards, as trained on.",
        "env/turns": "Mean number of turns.",
        "env/invalid_formats": "Share of turns whose reply could not be read in the profile's format.",
        "env/invalid_actions": "Share of turns whose action the environment refused.",
        "stop/<name>": "Share of episodes that ended for this reason.",
        "reward": "The same as env/return, under TRL's name.",
        "reward_std": "Mean over tasks of the population deviation of the scored returns.",
        "frac_reward_zero_std": "Share of tasks whose scored returns are all equal.",
    },
    "Ties": {
        "ties/groups": "Share of tasks whose scored episodes all have the same return: no policy gradient from them.",
        "ties/all_won": "Share of tasks that every scored episode solved.",
        "ties/all_lost": "Share of tasks that no scored episode solved.",
        "ties/idle": "1 where no return differs and no skill teaches (and beta is 0): the update is 0 and left out.",
        "ties/tokens_without_advantage": "Share of sampled tokens with advantage 0; a step unit leaves fewer.",
    },
    "Skills": {
        "skill/valid": "Share of scored episodes with a usable skill (m of the paper).",
        "skill/invalid/<name>": "Share of episodes whose skill is unusable for this reason.",
        "skill/tokens": "Mean length of the analyzer's answers.",
        "skill/reward": "Mean reward of the analyzer's answers (skill_reward_coef): agreement of shift and outcome.",
        "skill/duplicates": "1 minus distinct over all valid skill texts.",
        "skill/unrelated": "Share of written skills that name no thing and no command of the episode they teach about.",
        "skill/goal_words": "Mean share of a skill's words that occur in the goal.",
        "skill/copied": "Mean share of a skill's 4-word sequences that occur in an observation.",
        "skill/same_outcome": "With shuffled skills: share lent by an episode with the same outcome.",
    },
    "Gate, over distilled tokens of one mini-batch": {
        "opd/gate_mean": "Mean gate g; 0.5 means the skill says nothing.",
        "opd/gate_std": "Deviation of the gate.",
        **{f"opd/gate_p{share}": f"{share} % quantile of the gate." for share in range(10, 100, 10)},
        "opd/gate_above_half": "Share of tokens the skill made more likely.",
        "opd/gate_saturated": "Share of gates below 0.05 or above 0.95.",
        "opd/gate_saturated_low": "Share of gates below 0.05.",
        "opd/gate_saturated_high": "Share of gates above 0.95.",
        "opd/gate_success": "Mean gate in solved episodes.",
        "opd/gate_failure": "Mean gate in failed episodes.",
        "opd/gate_decision_success": "Mean gate on decision tokens (student entropy over 0.5 nats), solved episodes.",
        "opd/gate_decision_failure": "Mean gate on decision tokens of failed episodes.",
        "opd/gate_type/<name>": "Mean gate in episodes of one task type.",
        "opd/gate_think": "Mean gate before the action part of replies that have one.",
        "opd/gate_action": "Mean gate in the action part.",
        "opd/gate_beta": "Sharpness beta in force.",
        "opd/delta_mean": "Mean shift D = l_T - l in nats.",
        "opd/abs_delta_mean": "Mean |D|.",
        "opd/loss": "Value of the distillation term; may be negative, a monitor only.",
        "opd/grad_ratio": "Norm of lambda grad L_opd over the norm of grad L_rl; every gradient_every rounds.",
        "opd/grad_cosine": "Cosine between the two gradients.",
        "opd/tokens": "Number of distilled tokens.",
        "opd/entropy_check": "Cov(l, g): negative means distillation flattens the policy, positive means it sharpens.",
    },
    "Value alignment, cheap proxy (biased: skills were written knowing the outcome)": {
        "align/auc": "Probability that a solved episode has a higher mean gate than a failed one of its task.",
        "align/auc_think": "The same, gates before the action part alone.",
        "align/auc_action": "The same, gates of the action part alone.",
        "align/correlation": "Correlation of an episode's mean gate with its success, within tasks.",
        "align/correlation_think": "The same, gates before the action part alone.",
        "align/correlation_action": "The same, gates of the action part alone.",
    },
    "Staleness, for every age k in staleness_ages, and `noise`: skills that today's analyzer samples anew": {
        "stale/gate_gap/<name>": "E|g_kk - g_kj|: today's analyzer against the one k rounds ago, on today's episodes.",
        "stale/bound/<name>": "(beta/4) E|D_kk - D_kj|, the bound of Proposition 3 (Eq. 14).",
        "stale/ratio/<name>": "Gap over bound; never above 1.",
        "stale/violations/<name>": "Share of tokens whose own gap exceeds its own bound; 0 unless something is broken.",
        "stale/grad_cosine/<name>": "Cosine of grad L_opd under today's and the old skills (staleness_gradients).",
    },
    "Compute": {
        "tokens/read": "Prompt tokens of all turns; a cache across turns reads most of them only once.",
        "tokens/student": "Tokens of all rows the student scores.",
        "tokens/sampled": "Tokens the policy sampled in episodes; these are trained.",
        "tokens/teacher": "Tokens of all rows the teacher scores.",
        "tokens/skill": "Tokens the analyzer wrote.",
        "tokens/skill_read": "Tokens of the requests it was asked with.",
        "rows/real": "Training rows from episodes.",
        "rows/total": "Rows with fillers.",
        "num_tokens": "Tokens read and sampled since the start.",
        "completions/mean_length": "Mean number of sampled tokens per row.",
        "completions/max_length": "Largest number of sampled tokens of a row.",
        "time/rollout": "Seconds of playing episodes since the last line.",
        "time/skills": "Seconds of writing skills.",
        "time/teacher": "Seconds of teacher scoring.",
        "time/scoring": "Seconds of old and reference scoring and batch building.",
        "time/update": "Seconds of training steps outside all other parts: student, backward pass, optimiser.",
        "time/records": "Seconds of writing episodes.jsonl.",
        "time/staleness": "Seconds of the staleness diagnostic.",
        "time/evaluation": "Seconds of evaluations.",
        "time/overhead": "(skills + teacher) over all other parts: the cost of SEED against GRPO on the same rows.",
        "step_time": "Mean seconds of an optimiser step, rollout of its round included.",
    },
    "Evaluation on the panel": {
        "eval_success": "Share of panel episodes that solved their task.",
        "eval_success_low": "Lower end of the 95 % interval that `seed-bench` gives, repeats of a task considered.",
        "eval_success_high": "Upper end.",
        "eval_success_macro": "Mean over task types.",
        "eval_success/<name>": "Success share of one task type.",
        "eval_episodes/<name>": "Number of scored episodes of one task type.",
        "eval_score": "Mean score.",
        "eval_turns": "Mean number of turns.",
        "eval_invalid_formats": "Share of turns whose reply could not be read in the profile's format.",
        "eval_invalid_actions": "Share of turns whose action the environment refused.",
        "eval_episodes": "Number of scored episodes.",
        "eval_faults": "Number of episodes ended by a fault of environment or machinery; not scored.",
    },
}
"""Group, then metric name, then meaning."""


def flat_metrics() -> dict[str, str]:
    """Return name and meaning of every metric."""
    return {name: meaning for group in METRICS.values() for name, meaning in group.items()}


def is_timing(name: str) -> bool:
    """Return whether a logged value is of the clock, or sums up one call of ``train`` instead of the run.

    These differ between a run and its repetition, or its resumption; everything else in the line files does not.
    """
    return name.startswith(("time/", "step_time", "train_")) or name.endswith(("_runtime", "_per_second"))


def explains(name: str) -> bool:
    """Return whether a logged name is in the table."""
    for known in flat_metrics():
        pattern = re.escape(known).replace(re.escape("<name>"), ".+")
        if re.fullmatch(pattern, name):
            return True
    return False


def markdown() -> str:
    """Return the text of ``docs/metrics.md``."""
    lines = [
        "# Metrics",
        "",
        "Written by `make docs`; edit the table in `seed_trainer/watching/diagnostics.py`. A line of `metrics.jsonl`",
        "holds the metrics of one round (or of one evaluation), averaged over its optimiser steps.",
        "Names that are not listed come from TRL and transformers.",
    ]
    for group, metrics in METRICS.items():
        rows = [(f"`{name}`", meaning) for name, meaning in metrics.items()]
        lines += ["", f"## {group}", "", table(("metric", "meaning"), rows)]
    return "\n".join(lines) + "\n"
