"""Manifests: fixed, hashed lists of task ids.

One id a line, in the order of the benchmark, checked in with the package. The hash makes two reports comparable: same
hash, same tasks. A manifest holds ids only; what an id means is the business of the environment.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, overload

from seed_envs.errors import DataInvalid, UnknownTask, close_matches


@dataclass(frozen=True)
class TaskSpec:
    """Which task an episode plays, and how ``reset`` is called.

    Attributes:
        task_id: The task, or None to let the environment draw one with ``seed``.
        split: The split to draw from (None: the environment's own).
        seed: Passed to ``reset``.
        group: Episodes of one group play the same task.
        options: Further reset options.
        stream: Names the randomness that a policy answers this episode with; empty leaves it to the policy.
    """

    task_id: str | None = None
    split: str | None = None
    seed: int | None = None
    group: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)
    stream: str = ""

    def reset_arguments(self) -> dict[str, Any]:
        """Keyword arguments for ``env.reset``."""
        options = {"task_id": self.task_id, "split": self.split, **self.options}
        return {"seed": self.seed, "options": {key: value for key, value in options.items() if value is not None}}


@dataclass(frozen=True)
class Manifest(Sequence[str]):
    """A listed panel of tasks.

    Attributes:
        name: For messages and reports, e.g. ``"alfworld/valid_seen"``.
        ids: The ids in listed order, each once.
        meta: Free notes (source, command that made the list).
    """

    name: str
    ids: tuple[str, ...]
    meta: dict[str, str] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        if len(set(self.ids)) != len(self.ids):
            raise DataInvalid(f"manifest {self.name!r} lists a task twice")

    @cached_property
    def sha256(self) -> str:
        """Hash of the ids in order (UTF-8, one a line, each line ended by a newline)."""
        return hashlib.sha256("".join(f"{task_id}\n" for task_id in self.ids).encode()).hexdigest()

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {task_id: position for position, task_id in enumerate(self.ids)}

    def check(self, task_id: object) -> str:
        """Return the id, or raise UnknownTask with close matches."""
        if not isinstance(task_id, str) or task_id not in self._positions:
            raise UnknownTask(
                f"task {task_id!r} is not in the manifest {self.name!r} ({len(self.ids)} tasks)."
                f"{close_matches(task_id, self.ids)}"
            )
        return task_id

    def __contains__(self, task_id: object) -> bool:
        return task_id in self._positions

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[str]:
        return iter(self.ids)

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[str, ...]: ...

    def __getitem__(self, index: int | slice) -> str | tuple[str, ...]:
        return self.ids[index]

    @classmethod
    def load(cls, path: Path) -> Manifest:
        """Read a manifest and verify its hash.

        Raises:
            DataInvalid: When it is no text, the header is missing or the ids do not fit the hash.
        """
        meta: dict[str, str] = {}
        ids: list[str] = []
        try:
            lines = Path(path).read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError as error:
            raise DataInvalid(f"{path}: not UTF-8 text ({error.reason} at byte {error.start})") from error
        for line in lines:
            if line.startswith("# "):
                key, _, value = line[2:].partition(": ")
                meta[key] = value
            elif line:
                ids.append(line)
        if "name" not in meta or "sha256" not in meta:
            raise DataInvalid(f"{path}: a manifest begins with the lines '# name: ...' and '# sha256: ...'")
        manifest = cls(meta.pop("name"), tuple(ids), meta)
        expected = meta.pop("sha256")
        if manifest.sha256 != expected:
            raise DataInvalid(f"{path}: the ids hash to {manifest.sha256}, the header says {expected}")
        return manifest

    def save(self, path: Path) -> None:
        """Write the manifest in the form :meth:`load` reads."""
        header = [f"# name: {self.name}", f"# sha256: {self.sha256}"]
        header += [f"# {key}: {value}" for key, value in self.meta.items()]
        Path(path).write_text("\n".join([*header, *self.ids]) + "\n", encoding="utf-8")
