"""Shards of one run, played on different machines, joined to one run folder.

Every episode comes out once: a scored record wins over a failed one. Two scored records of one episode must agree;
they are never averaged or picked from.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .errors import MergeConflict
from .folder import RunFolder, write_json
from .heads import read_run
from .journal import Journal, read_lines
from .records import EpisodeRecord
from .runner import RunResult, summarise_folder

#: Settings that may differ between parts: they say where a part was played, not what.
_PLACE = ("shard", "num_workers", "batch_size", "timeout", "executor", "ray_address", "ray_gpus", "fail_on_error")


def merge_runs(parts: Sequence[Path], out: Path) -> RunResult:
    """Join runs of one plan.

    Args:
        parts: Their folders, in any order.
        out: A new folder.

    Returns:
        The joined run; its outcome is ``complete`` when every episode of the whole plan is scored.

    Raises:
        MergeConflict: When the parts are not of one plan, or disagree on an episode.
        RunFolderInvalid: When a part is no run, or ``out`` is in use.
    """
    if not parts:
        raise MergeConflict("nothing to merge: name the folders of the parts")
    folders = [RunFolder(part) for part in parts]
    configs = [folder.read_config() for folder in folders]
    for part, config in zip(parts[1:], configs[1:], strict=True):
        _check_same_plan(parts[0], configs[0], part, config)
    chosen = _choose(folders)
    whole = {**configs[0]["run"], "shard": [1, 1]}
    planned = configs[0]["manifest"]["chosen"] * whole["repeats"]
    joined = RunFolder(out)
    joined.create(
        {**_without_version(configs[0]), "run": whole, "planned": planned, "merged_from": [str(p) for p in parts]}
    )
    with Journal(joined.episodes) as journal:
        for _, line in sorted(chosen.values(), key=lambda item: item[0].index):
            journal.append(line)
    _copy_images(folders, joined)
    _copy_attempts(folders, joined)
    summary = summarise_folder(joined)
    joined.write_summary(summary)
    return RunResult(joined, summary, "complete" if summary["complete"] else "incomplete")


def _check_same_plan(first: Path, one: dict[str, Any], second: Path, other: dict[str, Any]) -> None:
    for part, field in (("manifest", "chosen_sha256"), ("prompt", "sha256")):
        if one[part][field] != other[part][field]:
            raise MergeConflict(f"{first} and {second} differ in the {part} ({field}); they are not of one plan")
    for key, value in one["run"].items():
        if key not in _PLACE and other["run"].get(key) != value:
            raise MergeConflict(f"{first} and {second} differ in {key!r}: {value!r} against {other['run'].get(key)!r}")


def _choose(folders: Sequence[RunFolder]) -> dict[tuple[str, int], tuple[EpisodeRecord, bytes]]:
    chosen: dict[tuple[str, int], tuple[EpisodeRecord, bytes]] = {}
    for folder in folders:
        for record, line in zip(read_run(folder), read_lines(folder.episodes), strict=True):
            if record.key not in chosen or not chosen[record.key][0].scored:
                chosen[record.key] = (record, line)
            elif record.scored and _outcome(record) != _outcome(chosen[record.key][0]):
                raise MergeConflict(
                    f"{record.task_id} #{record.repeat} has two outcomes: {_outcome(chosen[record.key][0])} and "
                    f"{_outcome(record)} (in {folder.path})"
                )
    return chosen


def _outcome(record: EpisodeRecord) -> tuple[Any, ...]:
    return (record.seed, record.success, record.score, record.steps, record.stop_reason)


def _copy_images(folders: Sequence[RunFolder], joined: RunFolder) -> None:
    for folder in folders:
        if folder.images.is_dir():
            joined.images.mkdir(exist_ok=True)
            for path in sorted(folder.images.glob("*.png")):
                shutil.copyfile(path, joined.images / path.name)


def _copy_attempts(folders: Sequence[RunFolder], joined: RunFolder) -> None:
    for folder in folders:
        for attempt in folder.attempts():
            _, logs = joined.new_attempt()
            write_json(logs / "attempt.json", {**attempt, "from": str(folder.path)})


def _without_version(config: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in config.items() if key != "schema_version"}
