"""Writes the checked-in task lists: all goal ids of a catalogue in order, and size and hash of every split."""

from __future__ import annotations

import json
from pathlib import Path

from seed_envs.tasks import Manifest
from seed_envs.webshop.shop import Shop
from seed_envs.webshop.tasks import COMBINED, SPLITS

FOLDER = Path(__file__).parent / "manifests"


def write_manifest(shop: Shop, name: str, source: str, folder: Path = FOLDER) -> Path:
    """Writes ``<name>.txt`` and its entry in ``splits.json``.

    Args:
        shop: The catalogue.
        name: File name without ending.
        source: How to get this catalogue, for the header.
        folder: Where to write.

    Returns:
        The written list.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.txt"
    Manifest(f"webshop/{name}", shop.tasks.manifest("all").ids, {"source": source}).save(path)
    index = folder / "splits.json"
    record = json.loads(index.read_text(encoding="utf-8")) if index.is_file() else {}
    record[name] = {
        split: {"tasks": len(shop.tasks.manifest(split)), "sha256": shop.tasks.manifest(split).sha256}
        for split in (*SPLITS, COMBINED)
    }
    index.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return path
