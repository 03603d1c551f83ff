"""``EnvPool``: several environments stepped side by side.

Unlike Gymnasium's vector environments the pool takes a task per slot (so a group can share one), steps only the slots
it is asked to, returns plain lists of texts, and turns an exception of one environment into a record while the others
go on. It never resets by itself. Back ends: ``inline`` (fastest for pure-Python environments), ``thread`` (for
environments that wait on a network) and ``process`` (isolation: crashes and hangs cost one slot).
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any, Literal

from seed_envs.slots import InlineSlot, MakeEnv, Slot, SlotResult, describe
from seed_envs.tasks import TaskSpec
from seed_envs.workers import ProcessSlot


def _make_slot(make_env: MakeEnv, backend: str, timeout: float | None) -> Slot:
    if backend != "process":
        return InlineSlot(make_env)
    return ProcessSlot(make_env, timeout)


class EnvPool:
    """A pool of environments.

    Args:
        make_env: Builds one environment (picklable for the process back end, e.g. ``functools.partial``).
        size: Number of slots.
        backend: See the module.
        timeout: Seconds one reset or step may take; only the process back end can enforce it.

    Raises:
        ValueError: For a size below 1, an unknown back end, or a timeout that is none or cannot be enforced.
    """

    def __init__(
        self,
        make_env: MakeEnv,
        size: int,
        backend: Literal["inline", "thread", "process"] = "inline",
        timeout: float | None = None,
    ) -> None:
        if size < 1:
            raise ValueError(f"size={size}; a pool has at least one slot")
        if backend not in ("inline", "thread", "process"):
            raise ValueError(f"backend={backend!r}; expected 'inline', 'thread' or 'process'")
        if timeout is not None and not timeout > 0:
            raise ValueError(f"timeout={timeout}; expected seconds above 0, or None for no limit")
        if timeout is not None and backend != "process":
            raise ValueError(f"backend={backend!r} cannot enforce timeout={timeout}; use backend='process'")
        self.size = size
        # Child processes get threads, too: each waits for the answer of its own child, so that all work at once.
        self._threads = ThreadPoolExecutor(size) if backend != "inline" else None
        self._slots: list[Slot] = []
        try:
            for _ in range(size):
                self._slots.append(_make_slot(make_env, backend, timeout))
        except BaseException:
            self.close()
            raise

    def reset(self, tasks: Mapping[int, TaskSpec]) -> dict[int, SlotResult]:
        """Reset the named slots, each to its own task."""
        return self._run("reset", tasks)

    def step(self, replies: Mapping[int, str]) -> dict[int, SlotResult]:
        """Step the named slots."""
        return self._run("step", replies)

    def call(self, slot: int, method: str) -> Any:
        """Call a method without arguments of a slot's unwrapped environment, e.g. ``oracle_action``."""
        return self._slots[slot].send("call", method)

    def close(self) -> None:
        """Close every environment, also when one of them raises; a second call does nothing."""
        with ExitStack() as stack:
            if self._threads is not None:
                stack.callback(self._threads.shutdown)
            while self._slots:
                stack.callback(self._slots.pop().close)

    def __enter__(self) -> EnvPool:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _run(self, method: str, arguments: Mapping[int, Any]) -> dict[int, SlotResult]:
        def one(slot: int) -> SlotResult:
            try:
                result: SlotResult = self._slots[slot].send(method, arguments[slot])
            except (Exception, SystemExit) as error:  # the boundary where an environment's fault becomes a record
                return SlotResult(error=describe(error))
            return result

        slots = list(arguments)
        results = map(one, slots) if self._threads is None else self._threads.map(one, slots)
        return dict(zip(slots, results, strict=True))
