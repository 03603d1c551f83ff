"""Which tasks a run trains on and which panel it is evaluated on, as datasets of task ids."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seed_envs.base import SeedEnv
from seed_envs.errors import SeedEnvsError, UnboundedSplit
from seed_envs.statistics.panels import choose_tasks
from seed_envs.tasks import Manifest
from seed_trainer.errors import UserError

if TYPE_CHECKING:
    from datasets import Dataset


def draw_tasks(ids: Sequence[str], count: int) -> list[str]:
    """Return ``count`` ids of a list in listed order (all of them for 0): the draw that evaluation takes, too.

    Raises:
        UserError: If more are asked for than there are.
    """
    if count > len(ids):
        raise UserError(f"{count} tasks were asked for, but the split lists {len(ids)}; ask for fewer, or for 0 (all)")
    return choose_tasks(ids, count if count > 0 else None)


def split_rows(env: Any, split: str, count: int, what: str) -> list[dict[str, Any]]:
    """Return dataset rows of a split: listed ids, or seeds of a procedural split.

    Args:
        env: An environment of the right kind.
        split: Split name.
        count: Number of tasks; 0 takes all of a listed split.
        what: Name of the option that limits the number, for messages.

    Raises:
        UserError: For unknown splits, missing data, or a procedural split without a number.
    """
    try:
        ids = env.unwrapped.task_ids(split)
        if isinstance(env.unwrapped, SeedEnv):
            env.unwrapped.require_data(split)
    except UnboundedSplit:
        if count <= 0:
            raise UserError(f"split {split!r} is procedural and has no list: set {what} to a number of tasks") from None
        return [{"task_id": None, "split": split, "seed": seed} for seed in range(count)]
    except SeedEnvsError as error:
        raise UserError(str(error)) from None
    if not ids:
        raise UserError(f"split {split!r} has no task under the given env_kwargs")
    return [{"task_id": task_id, "split": split, "seed": None} for task_id in draw_tasks(ids, count)]


def manifest_rows(path: str, split: str) -> list[dict[str, Any]]:
    """Return dataset rows of a manifest file."""
    try:
        manifest = Manifest.load(Path(path))
    except (OSError, SeedEnvsError) as error:
        raise UserError(f"eval_manifest={path!r}: {error}") from None
    return [{"task_id": task_id, "split": split or None, "seed": None} for task_id in manifest.ids]


def as_dataset(rows: Sequence[dict[str, Any]]) -> Dataset:
    """Return rows as a dataset; columns that are empty throughout are left out."""
    from datasets import Dataset

    columns = [key for key in ("task_id", "split", "seed") if any(row[key] is not None for row in rows)]
    return Dataset.from_dict({key: [row[key] for row in rows] for key in columns})
