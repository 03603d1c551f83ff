"""Reading catalogue files in the original format: JSON, plain or gzipped, with size limits.

Nothing but JSON is read and nothing is evaluated.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from seed_envs.errors import DataInvalid, DataMissing
from seed_envs.hashing import content_hash

MAX_BYTES = 16 * 1024**3
_PRODUCTS, _ENTRIES, _HUMAN = "items_shuffle", "items_ins_v2", "items_human_ins"


class RawCatalogue(NamedTuple):
    """The three objects of a catalogue, as parsed.

    Attributes:
        rows: Product rows.
        entries: Attributes and instructions by asin.
        human: Human instructions by asin.
        files: Name and SHA-256 (of the unpacked content) of the files read; none for a generated catalogue.
    """

    rows: Sequence[Mapping[str, Any]]
    entries: Mapping[str, Mapping[str, Any]]
    human: Mapping[str, Sequence[Mapping[str, Any]]]
    files: tuple[tuple[str, str], ...] = ()


def read_json(path: Path, max_bytes: int = MAX_BYTES) -> tuple[Any, str]:
    """Reads one ``.json`` or ``.json.gz`` file.

    Args:
        path: The file.
        max_bytes: Largest accepted size after unpacking.

    Returns:
        The value, and the SHA-256 of the unpacked content.

    Raises:
        DataInvalid: If the file is too large, damaged, or not JSON.
    """
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rb") as stream:
            data = stream.read(max_bytes + 1)
        if len(data) > max_bytes:
            raise DataInvalid(f"{path} holds more than {max_bytes} bytes")
        return json.loads(data), content_hash([data])
    except (ValueError, EOFError, gzip.BadGzipFile, RecursionError) as error:
        raise DataInvalid(f"{path} is not a readable JSON file: {error}") from error


def find_file(folder: Path, stem: str, small: bool | None) -> Path | None:
    """The file of a kind in a folder: the 1,000-product form first unless ``small`` is False."""
    suffixes = {None: ("_1000", ""), True: ("_1000",), False: ("",)}[small]
    for suffix in suffixes:
        for extension in (".json", ".json.gz"):
            path = folder / f"{stem}{suffix}{extension}"
            if path.is_file():
                return path
    return None


def read_catalogue(folder: Path, human_goals: bool, small: bool | None = None) -> RawCatalogue:
    """Reads a catalogue folder.

    Args:
        folder: Folder with ``items_shuffle*.json``, ``items_ins_v2*.json`` and, for human goals,
            ``items_human_ins*.json`` (each possibly ``.gz``).
        human_goals: Whether the human file is needed.
        small: True for the ``_1000`` files, False for the full ones, None for whichever is there (small first).

    Raises:
        DataMissing: If a needed file is not there.
        DataInvalid: If a file has the wrong shape.
    """
    shapes = {_PRODUCTS: list, _ENTRIES: dict} | ({_HUMAN: dict} if human_goals else {})
    found: dict[str, Any] = {_HUMAN: {}}
    files: list[tuple[str, str]] = []
    for stem, shape in shapes.items():
        path = find_file(folder, stem, small)
        if path is None and stem == _HUMAN:
            path = find_file(folder, stem, False)
        if path is None:
            raise DataMissing(
                f"{folder} has no {stem}_1000.json or {stem}.json (or .gz). Put the WebShop files there, or leave "
                "out catalogue='files' to play on the generated catalogue"
            )
        found[stem], digest = read_json(path)
        files.append((path.name.removesuffix(".gz"), digest))
        if not isinstance(found[stem], shape):
            raise DataInvalid(f"{path} holds a {type(found[stem]).__name__}, expected a {shape.__name__}")
    return RawCatalogue(found[_PRODUCTS], found[_ENTRIES], found[_HUMAN], tuple(files))
