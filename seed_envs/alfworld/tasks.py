"""Which games there are: splits, listed ids, and what an id tells.

Four families of ids: official games (``split/task/trial``), the same with a
person's sentence (``human/split/task/trial/number``), generated games in
official rooms (``procedural/part/number[;knob=value…]``), and the compact
preset (``compact/part/number``).  Where games lie is ``sources``' business.
"""

from __future__ import annotations

import os
from functools import lru_cache
from importlib import resources
from typing import Final

from seed_envs.alfworld.generator import compact, rooms
from seed_envs.alfworld.goals import KIND_OF_TYPE
from seed_envs.alfworld.library import GAME_FILE, OFFICIAL_SPLITS
from seed_envs.tasks import Manifest

MINI_SPLITS: Final = ("mini_train", "mini_valid_seen", "mini_valid_unseen")
PROCEDURAL_SPLITS: Final = tuple(f"procedural_{part}" for part in rooms.PARTS)
COMPACT_SPLITS: Final = tuple(f"compact_{part}" for part in compact.PARTS)
PANEL_SPLITS: Final = ("unlikely_places", "crowded", "new_layouts", "two_goals", "own_words")
"""Listed generated games that each are hard in one way; ``mini_*`` are the plain ones."""
GENERATED_SPLITS: Final = (*MINI_SPLITS, *PROCEDURAL_SPLITS, *COMPACT_SPLITS, *PANEL_SPLITS)
CUSTOM_SPLIT: Final = "custom"
HUMAN_SPLITS: Final = ("human_valid_seen", "human_valid_unseen")
SPLITS: Final = (*GENERATED_SPLITS, *OFFICIAL_SPLITS, *HUMAN_SPLITS, CUSTOM_SPLIT)
HUMAN_PREFIX: Final = "human/"
GENERATED_PREFIXES: Final = ("procedural/", "compact/")
_FILES_OF_A_GAME: Final = (GAME_FILE, "traj_data.json", "initial_state.pddl")
ORIGINAL_SPLITS: Final = {"eval_in_distribution": "valid_seen", "eval_out_of_distribution": "valid_unseen"}
"""What the original calls the splits -> the name here."""


@lru_cache(maxsize=32)
def manifest(split: str) -> Manifest:
    """The checked-in list of a split.

    Args:
        split: any split with a list that ships.

    Returns:
        The manifest.
    """
    with resources.as_file(resources.files(__package__) / "manifests" / f"{split}.txt") as path:
        return Manifest.load(path)


def plain_id(task_id: str) -> str:
    """The id that a name people have stands for.

    Args:
        task_id: an id; or the path of a game file or its folder (``infos["extra.gamefile"]`` of the original), with
            the original's split names or ours; or ``task/trial`` of an official game.

    Returns:
        ``split/task/trial``, or the text unchanged when it is none of these.
    """
    if task_id.startswith(GENERATED_PREFIXES):
        return task_id
    parts = [part for part in task_id.replace(os.sep, "/").split("/") if part]
    is_path = bool(parts) and parts[-1] in _FILES_OF_A_GAME
    if is_path:
        parts.pop()
    if len(parts) >= 3 and (is_path or parts[-3] in OFFICIAL_SPLITS or parts[-3] in ORIGINAL_SPLITS):
        return "/".join([ORIGINAL_SPLITS.get(parts[-3], parts[-3]), *parts[-2:]])
    named = [f"{split}/{'/'.join(parts)}" for split in OFFICIAL_SPLITS] if len(parts) == 2 else []
    return next((name for name in named if name in manifest(name.partition("/")[0])), task_id)


def game_of(task_id: str) -> str:
    """The official game that an id with a person's sentence is about; any other id unchanged."""
    return task_id.removeprefix(HUMAN_PREFIX).rpartition("/")[0] if task_id.startswith(HUMAN_PREFIX) else task_id


def type_of(task_id: str) -> str:
    """Family of an official id, read from its name.

    Args:
        task_id: ``split/task/trial``, or the id of a person's sentence for it.

    Returns:
        One of the six official family names, or "" when the name holds none.
    """
    parts = game_of(task_id).split("/")
    kind = parts[1].split("-")[0] if len(parts) > 1 else ""
    return kind if kind in KIND_OF_TYPE else ""


def scene_of(task_id: str) -> int:
    """Room number of a task; official ids hold it in their name.

    Args:
        task_id: any id.

    Returns:
        The number, or 0 when there is none (compact games, own games with other names).
    """
    if task_id.startswith("procedural/"):
        return rooms.scene_of(task_id)
    parts = game_of(task_id).split("/")
    number = parts[1].rsplit("-", 1)[-1] if len(parts) > 1 else ""
    return int(number) if number.isdecimal() else 0


def belongs(task_id: str, split: str) -> bool:
    """Whether a task can be one of a split's, as its id tells.

    Args:
        task_id: any id.
        split: one of ``SPLITS``.

    Returns:
        False when id and split contradict each other. Generated games of a part count for all splits of that part,
        listed or not, and own games beside official ones for both ``custom`` and the split they are named after.
    """
    if split in OFFICIAL_SPLITS:
        return task_id.startswith(f"{split}/")
    if split in (*PANEL_SPLITS, *HUMAN_SPLITS):
        return task_id in manifest(split)
    if split == CUSTOM_SPLIT:
        return not task_id.startswith((*GENERATED_PREFIXES, HUMAN_PREFIX)) and not any(
            task_id in manifest(name) for name in OFFICIAL_SPLITS
        )
    family, _, part = split.replace("mini_", "procedural_").partition("_")
    return task_id.startswith(f"{family}/{part}/")
