"""Retries and circuit breaking inside one deadline: when to try again, when to give up, when not to try at all.

The clock and the random numbers are parameters, so that every rule can be tested without waiting.
"""

from __future__ import annotations

import random
import threading
import time
from collections import deque
from collections.abc import Callable

MAX_TRIES = 4
FIRST_WAIT = 0.05
LONGEST_WAIT = 2.0
RETRIED_STATUSES = frozenset({429, 502, 503, 504})


def backoff(tries: int, rng: random.Random) -> float:
    """Seconds to wait after a number of failed tries: uniform in [0, min(2 s, 50 ms * 2^tries)]."""
    return rng.uniform(0.0, min(LONGEST_WAIT, FIRST_WAIT * 2**tries))


class CircuitBreaker:
    """Stops sending to an endpoint that keeps failing, and probes it now and then.

    Opens after five failures in a row or ten failures among the last twenty calls. While open, one probe is let through
    after 1 s, then 2 s, up to 30 s, each with jitter; a success closes it.

    Args:
        clock: Monotonic seconds.
        rng: For the jitter.
    """

    IN_A_ROW = 5
    WINDOW = 20
    HALF = 10
    FIRST_PAUSE = 1.0
    LONGEST_PAUSE = 30.0

    def __init__(self, clock: Callable[[], float] = time.monotonic, rng: random.Random | None = None) -> None:
        self._clock = clock
        self._rng = rng or random.Random()
        self._lock = threading.Lock()
        self._recent: deque[bool] = deque(maxlen=self.WINDOW)
        self._row = 0
        self._pause = 0.0
        self._next_probe = 0.0

    @property
    def is_open(self) -> bool:
        """Whether calls are refused except for probes."""
        return self._pause > 0.0

    def allows(self) -> bool:
        """Whether a call may be made now; while open, this claims the probe."""
        with self._lock:
            if not self.is_open:
                return True
            now = self._clock()
            if now < self._next_probe:
                return False
            # Nobody else probes until this probe has reported or its pause has passed again.
            self._next_probe = now + self._pause
            return True

    def succeeded(self) -> None:
        """Reports a call that was answered."""
        with self._lock:
            if self.is_open:
                self._recent.clear()
            self._pause = 0.0
            self._row = 0
            self._recent.append(True)

    def failed(self) -> None:
        """Reports a call that was not."""
        with self._lock:
            self._row += 1
            self._recent.append(False)
            if self.is_open:
                self._pause = min(self.LONGEST_PAUSE, 2 * self._pause)
            elif self._row >= self.IN_A_ROW or self._recent.count(False) >= self.HALF:
                self._pause = self.FIRST_PAUSE
            if self.is_open:
                self._next_probe = self._clock() + self._pause * self._rng.uniform(0.8, 1.2)
