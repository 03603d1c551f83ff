"""The outcomes in a run's journal, each checked against the plan that the run's ``config.json`` describes.

A record that belongs to another run, shard or task is refused, and so are two scored records of one episode that
contradict each other: numbers are never computed over a mixture. The tasks themselves are not loaded; the seed of an
episode, which its task decides, gives a foreign one away.
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
        RecordsInvalid: For a line that is no record, not of this run, or contradicts an earlier one; the message names
            file, line and field, and the command that mends it.
        RunFolderInvalid: When the folder holds no run.
    """
    plan = Plan(folder.read_config())
    try:
        for number, record in enumerate(read_heads(folder.episodes), 1):
            if fault := plan.find_fault(record) or plan.find_contradiction(record):
                raise RecordsInvalid(f"{folder.episodes}, line {number}: {fault}")
            yield record
    except RecordsInvalid as error:
        raise RecordsInvalid(
            f"{error}; to take such lines out and play their episodes again: seed-bench repair {folder.path}"
        ) from error


class Plan:
    """What records of a run can look like.

    Args:
        config: Content of the run's ``config.json``.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._run, self._chosen = config["run"], config["manifest"]["chosen"]
        self._tasks: dict[int, str] = {}
        self._scored: dict[tuple[str, int], EpisodeRecord] = {}

    def find_fault(self, record: EpisodeRecord) -> str:
        """Which field shows that a record is not of this run, or ``""``."""
        fault = self._find_stray(record) or self._find_second_task(record)
        return f"not an episode of this run ({fault})" if fault else ""

    def find_contradiction(self, record: EpisodeRecord) -> str:
        """How a scored record contradicts an earlier scored one of the same episode, or ``""``."""
        if not record.scored:
            return ""
        earlier = self._scored.setdefault(record.key, record)
        if earlier.outcome == record.outcome:
            return ""
        return f"{record.task_id} #{record.repeat} has two outcomes: {earlier.outcome} and {record.outcome}"

    def _find_stray(self, record: EpisodeRecord) -> str:
        run, chosen = self._run, self._chosen
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

    def _find_second_task(self, record: EpisodeRecord) -> str:
        """Whether an earlier record has another task at the same place of the manifest."""
        known = self._tasks.setdefault(record.index % self._chosen, record.task_id)
        if known == record.task_id:
            return ""
        return f"task_id: {record.task_id!r}, an earlier line has {known!r} at its place"
