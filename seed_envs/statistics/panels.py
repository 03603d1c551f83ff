"""Which tasks of a list are played when not all are."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from fractions import Fraction

from seed_envs.errors import UnknownOption


def count_of(limit: int | float, total: int) -> int:
    """How many a limit stands for: itself, or the share of a total, rounded up.

    The share is the decimal number that was written, not its binary neighbour: 0.07 of 100 is 7, although
    ``0.07 * 100`` is a little more.

    Args:
        limit: A whole number, or a share below 1.
        total: What it is a share of.

    Raises:
        UnknownOption: For a number that is neither.
    """
    exact = Fraction(str(float(limit)))
    if exact.denominator == 1:
        return int(exact)
    if not 0 < exact < 1:
        raise UnknownOption(f"limit={limit}; expected a whole number or a share below 1")
    return math.ceil(exact * total)


def choose_tasks(task_ids: Sequence[str], limit: int | float | None) -> list[str]:
    """A fixed sample of the tasks in listed order.

    The sample is drawn by the hash of the ids: it is the same for every agent and seed, it mixes the families also
    where the manifest lists them one after the other, and a smaller limit gives a part of a larger one.

    Args:
        task_ids: The manifest.
        limit: See :func:`count_of`; None keeps all.

    Raises:
        UnknownOption: For a limit that is neither a number of tasks nor a share.
    """
    if limit is None:
        return list(task_ids)
    ranked = sorted(task_ids, key=lambda task_id: hashlib.sha256(task_id.encode()).digest())
    kept = set(ranked[: count_of(limit, len(task_ids))])
    return [task_id for task_id in task_ids if task_id in kept]
