"""``compare --out FILE``: one self-contained page: tables, a forest plot, and differing episodes side by side."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from seed_envs.redaction import redact

from .folder import RunFolder, write_bytes
from .records import index_lines
from .report import pack, page


def write_comparison(result: Mapping[str, Any], out: Path, max_bytes: int = 40_000_000) -> Path:
    """Write the page.

    Args:
        result: What ``compare_many`` found.
        out: The file.
        max_bytes: Transcripts and pictures of differing episodes beyond this are left out, and the page says so.

    Returns:
        ``out``.
    """
    rows = result["disagreements"]
    blocks: list[str] = []
    images: dict[str, str] = {}
    places: list[dict[int, tuple[int, int]]] = []
    for number, run in enumerate(result["runs"]):
        folder = RunFolder(Path(run["folder"]))
        wanted = {row["episodes"][number] for row in rows}
        entries = [entry for entry in index_lines(folder.episodes).values() if entry.record.index in wanted]
        packed, found, pictures = pack(folder, entries, max_bytes // len(result["runs"]))
        index_of = {entry.record.key: entry.record.index for entry in entries}
        places.append({index_of[key]: (len(blocks) + block, at) for key, (block, at) in found.items()})
        blocks += packed
        images |= pictures
    shown = [
        {**row, "places": [places[number].get(index) for number, index in enumerate(row["episodes"])]} for row in rows
    ]
    parts = {**result, "disagreements": shown, "images": images}
    write_bytes(out, page("compare", redact(parts), blocks, f"{result['suite']}: {len(result['runs'])} runs").encode())
    return out
