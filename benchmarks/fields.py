"""What each field of a stored episode may hold: types and ranges, checked before anything counts with them.

Files of runs are copied, joined and edited; a wrong value must end as one line that names the field, not as a number
in a table. Whether an episode belongs to a run is the business of ``heads``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from seed_envs.trajectory import StopReason


def find_fault(values: Mapping[str, Any]) -> str:
    """Name the first field that cannot be what it says.

    Args:
        values: Fields of a record as they were read; absent ones are not judged.

    Returns:
        ``FIELD: VALUE, expected ...``, or ``""`` when all is well.
    """
    for name, (holds, expected) in _EXPECTED.items():
        if name in values and not holds(values[name]):
            return f"{name}: {_short(values[name])}, expected {expected}"
    return ""


def _count(least: int) -> tuple[Callable[[Any], bool], str]:
    return lambda value: type(value) is int and value >= least, f"a whole number of at least {least}"


def _number(least: float = -math.inf, most: float = math.inf) -> tuple[Callable[[Any], bool], str]:
    """A finite number in a range; NaN compares false with everything."""
    span = (
        "" if math.isinf(least) else f" of at least {least:g}" if math.isinf(most) else f" from {least:g} to {most:g}"
    )
    return (
        lambda value: type(value) in (int, float) and least <= value <= most and abs(value) < math.inf,
        f"a finite number{span}",
    )


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_moment(value: Any) -> bool:
    """An ISO 8601 time with its zone, or nothing."""
    try:
        return value == "" or datetime.fromisoformat(value).tzinfo is not None
    except (TypeError, ValueError):
        return False


def _is_card(value: Any) -> bool:
    """A run card as ``seed_envs.data_card`` makes it, or an empty object from an environment that has none."""
    if value == {}:
        return True
    if not isinstance(value, dict) or not all(isinstance(value.get(key), str) for key in ("kind", "split", "goals")):
        return False
    files, skipped, size = (value.get(key) for key in ("files", "skipped", "split_size"))
    return (
        (size is None or (type(size) is int and size >= 0))
        and isinstance(files, dict)
        and all(isinstance(digest, str) for digest in files.values())
        and isinstance(skipped, dict)
        and all(type(count) is int for count in skipped.values())
    )


def _is_grouping(value: Any) -> bool:
    return isinstance(value, dict) and all(type(part) in (int, str) for part in value.values())


def _is_measures(value: Any) -> bool:
    return isinstance(value, dict) and all(type(part) in (int, float) and 0 <= part <= 1 for part in value.values())


def _is_stop_reason(value: Any) -> bool:
    return isinstance(value, str) and value in {reason.value for reason in StopReason}


def _is_error(value: Any) -> bool:
    if value is None:
        return True
    return isinstance(value, dict) and {"type", "message"} <= value.keys() and all(map(_is_text, value.values()))


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


#: Fields that an agent reports with each reply, and a record sums up.
USAGE = ("prompt_tokens", "completion_tokens", "cost")

_TEXT = _is_text, "a text"
_EXPECTED: dict[str, tuple[Callable[[Any], bool], str]] = {
    "index": _count(0),
    "task_id": _TEXT,
    "repeat": _count(0),
    "seed": _count(0),
    "attempt": _count(1),
    "env_id": _TEXT,
    "task_type": _TEXT,
    "goal": _TEXT,
    "success": (lambda value: isinstance(value, bool), "true or false"),
    "score": _number(0, 1),
    "reward": _number(),
    "data": (_is_card, "a run card (kind, files, split, split_size, goals, skipped) or {}"),
    "stop_reason": (_is_stop_reason, f"one of {[reason.value for reason in StopReason]}"),
    "steps": _count(0),
    "invalid_formats": _count(0),
    "invalid_actions": _count(0),
    "cut_replies": _count(0),
    "filtered_replies": _count(0),
    "optimal_steps": (lambda value: value is None or (type(value) is int and value >= 0), "null or a whole number"),
    "by": (_is_grouping, "an object of names and whole numbers or texts"),
    "measures": (_is_measures, "an object of names and numbers from 0 to 1"),
    "prompt_tokens": _count(0),
    "completion_tokens": _count(0),
    "cost": _number(0),
    "started": (_is_moment, "a time in ISO 8601 with its zone"),
    "seconds": _number(0),
    "policy_seconds": _number(0),
    "env_seconds": _number(0),
    "error": (_is_error, "null, or texts under type, message and traceback"),
    "transcript": (lambda value: isinstance(value, dict), "an object"),
}
