"""The outcomes in a run's journal, each checked against the plan that the run's ``config.json`` describes.

A record that belongs to another run, shard or task is refused: numbers are never computed over a mixture. The tasks
themselves are not loaded; the seed of an episode, which its task decides, gives a foreign one away.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .errors import RecordsInvalid
from .folder import RunFolder
from .plan import episode_seed
from .records import EpisodeRecord, read_heads


def read_run(folder: RunFolder) -> Iterator[EpisodeRecord]:
    """The outcomes of a run in written order.

    Raises:
        RecordsInvalid: For a line that is no record or not of this run; the message names file, line and field.
        RunFolderInvalid: When the folder holds no run.
    """
    config = folder.read_config()
    tasks: dict[int, str] = {}
    for number, record in enumerate(read_heads(folder.episodes), 1):
        fault = _find_stray(record, config) or _find_second_task(record, config, tasks)
        if fault:
            raise RecordsInvalid(f"{folder.episodes}, line {number}: not an episode of this run ({fault})")
        yield record


def _find_stray(record: EpisodeRecord, config: Mapping[str, Any]) -> str:
    """Which field shows that a record is not of the plan, or ``""``."""
    run, chosen = config["run"], config["manifest"]["chosen"]
    shard, shards = run["shard"]
    if record.env_id != run["suite"]["env_id"]:
        return f"env_id: {record.env_id!r}, expected {run['suite']['env_id']!r}"
    if record.index >= chosen * run["repeats"]:
        return f"index: {record.index}, the plan has {chosen * run['repeats']} episodes"
    if record.index % shards != shard - 1:
        return f"index: {record.index} is not of shard {shard}/{shards}"
    if record.repeat != record.index // chosen:
        return f"repeat: {record.repeat}, expected {record.index // chosen} at index {record.index}"
    seed = episode_seed(run["seed"], record.task_id, record.repeat)
    if record.seed != seed:
        return f"task_id: {record.task_id!r} has seed {seed} in this run, the line says {record.seed}"
    return ""


def _find_second_task(record: EpisodeRecord, config: Mapping[str, Any], tasks: dict[int, str]) -> str:
    """Whether an earlier record has another task at the same place of the manifest."""
    known = tasks.setdefault(record.index % config["manifest"]["chosen"], record.task_id)
    return "" if known == record.task_id else f"task_id: {record.task_id!r}, an earlier line has {known!r} at its place"
