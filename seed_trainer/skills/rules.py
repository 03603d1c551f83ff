"""Skills written by rule: a function from a trajectory and its outcome to a text."""

from __future__ import annotations

from collections.abc import Callable

from seed_envs.plugins import OpenTable
from seed_envs.registration import find_row, load_attribute
from seed_envs.trajectory import Trajectory
from seed_trainer.errors import UserError

Annotate = Callable[[Trajectory], str]


def by_rules(episode: Trajectory) -> str:
    """The environment's own rules, which see only the trajectory and its outcome.

    Raises:
        UserError: If the environment has none.
    """
    return rules_of(episode.env_id)(episode)


def by_terse_rules(episode: Trajectory) -> str:
    """Their short form, made for word-level models.

    Raises:
        UserError: If the environment has none.
    """
    return rules_of(episode.env_id, terse=True)(episode)


ANNOTATORS: OpenTable[Annotate] = OpenTable(
    "annotator",
    "annotators",
    Callable,
    {"rules": by_rules, "rules_terse": by_terse_rules},
    UserError,
    also=["endpoint", "policy"],
)
"""Functions from a trajectory to a skill. Yours: ``module:function``, or an entry point of ``seed_envs.annotators``."""


def rules_of(env_id: str, terse: bool = False) -> Annotate:
    """The rules that write skills about episodes of an environment.

    Raises:
        UserError: If it has none, or none of the short form.
    """
    reference = find_row(env_id).annotator
    if not reference:
        raise UserError(
            f"{env_id} has no rules that write skills; give a function of yours, --annotator module:function (to "
            "`inspect`: --skill)"
        )
    try:
        found = load_attribute(f"{reference.partition(':')[0]}:annotate_terse" if terse else reference)
    except AttributeError:
        raise UserError(f"annotator=rules_terse: {env_id} has no short rules; use --annotator rules") from None
    annotate: Annotate = found
    return annotate
