"""The distillation term of a configuration: a table from ``opd_term`` to the formula, which it does not compute itself.

Full-vocabulary terms need logits and are the scorer's (:meth:`seed_trainer.learning.scorer.Scorer.divergence`).
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from seed_trainer.learning import losses
from seed_trainer.learning.scores import Scores
from seed_trainer.settings.options import SEEDOptions

TERMS: dict[str, Callable[[Scores, SEEDOptions], Tensor]] = {
    "gated": lambda s, options: losses.gated_distillation_BT(s.student, s.teacher, s.gates),
    "sampled": lambda s, options: losses.sampled_reverse_kl_BT(s.student, s.teacher),
    "skill_sd": lambda s, options: losses.skill_sd_BT(s.student, s.teacher, s.old),
    "opid": lambda s, options: losses.opid_loss_BT(s.student, s.teacher, s.old, options.opd_shift_clip or None),
}
"""Distillation terms per token, before weight and mask; ``jsd`` is not among them."""


def distillation_BT(options: SEEDOptions, scores: Scores) -> Tensor:
    """Return the distillation term per token, before its weight and its mask.

    Raises:
        ValueError: For ``jsd``, which needs whole distributions.
    """
    if options.opd_term not in TERMS:
        raise ValueError(f"opd_term={options.opd_term!r} cannot be computed from sampled tokens")
    return TERMS[options.opd_term](scores, options)
