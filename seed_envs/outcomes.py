"""What an environment says: the outcome of an action, where the task stands, what may be done next."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple


class Outcome(NamedTuple):
    """What one action did.

    Attributes:
        observation: Text, or a dict with ``text`` and ``image``.
        reward: The task's own reward, unscaled.
        terminated: The task says the episode is over.
        action_valid: Whether the environment did what it was asked; False leaves the state unchanged.
        invalid_reason: Why the action was refused or could not be read, or ``""``.
        truncated: A fault of the environment's own back end or protocol; step limits belong to ``TimeLimit``.
        stop_reason: A ``StopReason`` value when the episode ended here; ``""`` means it is derived from the flags.
        format_valid: False when the environment reads the reply itself and found no well-formed action in it.
    """

    observation: Any
    reward: float = 0.0
    terminated: bool = False
    action_valid: bool = True
    invalid_reason: str = ""
    truncated: bool = False
    stop_reason: str = ""
    format_valid: bool = True


class TaskStatus(NamedTuple):
    """Where the current task stands."""

    task_type: str
    goal: str
    success: bool
    score: float


class LazyActions(Sequence[str]):
    """The admissible actions, computed when somebody looks.

    Args:
        compute: Returns the actions in order. It must close over an immutable snapshot, so that the list stays the
            one of its own step however late it is read.
    """

    __slots__ = ("_compute", "_values")

    def __init__(self, compute: Callable[[], Sequence[str]]) -> None:
        self._compute: Callable[[], Sequence[str]] | None = compute
        self._values: tuple[str, ...] = ()

    def _get(self) -> tuple[str, ...]:
        compute = self._compute  # read once: another thread may finish first
        if compute is not None:
            self._values = tuple(compute())
            self._compute = None
        return self._values

    def __getitem__(self, index: Any) -> Any:
        return self._get()[index]

    def __len__(self) -> int:
        return len(self._get())

    def __iter__(self) -> Iterator[str]:
        return iter(self._get())

    def __contains__(self, value: object) -> bool:
        return value in self._get()

    def __eq__(self, other: object) -> bool:
        if isinstance(other, LazyActions):
            return self._get() == other._get()
        return isinstance(other, tuple) and self._get() == other

    def __hash__(self) -> int:
        return hash(self._get())

    def __repr__(self) -> str:
        return repr(self._get())

    def __reduce__(self) -> tuple[Any, ...]:
        return (tuple, (self._get(),))

    def __deepcopy__(self, memo: dict[int, Any]) -> tuple[str, ...]:
        return self._get()


class Count(int):
    """A number in an info where other states have None.

    Gymnasium's vector environments make an array of the first value's type, and None does not fit into one of integers;
    what they do not know goes into an array of objects.
    """

    __slots__ = ()
