"""Methods as data: ``--method NAME`` sets the fields that define it and leaves all others alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from seed_envs.errors import close_matches
from seed_envs.plugins import OpenTable


@dataclass(frozen=True)
class Method:
    """One method.

    Attributes:
        fields: Configuration fields it sets.
        about: One sentence.
        source: Where it is described.
        trains: False for methods that are only evaluated.
    """

    fields: Mapping[str, Any] = field(default_factory=dict)
    about: str = ""
    source: str = ""
    trains: bool = True


_LIBRARY = {"skill_source": "library"}
_NO_TEACHER = {"opd_coef": 0.0, "adv_shaping": "none", "actor_skill": "none"}

_METHODS: dict[str, Method] = {
    "grpo": Method(
        {**_NO_TEACHER, "gigpo_coef": 0.0}, "Group-relative advantages, clipped surrogate, k3 KL.", "DeepSeekMath"
    ),
    "seed": Method(
        {"opd_term": "gated", "opd_gate": "gap", "skill_source": "own", "adv_shaping": "none", "actor_skill": "none"},
        "GRPO plus distillation gated by the policy's own hindsight skill.",
        "arXiv 2607.14777",
    ),
    "sdar": Method(
        {**_LIBRARY, "opd_term": "gated", "opd_gate": "gap"},
        "SEED's formula with a static library.",
        "arXiv 2605.15155",
    ),
    "sdar_entropy": Method(
        {**_LIBRARY, "opd_term": "gated", "opd_gate": "entropy"}, "SDAR with the entropy gate.", "arXiv 2605.15155"
    ),
    "sdar_soft_or": Method(
        {**_LIBRARY, "opd_term": "gated", "opd_gate": "soft_or"}, "SDAR with the soft-or gate.", "arXiv 2605.15155"
    ),
    # The authors' scripts fix the teacher; one that moves with its student can collapse together with it.
    "opsd": Method(
        {**_LIBRARY, "opd_term": "jsd", "opd_coef": 1.0, "rl_coef": 0.0, "beta": 0.0, "teacher_policy": "initial"},
        "Full-vocabulary JSD to a privileged teacher with the initial weights; no policy term.",
        "arXiv 2601.18734",
    ),
    "opsd_sampled": Method(
        {**_LIBRARY, "opd_term": "sampled", "opd_coef": 1.0, "rl_coef": 0.0, "beta": 0.0, "teacher_policy": "initial"},
        "Reverse KL on sampled tokens to such a teacher; no policy term.",
        "arXiv 2601.18734",
    ),
    "opsd_as_tabled": Method(
        {**_LIBRARY, "opd_term": "gated", "opd_gate": "gap", "rl_coef": 0.0},
        "SDAR's loss without the policy term, as behind the published OPSD rows.",
        "ZJU-REAL/SDAR#16",
    ),
    "grpo_opsd_released": Method(
        {**_LIBRARY, "opd_term": "gated", "opd_gate": "gap", "opd_gate_beta": 0.0},
        "SDAR with beta 0: every gate is 0.5, the teacher has no effect.",
        "ZJU-REAL/SDAR#16",
    ),
    "grpo_opsd": Method(
        {**_LIBRARY, "opd_term": "sampled"}, "GRPO plus sampled reverse KL to the teacher.", "arXiv 2605.15155"
    ),
    "grpo_opsd_full": Method(
        {**_LIBRARY, "opd_term": "jsd", "opd_jsd_mix": 1.0},
        "GRPO plus full-vocabulary KL(student || teacher).",
        "arXiv 2605.15155",
    ),
    "skill_sd": Method(
        {**_LIBRARY, "opd_term": "skill_sd", "opd_coef": 0.001},
        "Importance-weighted k3 to the teacher.",
        "arXiv 2604.10674",
    ),
    "rlsd": Method(
        {**_LIBRARY, "opd_coef": 0.0, "adv_shaping": "rlsd", "adv_shaping_coef": 0.5, "adv_shaping_rounds": 100},
        "Advantages scaled by the teacher's clipped evidence ratio.",
        "arXiv 2604.03128",
    ),
    "opid": Method(
        {"skill_source": "own", "opd_coef": 0.0, "adv_shaping": "opid", "adv_shaping_coef": 0.001},
        "Advantages plus the teacher's shift under the episode's own skill.",
        "arXiv 2606.26790",
    ),
    "opid_steps": Method(
        {
            "skill_source": "own",
            "opd_coef": 0.0,
            "adv_shaping": "opid",
            "adv_shaping_coef": 0.001,
            "adv_step_skill_coef": 0.001,
            "skill_analyzer": "json_steps",
            "rollout_layout": "turn",
        },
        "The same, and the most critical step is scored under a skill of its own.",
        "arXiv 2606.26790",
    ),
    "opid_loss": Method(
        {"skill_source": "own", "opd_term": "opid", "opd_coef": 0.001, "adv_shaping": "none"},
        "The teacher's shift at sampling time as the weight of an extra loss, instead of in the advantage.",
        "arXiv 2606.26790",
    ),
    "skill_grpo": Method(
        {**_NO_TEACHER, "actor_skill": "train"},
        "Library skill in the actor's prompt while training.",
        "arXiv 2605.15155",
    ),
    "skill_grpo_star": Method(
        {**_NO_TEACHER, "actor_skill": "always"}, "The same, skill kept at evaluation.", "arXiv 2605.15155"
    ),
    "gigpo": Method(
        {**_NO_TEACHER, "gigpo_coef": 1.0, "adv_std": "sample"},
        "Step-level advantages at shared states.",
        "langfengQ/verl-agent",
    ),
    "vanilla": Method(_NO_TEACHER, "No training, no skill.", trains=False),
    "skill_prompt": Method(
        {**_NO_TEACHER, "actor_skill": "always"}, "No training, library skill in the prompt.", trains=False
    ),
    "wo_sft": Method(
        {"skill_source": "own", "start_from": "base"},
        "SEED without stage 1: starts from base_model.",
        "arXiv 2607.14777",
    ),
    "wo_opd": Method({"opd_coef": 0.0}, "Stage 1, then GRPO.", "arXiv 2607.14777"),
    "wo_on_policy_skill": Method(_LIBRARY, "Stage 1 and SEED's loss, but a static library.", "arXiv 2607.14777"),
}
METHODS: OpenTable[Method] = OpenTable("--method", "methods", Method, _METHODS, ValueError)
"""Every method; ``seed-train rl --method NAME``. Yours: ``module:attribute``, or an entry point of
``seed_envs.methods``."""


def lookup(table: Mapping[str, Any], name: str, flag: str) -> Any:
    """Return an entry of a table.

    Raises:
        ValueError: Naming the flag, what is known and a close match.
    """
    if name not in table:
        hint = close_matches(name, table, limit=1)
        raise ValueError(f"--{flag} {name!r} is unknown, expected one of {sorted(table)}.{hint}")
    return table[name]
