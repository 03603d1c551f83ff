"""The fields SEED adds to TRL's GRPO configuration, with the paper's symbol and value, and where each default is from.

Torch-free on purpose, so that ``seed-train --help`` and documentation are quick. Checks that need TRL's own fields are
in :mod:`seed_trainer.settings.config`.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args, get_origin, get_type_hints

from seed_envs.errors import close_matches

SKILL_SOURCES = (
    "own",
    "library",
    "annotator",
    "shuffled_group",
    "shuffled_batch",
    "shuffled_family",
    "sibling_won",
    "sibling_lost",
    "own_goal_names",
    "own_unnamed",
    "random_text",
    "generic",
    "stale",
    "stale_text",
    "wrong_outcome",
    "none",
)
WRITTEN_BY_OTHERS = ("library", "annotator", "generic", "none")
"""Sources for which the policy writes no skill."""
CONCURRENT_EPISODES = 64
"""Episodes played at the same time where nothing says otherwise: panels, stage 1, branching."""

LOSS_TYPES = frozenset({"dapo", "cispo", "vespo", "grpo", "sapo", "bnpo", "dr_grpo"})
"""TRL's loss types whose normaliser the distillation term can share."""
RESUME_ANYWAY = "Resume a checkpoint although its run had other settings, or its completeness cannot be checked."
_WITH_AGE = {"stale", "stale_text"}
_NOT_NEGATIVE = (
    *("skill_reward_coef", "opd_coef", "opd_gate_beta", "opd_gate_beta_end", "skill_temperature", "eval_temperature"),
    *("adv_invalid_penalty", "adv_shaping_rounds", "opd_top_k", "opd_shift_clip", "gigpo_coef", "eval_rounds"),
    *("max_concurrent_episodes", "log_episodes", "gradient_every", "staleness_noise_temperature", "opd_start_round"),
)
_AT_LEAST_ONE = (
    *("max_turn_length", "max_prompt_length", "max_skill_length", "max_analysis_length", "eval_repeats"),
    *("max_analysis_prompt_length", "log_episodes_every", "staleness_every"),
)
_RANGES: dict[str, tuple[float, float]] = {
    **dict.fromkeys(_NOT_NEGATIVE, (0.0, math.inf)),
    **dict.fromkeys(_AT_LEAST_ONE, (1.0, math.inf)),
    **dict.fromkeys(("opd_jsd_mix", "gigpo_gamma", "gigpo_similarity"), (0.0, 1.0)),
}
"""Smallest and largest allowed value of the fields that have limits."""


def option(default: Any, help: str, source: str = "ours") -> Any:
    """Return a dataclass field whose help line ends with the origin of its default: paper, released or ours."""
    return field(default=default, metadata={"help": f"{help} [{source}]"})


def source_of(metadata: Mapping[str, Any]) -> str:
    """Return the origin that :func:`option` put into a help line; ``trl`` for fields of other libraries."""
    match = re.search(r"\[(paper|released|ours)\]$", str(metadata.get("help", "")))
    return match.group(1) if match else "trl"


def micro_batches(what: str, total: int, per_device: int) -> int:
    """Return how many micro-batches of every process make up ``total`` rows over all processes; 0 where 0 are asked.

    Args:
        what: Name of the field that gives the total, for the message.
        total: Rows over all processes.
        per_device: Rows of a micro-batch.

    Raises:
        ValueError: When they do not come out even.
    """
    world = int(os.environ.get("WORLD_SIZE") or 1)
    if total < 0 or total % (per_device * world):
        raise ValueError(
            f"{what}={total} must be a multiple of {per_device * world}: per_device_train_batch_size={per_device} on "
            f"{world} process{'es' if world > 1 else ''}"
        )
    return total // (per_device * world)


@dataclass(frozen=True)
class SkillSource:
    """A parsed ``skill_source``: its name and, for the stale ones, how many rounds old (``inf``: from the start)."""

    name: str
    age: float = 0.0


def parse_skill_source(text: str) -> SkillSource:
    """Parse ``own``, ``stale(5)``, ``stale(inf)`` and so on.

    Raises:
        ValueError: Naming the value, what was expected and a close match.
    """
    match = re.fullmatch(r"([a-z_]+)(?:\((\d+|inf)\))?", text.strip())
    name = match.group(1) if match else text
    if match is None or name not in SKILL_SOURCES:
        hint = close_matches(name, SKILL_SOURCES, limit=1)
        raise ValueError(f"unknown skill_source {text!r}, expected one of {list(SKILL_SOURCES)}.{hint}")
    age = match.group(2)
    if (name in _WITH_AGE) != (age is not None):
        shape = f"{name}(k) with a number of rounds k or inf" if name in _WITH_AGE else f"{name} without a number"
        raise ValueError(f"skill_source {text!r} should read {shape}")
    return SkillSource(name, math.inf if age == "inf" else float(age or 0))


@dataclass
class SEEDOptions:
    """Options of the SEED loop; every other option is TRL's. Lengths are in tokens."""

    # Rollout
    rollout_layout: Literal["turn", "episode"] = option(
        "turn", "One training row per environment turn (paper) or per episode.", "paper"
    )
    rollout_engine: Literal["auto", "cached", "trl"] = option(
        "auto",
        "Who samples: our loop, which keeps its cache from turn to turn, or TRL's generation (vLLM, and models whose "
        "pictures are not read from left to right).",
    )
    rounds: int = option(
        150, "Number of rounds; sets max_steps unless that is given. -1: num_train_epochs decides.", "paper"
    )
    episodes_per_round: int = option(
        0, "Episodes of a round over all processes; sets steps_per_generation unless that is given."
    )
    episodes_per_update: int = option(
        0, "Episodes of an optimiser step over all processes; sets gradient_accumulation_steps unless that is given."
    )
    eval_rounds: int = option(0, "Rounds between evaluations of the panel (0: TRL's eval_strategy decides).")
    save_rounds: int = option(10, "Rounds between checkpoints, unless save_steps or save_strategy is given.")
    resume_anyway: bool = option(False, RESUME_ANYWAY)
    max_turn_length: int = option(512, "Length limit of one reply.", "paper")
    max_prompt_length: int = option(
        4096, "Length limit of a prompt; the oldest history is cut, never skill, task or observation.", "released"
    )
    max_concurrent_episodes: int = option(
        0, "Episodes played at the same time per process (0: the whole block; of a panel at least 64)."
    )
    env_backend: Literal["inline", "thread", "process"] = option("inline", "How environments are stepped.")
    # Hindsight skills
    skill_source: str = option(
        "own",
        "Whose skill teaches: own, library, annotator, shuffled_group, shuffled_batch, shuffled_family, sibling_won, "
        "sibling_lost, own_goal_names, own_unnamed, random_text, generic, stale(k), stale_text(k), wrong_outcome or "
        "none.",
        "paper",
    )
    skill_annotator: str = option("rules", "Who writes for skill_source=annotator: rules, rules_terse or yours.")
    skill_analyzer: str = option(
        "auto", "How the policy is asked: auto, json, json_skill_only, json_steps, brief or turn."
    )
    skill_library: str = option("", "JSON file of the static skill library (skill_source=library, actor_skill).")
    max_skill_length: int = option(256, "Cap of a skill; longer ones are invalid.")
    max_analysis_length: int = option(
        4096, "New tokens the analyzer may write, up to 16 x max_skill_length.", "released"
    )
    max_analysis_prompt_length: int = option(16384, "Context of the analyzer; middle steps are left out.", "released")
    skill_temperature: float = option(0.0, "Temperature of the analyzer (0: greedy).", "released")
    skill_reward_coef: float = option(
        0.0, "Weight of a policy-gradient term on the analyzer's own answers, rewarded where gate and outcome agree."
    )
    # Distillation
    opd_coef: float = option(0.01, "Weight lambda of the distillation term; 0 is plain GRPO.", "paper")
    opd_term: Literal["gated", "sampled", "jsd", "skill_sd", "opid"] = option(
        "gated",
        "Distillation term: SEED's gated one, sampled reverse KL, full-vocabulary JSD, Skill-SD's, or OPID's.",
        "paper",
    )
    opd_gate: Literal["gap", "entropy", "soft_or", "constant", "centered", "permuted", "typical"] = option(
        "gap",
        "Gate: sigmoid(beta D) (SEED), SDAR's entropy or soft_or, constant 0.5, gap minus a baseline; without the "
        "teacher's word, permuted (gap of other tokens of the row) or typical (the token's likelihood).",
        "paper",
    )
    opd_gate_beta: float = option(5.0, "Sharpness beta of the gate.", "paper")
    opd_gate_schedule: Literal["constant", "linear", "cosine"] = option(
        "constant", "How opd_gate_beta changes to opd_gate_beta_end over training.", "paper"
    )
    opd_gate_beta_end: float = option(0.0, "Last value of a scheduled opd_gate_beta.")
    opd_start_round: int = option(0, "First round with distillation.", "paper")
    opd_stop_round: int = option(-1, "First round without distillation again (-1: never).", "paper")
    opd_tokens: Literal["all", "think", "action"] = option("all", "Which tokens of a reply are distilled.", "paper")
    opd_norm: Literal["own_mask", "all_tokens"] = option(
        "own_mask", "Normaliser: tokens with a valid skill (paper) or all loss tokens.", "paper"
    )
    opd_outcomes: Literal["all", "failure", "success"] = option("all", "Which episodes are distilled.", "paper")
    opd_jsd_mix: float = option(0.5, "b of the generalised JSD (0: KL(T||S), 1: KL(S||T)).", "released")
    opd_top_k: int = option(0, "JSD over the teacher's k likeliest tokens (0: whole vocabulary).")
    opd_shift_clip: float = option(0.0, "Largest |l_T - l_old| that opd_term=opid uses, in nats (0: no limit).")
    teacher_policy: Literal["live", "snapshot", "initial", "ema"] = option(
        "live",
        "Teacher weights: the current ones before each mini-batch (Algorithm 1), those of the round, those training "
        "began with, or their moving average.",
        "paper",
    )
    teacher_ema_decay: float = option(0.99, "What teacher_policy=ema keeps of its average at every optimiser step.")
    # Policy term
    rl_coef: float = option(1.0, "Factor on the advantages; 0 leaves distillation and KL only.", "paper")
    adv_unit: Literal["trajectory", "step"] = option("trajectory", "What is normalised within a group.", "paper")
    adv_std: Literal["population", "sample", "off"] = option("population", "Divisor of the advantage.", "paper")
    adv_invalid_penalty: float = option(
        0.0, "Penalty per invalid step (step unit), or times their share (trajectory unit).", "paper"
    )
    adv_penalised: Literal["format", "action"] = option(
        "format", "Invalid are replies that could not be read, or actions that the environment refused.", "paper"
    )
    adv_shaping: Literal["none", "rlsd", "opid"] = option("none", "Advantage shaped by the teacher's shift.", "paper")
    adv_shaping_coef: float = option(0.5, "w of RLSD, or the episode weight of OPID.")
    adv_shaping_rounds: int = option(0, "Rounds over which RLSD's w falls linearly to 0 (0: constant).")
    adv_step_skill_coef: float = option(0.0, "OPID's weight of critical-step skills.")
    adv_step_skill: Literal["replaces", "adds"] = option(
        "replaces", "Whether a critical-step skill takes the place of the episode skill there, or adds to it.", "paper"
    )
    gigpo_coef: float = option(0.0, "w of GiGPO's step-level advantage (0: off).", "paper")
    gigpo_gamma: float = option(0.95, "Discount of GiGPO's step returns.", "released")
    gigpo_similarity: float = option(1.0, "Anchors at least this similar are the same state (1: identical).")
    actor_skill: Literal["none", "train", "always"] = option(
        "none", "Library skill in the actor's own prompt: never, in training only, or in evaluation too.", "paper"
    )
    # Evaluation and records
    eval_temperature: float = option(0.4, "Sampling temperature of evaluations.", "released")
    eval_repeats: int = option(1, "Episodes per panel task in evaluations.")
    log_episodes: int = option(2, "Episodes written to episodes.jsonl with their tokens, per recorded round.")
    log_episodes_every: int = option(10, "Rounds between records in episodes.jsonl.")
    staleness_ages: str = option(
        "", "Comma-separated ages k for the staleness diagnostic, such as 0,1,5,10,25 (empty: off)."
    )
    staleness_noise_temperature: float = option(
        1.0, "Temperature at which today's analyzer writes again for the diagnostic's noise floor (0: not measured)."
    )
    staleness_every: int = option(10, "Rounds between staleness measurements.")
    staleness_gradients: bool = option(
        False, "Also measure the cosine of the distillation gradients (a backward pass over the whole round per age)."
    )
    gradient_every: int = option(
        0, "Rounds between comparisons of the distillation gradient with the policy gradient (0: off)."
    )

    def check_options(self) -> None:
        """Check what can be checked without TRL.

        Raises:
            ValueError: Naming the field, the value and what was expected.
        """
        # Not from the fields' own `type`: transformers' argument parser overwrites it.
        for name, annotation in get_type_hints(SEEDOptions).items():
            choices = list(get_args(annotation)) if get_origin(annotation) is Literal else []
            value = getattr(self, name)
            if choices and value not in choices:
                hint = close_matches(value, choices, limit=1)
                raise ValueError(f"{name}={value!r} is unknown, expected one of {choices}.{hint}")
        if self.rounds == 0:
            raise ValueError("rounds=0 trains nothing; give a number of rounds, or -1 to let num_train_epochs decide")
        source = parse_skill_source(self.skill_source)
        for name, (low, high) in _RANGES.items():
            value = getattr(self, name)
            if not low <= value <= high:
                limits = f"must be between {low:g} and {high:g}" if math.isfinite(high) else f"must be at least {low:g}"
                raise ValueError(f"{name}={value} {limits}")
        if not 0.0 <= self.teacher_ema_decay < 1.0:
            raise ValueError(f"teacher_ema_decay={self.teacher_ema_decay} must be at least 0 and below 1")
        needs_library = self.skill_source == "library" or self.actor_skill != "none"
        if needs_library and not self.skill_library:
            raise ValueError(
                "skill_source=library and actor_skill need skill_library=FILE.json; write one by hand or run "
                "`seed-train data --library FILE.json ...`"
            )
        if self.skill_reward_coef and (source.name != "own" or not self.skill_temperature or not self.opd_coef):
            raise ValueError(
                "skill_reward_coef rewards skills that the policy samples and is taught by: it needs skill_source=own, "
                "skill_temperature and opd_coef above 0"
            )
        if not re.fullmatch(r"\s*(\d+\s*(,\s*\d+\s*)*)?", self.staleness_ages):
            raise ValueError(f"staleness_ages={self.staleness_ages!r} must be numbers of rounds, such as '1,5,10,25'")
        if self.ages and source.name != "own":
            raise ValueError(
                f"staleness_ages compares the policy's own skills of today and of earlier rounds; it cannot be "
                f"measured with skill_source={self.skill_source}"
            )

    @property
    def ages(self) -> list[int]:
        """Ages of the staleness diagnostic."""
        return sorted({int(part) for part in self.staleness_ages.split(",") if part.strip()})
