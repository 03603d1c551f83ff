"""Seconds spent in the parts of a step."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager


class Clock:
    """Adds up wall-clock seconds by name; nested parts are counted in their own name only."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self._open: list[float] = []

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Time a part."""
        start = time.perf_counter()
        self._open.append(0.0)
        try:
            yield
        finally:
            elapsed = time.perf_counter() - start
            inner = self._open.pop()
            self.seconds[name] += elapsed - inner
            if self._open:
                self._open[-1] += elapsed

    def flush(self) -> dict[str, float]:
        """Return the sums since the last call and start anew."""
        result = dict(self.seconds)
        self.seconds.clear()
        return result
