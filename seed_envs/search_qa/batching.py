"""Gathers the queries of concurrent requests into few calls of a retriever.

A batch starts as soon as the engine is free and takes what is waiting, up to a size: nobody waits for company, and
under load batches grow by themselves. A large request queues one batch after the other, so that small ones get their
turn in between. The queue is bounded.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from seed_envs.search_qa.retrievers.base import Hit, RetrievalTimeout, RetrievalUnavailable, Retriever

MAX_BATCH = 64


class QueueFull(Exception):
    """More queries are waiting than the queue may hold."""


class _Job(NamedTuple):
    queries: list[str]
    k: int
    deadline: float
    future: asyncio.Future[list[list[Hit]]]


class Batcher:
    """Runs searches for many requests.

    Args:
        retriever: The engine.
        max_waiting: Most queries that may wait.
        on_batch: Called with the size of every batch.
    """

    def __init__(self, retriever: Retriever, max_waiting: int = 8192, on_batch: object = None) -> None:
        self._retriever = retriever
        self._max_waiting = max_waiting
        self._on_batch = on_batch
        self._jobs: deque[_Job] = deque()
        self._running: list[_Job] = []
        self.waiting = 0
        self._wake = asyncio.Event()
        self._pool = None if retriever.capabilities.quick else ThreadPoolExecutor(1, "searchqa")
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Starts the worker in the running event loop."""
        self._task = asyncio.get_running_loop().create_task(self._work())

    async def stop(self) -> None:
        """Ends the worker; waiting requests fail."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        for job in (*self._running, *self._jobs):
            if not job.future.done():
                job.future.set_exception(RetrievalUnavailable("the server is stopping"))
        if self._pool is not None:
            self._pool.shutdown(wait=False)

    async def search(self, queries: list[str], k: int, deadline: float) -> list[list[Hit]]:
        """Searches, batch by batch.

        Raises:
            QueueFull: Too many queries are waiting; one request of any size is taken when none is.
            RetrievalFailure: What the engine raises.
        """
        if self.waiting and self.waiting + len(queries) > self._max_waiting:
            raise QueueFull(f"{self.waiting} queries are waiting")
        results: list[list[Hit]] = []
        for start in range(0, len(queries), MAX_BATCH):
            results += await self._submit(queries[start : start + MAX_BATCH], k, deadline)
        return results

    def _submit(self, queries: list[str], k: int, deadline: float) -> asyncio.Future[list[list[Hit]]]:
        future: asyncio.Future[list[list[Hit]]] = asyncio.get_running_loop().create_future()
        self.waiting += len(queries)
        self._jobs.append(_Job(queries, k, deadline, future))
        self._wake.set()
        return future

    def _next_batch(self) -> list[_Job]:
        """Jobs of one k, up to `MAX_BATCH` queries; at least one job."""
        batch = [self._jobs.popleft()]
        size = len(batch[0].queries)
        while self._jobs and self._jobs[0].k == batch[0].k and size + len(self._jobs[0].queries) <= MAX_BATCH:
            batch.append(self._jobs.popleft())
            size += len(batch[-1].queries)
        self.waiting -= size
        return batch

    async def _work(self) -> None:
        while True:
            await self._wake.wait()
            while self._jobs:
                self._running = self._next_batch()
                await self._run(self._running)
                # Let finished requests answer and new ones arrive between batches.
                await asyncio.sleep(0)
            self._wake.clear()

    async def _run(self, batch: list[_Job]) -> None:
        now = time.monotonic()
        live = [job for job in batch if not job.future.done() and job.deadline > now]
        for job in batch:
            if job not in live and not job.future.done():
                job.future.set_exception(RetrievalTimeout("the deadline passed in the queue"))
        if not live:
            return
        queries = [query for job in live for query in job.queries]
        deadline = max(job.deadline for job in live)
        if callable(self._on_batch):
            self._on_batch(len(queries))
        try:
            results = await self._search(queries, live[0].k, deadline)
        except Exception as error:
            for job in live:
                if not job.future.done():
                    job.future.set_exception(error)
            return
        start = 0
        for job in live:
            if not job.future.done():
                job.future.set_result(results[start : start + len(job.queries)])
            start += len(job.queries)

    async def _search(self, queries: list[str], k: int, deadline: float) -> list[list[Hit]]:
        if self._pool is None:
            return self._call(queries, k, deadline)
        return await asyncio.get_running_loop().run_in_executor(self._pool, self._call, queries, k, deadline)

    def _call(self, queries: Sequence[str], k: int, deadline: float) -> list[list[Hit]]:
        found = self._retriever.search(queries, k, deadline)
        if len(found) != len(queries):
            raise RuntimeError(f"the retriever returned {len(found)} lists for {len(queries)} queries")
        return found
