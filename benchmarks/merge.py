"""Shards of one run, played on different machines, joined to one run folder.

Every episode comes out once: a scored record wins over a failed one. Two scored records of one episode must agree;
they are never averaged or picked from.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from seed_envs.journal import Journal, read_lines

from .errors import MergeConflict
from .folder import RunFolder, write_json
from .heads import read_run
from .identity import differences, what_is_played
from .records import EpisodeRecord
from .runner import RunResult, summarise_folder


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
    runs = [{**what_is_played(config["run"]), "shard": None} for config in (one, other)]
    for key, (value, another) in differences(*runs).items():
        raise MergeConflict(f"{first} and {second} differ in {key!r}: {value!r} against {another!r}")


def _choose(folders: Sequence[RunFolder]) -> dict[tuple[str, int], tuple[EpisodeRecord, bytes]]:
    chosen: dict[tuple[str, int], tuple[EpisodeRecord, bytes]] = {}
    for folder in folders:
        for record, line in zip(read_run(folder), read_lines(folder.episodes), strict=True):
            if record.key not in chosen or not chosen[record.key][0].scored:
                chosen[record.key] = (record, line)
            elif record.scored and record.outcome != chosen[record.key][0].outcome:
                raise MergeConflict(
                    f"{record.task_id} #{record.repeat} has two outcomes: {chosen[record.key][0].outcome} and "
                    f"{record.outcome} (in {folder.path})"
                )
    return chosen


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
