"""``seed-bench repair``: take lines out of a run's journal that are no episodes of it, so that the run can go on.

What is taken out is kept beside the journal; the episodes that miss afterwards are played again by ``run --resume``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from seed_envs.journal import Journal, read_lines

from .errors import RecordsInvalid
from .folder import RunFolder, write_bytes
from .heads import Plan
from .records import parse_head


@dataclass(frozen=True)
class Repaired:
    """What was done.

    Attributes:
        kept: Lines that stayed.
        faults: What was wrong with each line taken out.
        copy: The journal as it was, or None when nothing was wrong.
    """

    kept: int
    faults: tuple[str, ...]
    copy: Path | None


def repair_run(path: Path) -> Repaired:
    """Take damaged, foreign and contradicting lines out of a run's journal.

    Of two scored records of one episode that contradict each other both go: nobody knows which one is true.

    Args:
        path: The run's folder.

    Raises:
        RunFolderInvalid: When it holds no run.
        RunLocked: When a process is writing to it.
    """
    folder = RunFolder(path)
    plan = Plan(folder.read_config())
    with Journal(folder.episodes):
        lines = list(read_lines(folder.episodes))
        good: dict[int, tuple[str, int]] = {}
        faults: list[str] = []
        torn: set[tuple[str, int]] = set()
        for number, line in enumerate(lines, 1):
            try:
                record = parse_head(line, folder.episodes, number)
                json.loads(line)  # the head may be whole and the transcript behind it torn
                if fault := plan.find_fault(record):
                    raise RecordsInvalid(f"{folder.episodes}, line {number}: {fault}")
                if fault := plan.find_contradiction(record):
                    torn.add(record.key)
                    raise RecordsInvalid(f"{folder.episodes}, line {number}: {fault}")
                good[number] = record.key
            except RecordsInvalid as error:
                faults.append(str(error))
            except (ValueError, RecursionError) as error:
                faults.append(f"{folder.episodes}, line {number}: not an episode record (transcript: {error})")
        if not faults:
            return Repaired(len(lines), (), None)
        kept = [lines[number - 1] for number, key in good.items() if key not in torn]
        copy = _free_name(folder.episodes)
        write_bytes(copy, folder.episodes.read_bytes(), new=True)
        write_bytes(folder.episodes, b"".join(line + b"\n" for line in kept))
    return Repaired(len(kept), tuple(faults), copy)


def _free_name(journal: Path) -> Path:
    number = 1
    while (copy := journal.with_name(f"{journal.name}.damaged-{number}")).exists():
        number += 1
    return copy
