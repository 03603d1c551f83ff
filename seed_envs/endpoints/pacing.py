"""When to send: a rate limit shared by all requests, how long to wait after a failure, and how often to speak of it."""

from __future__ import annotations

import asyncio
import math
import random
import sys
import time
from collections.abc import Awaitable, Callable
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime

#: Longest wait that an endpoint may ask for, in seconds.
MAX_WAIT = 300.0
#: Seconds between two lines about failed attempts.
_LINE_GAP = 5.0


class RateLimiter:
    """Spaces requests evenly; everybody waits when the endpoint asks one of them to.

    Args:
        per_minute: Requests per minute, or None for no limit.
        clock: Seconds on a clock that never goes back.
        sleep: Waits for so many of its seconds.
    """

    def __init__(
        self,
        per_minute: float | None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._clock, self._sleep = clock, sleep
        self._gap = 0.0 if per_minute is None else 60.0 / per_minute
        self._next = self._blocked = 0.0

    async def wait(self) -> None:
        """Return when the next request may be sent."""
        slot = max(self._clock(), self._next, self._blocked)
        self._next = slot + self._gap
        while (delay := max(slot, self._blocked) - self._clock()) > 0:
            await self._sleep(delay)

    def pause(self, seconds: float) -> None:
        """Let nobody send for a while."""
        self._blocked = max(self._blocked, self._clock() + seconds)


class RetryLines:
    """Tells about attempts that failed and are made again: one line now and then, however many requests wait.

    Args:
        say: Told a line.
        clock: Seconds on a clock that never goes back.
    """

    def __init__(self, say: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._say, self._clock = say, clock
        self._spoken, self._silent = -math.inf, 0

    def failed(self, reason: str, attempt: int, attempts: int, wait: float) -> None:
        """Count a failure, and tell about it unless another was told about a moment ago.

        Args:
            reason: Why the attempt failed.
            attempt: Its number, from 1.
            attempts: Attempts per request.
            wait: Seconds until the next one.
        """
        if self._clock() - self._spoken < _LINE_GAP:
            self._silent += 1
            return
        more = f" ({self._silent} more failed since the last such line)" if self._silent else ""
        self._spoken, self._silent = self._clock(), 0
        reason = " ".join(reason.split())[:300]
        self._say(f"{reason}; attempt {attempt} of {attempts}, retrying in {wait:.1f} s{more}")


def on_standard_error(text: str) -> None:
    """Print a line, on a terminal in the place of a progress bar, which is drawn again below it."""
    print(f"\r\x1b[K{text}" if sys.stderr.isatty() else text, file=sys.stderr, flush=True)


def backoff(attempt: int, first: float, seed: int, longest: float = MAX_WAIT) -> float:
    """Seconds before a further attempt: doubled each time, between half and one and a half of it by jitter.

    Args:
        attempt: Failed attempts so far, at least 1.
        first: Seconds after the first failure.
        seed: Of the jitter.
        longest: Never more than this.
    """
    jitter = random.Random(f"{seed}/{attempt}").uniform(0.5, 1.5)
    return min(longest, first * 2.0 ** (attempt - 1) * jitter)


def retry_after(header: str | None) -> float | None:
    """Seconds in a ``Retry-After`` header (a number or a date), or None when there is none that can be read."""
    if not header:
        return None
    try:
        seconds = float(header)
    except ValueError:
        try:
            moment = parsedate_to_datetime(header)
        except ValueError:
            return None
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=timezone.utc)
        seconds = (moment - datetime.now(timezone.utc)).total_seconds()
    return min(MAX_WAIT, max(0.0, seconds)) if math.isfinite(seconds) else None
