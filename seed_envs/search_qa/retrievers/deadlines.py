"""One deadline per step: a monotonic time that every try, wait and read of a retrieval shares."""

from __future__ import annotations

import time

from seed_envs.errors import UnknownOption
from seed_envs.search_qa.retrievers.base import FailureDetails, RetrievalTimeout


def check_seconds(name: str, value: float | None) -> float | None:
    """Returns a time limit in seconds; None stands for none.

    Raises:
        UnknownOption: It is no number above 0.
    """
    if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0):
        raise UnknownOption(f"{name}={value!r}: expected seconds above 0, or None for no limit")
    return value


def deadline_in(seconds: float | None) -> float | None:
    """The `time.monotonic()` value that many seconds from now; None for no limit."""
    return None if seconds is None else time.monotonic() + seconds


def time_left(deadline: float | None, most: float) -> float:
    """Seconds until the deadline, at most `most`; not negative."""
    return most if deadline is None else max(0.0, min(most, deadline - time.monotonic()))


def check_deadline(deadline: float | None, endpoint: str) -> None:
    """Does nothing before the deadline.

    Raises:
        RetrievalTimeout: After it.
    """
    if deadline is not None and time.monotonic() > deadline:
        raise RetrievalTimeout("the step's deadline has passed", FailureDetails(endpoint))
