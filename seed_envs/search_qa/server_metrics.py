"""Counters of the retrieval server, as text in Prometheus' exposition format."""

from __future__ import annotations

from collections import Counter

_BOUNDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)


class Metrics:
    """Requests by status, queries, batches, and a histogram of request times."""

    def __init__(self) -> None:
        self.statuses: Counter[int] = Counter()
        self.queries = 0
        self.batches = 0
        self.batched = 0
        self._buckets = [0] * len(_BOUNDS)
        self._seconds = 0.0
        self._count = 0

    def batch(self, size: int) -> None:
        """One call of the engine with so many queries."""
        self.batches += 1
        self.batched += size

    def request(self, status: int, queries: int, seconds: float) -> None:
        """One finished request."""
        self.statuses[status] += 1
        self.queries += queries
        self._seconds += seconds
        self._count += 1
        for index, bound in enumerate(_BOUNDS):
            if seconds <= bound:
                self._buckets[index] += 1

    def render(self, queue: int, cache_hits: int, cache_misses: int) -> bytes:
        """The exposition text.

        Args:
            queue: Queries waiting.
            cache_hits: Of the query cache.
            cache_misses: Of the query cache.
        """
        lines = [f'searchqa_requests_total{{status="{status}"}} {n}' for status, n in sorted(self.statuses.items())]
        lines += [
            f"searchqa_queries_total {self.queries}",
            f"searchqa_queue_queries {queue}",
            f"searchqa_batches_total {self.batches}",
            f"searchqa_batched_queries_total {self.batched}",
            f"searchqa_cache_hits_total {cache_hits}",
            f"searchqa_cache_misses_total {cache_misses}",
        ]
        lines += [
            f'searchqa_request_seconds_bucket{{le="{bound}"}} {count}'
            for bound, count in zip(_BOUNDS, self._buckets, strict=True)
        ]
        lines += [
            f'searchqa_request_seconds_bucket{{le="+Inf"}} {self._count}',
            f"searchqa_request_seconds_sum {self._seconds:.6f}",
            f"searchqa_request_seconds_count {self._count}",
        ]
        return ("\n".join(lines) + "\n").encode()
