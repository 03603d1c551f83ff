"""The one place that turns the ``levels`` argument of the environment into a level source."""

from __future__ import annotations

import os
from pathlib import Path

from seed_envs.errors import UnknownOption, close_matches
from seed_envs.vision.sokoban.files import PACKS, BoxobanSource, FileSource, pack_names
from seed_envs.vision.sokoban.generator import Difficulty
from seed_envs.vision.sokoban.sources import ClassicSource, LevelSource, RetrogradeSource

LEVEL_SOURCES = ("retrograde", "classic", "boxoban")


def make_source(levels: str | Path, kind: Difficulty) -> LevelSource:
    """Makes a level source.

    Args:
        levels: ``"retrograde"``, ``"classic"``, ``"boxoban"`` (folder from ``$SEED_BOXOBAN_DIR``), the name of a
            shipped pack such as ``"pack-6x6-b1"``, or a path: an ``.xsb``, ``.txt`` or ``.pool`` file or a
            Boxoban folder.
        kind: Size, boxes and difficulty, for the procedural sources.

    Raises:
        UnknownOption: If ``levels`` is neither a known name nor an existing path.
        ValueError: If the procedural source does not make levels of this kind.
    """
    if not isinstance(levels, (str, os.PathLike)) or not str(levels):
        raise UnknownOption(f"levels={levels!r}; expected one of {list(LEVEL_SOURCES)}, a pack, or a path")
    if levels == "retrograde":
        return RetrogradeSource(kind)
    if levels == "classic":
        return ClassicSource(kind.height, kind.width, kind.boxes)
    if levels == "boxoban":
        return BoxobanSource()
    packs = pack_names()
    if str(levels) in packs:
        return FileSource(PACKS / f"{levels}.pool", default_split="train")
    path = Path(levels)
    if path.is_dir():
        return BoxobanSource(path)
    if path.is_file():
        return FileSource(path)
    known = [*LEVEL_SOURCES, *packs]
    matches = close_matches(levels, known)
    raise UnknownOption(f"levels={str(levels)!r} is neither an existing file or folder nor one of {known}.{matches}")
