"""People's own sentences for the official games, from ALFRED's annotations.

They are read from where the games lie: a pack has ``alfred_annotations.jsonl.xz``
beside it, a tree of game files a ``traj_data.json`` beside each game.  The
text is only shown, never interpreted.
"""

from __future__ import annotations

import json
import lzma
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from seed_envs.alfworld.gamefile import MAX_SENTENCE_CHARS, load_document
from seed_envs.alfworld.goals import SENTENCE_PREFIX
from seed_envs.errors import DataInvalid, DataMissing

ANNOTATIONS: Final = "alfred_annotations.jsonl.xz"
TRAJECTORY: Final = "traj_data.json"
MAX_ANNOTATION_BYTES: Final = 200_000_000
_PRINTED: Final = re.compile(r"[^ -~]+")
"""What people typed beside visible ASCII: a few control characters."""


def human_sentence(folder: Path, task_id: str, number: int) -> str:
    """What one person asked for in a game.

    Args:
        folder: where the games lie.
        task_id: id of the game, ``split/task/trial``.
        number: which of its annotations, from 0.

    Returns:
        The goal line: the game's opening words, the person's sentence, one full stop.

    Raises:
        DataMissing: when there is no such annotation; says which file should hold it.
        DataInvalid: when the file breaks its format.
    """
    wishes = _annotations(folder).get(task_id) or _beside_game(folder, task_id)
    if number >= len(wishes):
        raise DataMissing(
            f"{task_id!r} has {len(wishes)} sentences by people in {folder}, number {number} is wanted; they come from "
            f"{ANNOTATIONS} beside a pack or {TRAJECTORY} beside each game.tw-pddl (ALFRED's annotations)"
        )
    return f"{SENTENCE_PREFIX}{wishes[number]}."


@lru_cache(maxsize=4)
def _annotations(folder: Path) -> Mapping[str, tuple[str, ...]]:
    """All sentences of a pack by game; empty when there is no such file."""
    path = folder / ANNOTATIONS
    if not path.is_file():
        return {}
    found: dict[str, tuple[str, ...]] = {}
    try:
        with lzma.open(path, "rb") as file:
            content = file.read(MAX_ANNOTATION_BYTES + 1)
        if len(content) > MAX_ANNOTATION_BYTES:
            raise DataInvalid(f"{path}: unpacks to more than {MAX_ANNOTATION_BYTES:,} bytes")
        for line in content.splitlines():
            row = json.loads(line)
            found[f"{row['split']}/{row['task']}/{row['trial']}"] = _wishes(row["anns"], str(path))
    except (OSError, EOFError, lzma.LZMAError, LookupError, TypeError, json.JSONDecodeError) as error:
        raise DataInvalid(f"{path}: expected JSON lines with split, task, trial and anns: {error!r}") from error
    return found


def _beside_game(folder: Path, task_id: str) -> tuple[str, ...]:
    roots = [folder, *sorted(folder.glob("json_*"), reverse=True)]
    path = next((root / task_id / TRAJECTORY for root in roots if (root / task_id / TRAJECTORY).is_file()), None)
    if path is None:
        return ()
    try:
        return _wishes(load_document(path)["turk_annotations"]["anns"], str(path))
    except (LookupError, TypeError) as error:
        raise DataInvalid(f"{path}: expected turk_annotations.anns as ALFRED writes them: {error!r}") from error


def _wishes(annotations: Any, source: str) -> tuple[str, ...]:
    wishes = tuple(" ".join(_PRINTED.sub(" ", str(one["task_desc"])).split()).rstrip(". ") for one in annotations)
    longest = max(map(len, wishes), default=0)
    if longest > MAX_SENTENCE_CHARS:
        raise DataInvalid(f"{source}: a sentence of {longest:,} characters; at most {MAX_SENTENCE_CHARS:,} are shown")
    return wishes
