"""``report.html``: one self-contained page of a run: numbers with intervals, the list of episodes, every transcript.

The page needs no network. Transcripts are compressed and unpacked by the browser when they are opened; text that
models or environments wrote is data for a script, never markup. Nothing is computed here that is not in the summary.
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from seed_envs.pages import asset, source_hash
from seed_envs.redaction import conceal, redact

from .errors import RecordsInvalid
from .folder import RunFolder, write_bytes
from .records import LineIndex, index_lines

#: Episodes per compressed block.
_BLOCK = 25
_IMAGE = re.compile(rb'"images/([0-9a-f]{24}\.png)"')
_COLUMNS = (
    "index", "task_id", "repeat", "task_type", "success", "score", "steps", "invalid_formats", "invalid_actions",
    "stop_reason", "seconds", "completion_tokens", "goal",
)  # fmt: skip


def write_report(folder: RunFolder, summary: dict[str, Any], out: Path, max_bytes: int = 80_000_000) -> Path:
    """Write the page.

    Args:
        folder: The run.
        summary: Its numbers, from ``summarise_folder``.
        out: The file.
        max_bytes: Compressed transcripts and pictures beyond this are left out, and the page says so; faults and
            failures go in first.

    Returns:
        ``out``.
    """
    entries = sorted(index_lines(folder.episodes).values(), key=lambda entry: entry.record.index)
    blocks, places, images = pack(folder, entries, max_bytes)
    rows = [[*(getattr(e.record, name) for name in _COLUMNS), _error(e), places.get(e.record.key)] for e in entries]
    parts = {
        "summary": {key: value for key, value in summary.items() if key != "attempts"},
        "attempts": summary["attempts"],
        "columns": [*_COLUMNS, "error", "place"],
        "episodes": rows,
        "images": images,
        "left_out": len(entries) - len(places),
        "journal": str(folder.episodes),
    }
    write_bytes(out, page("report", redact(parts), blocks, redact(f"{summary['suite']} | {summary['agent']}")).encode())
    return out


def pack(
    folder: RunFolder, entries: Sequence[LineIndex], max_bytes: int
) -> tuple[list[str], dict[tuple[str, int], tuple[int, int]], dict[str, str]]:
    """Compress transcripts for a page.

    Args:
        folder: The run.
        entries: The episodes; faults and failures go in first.
        max_bytes: What does not fit is left out.

    Returns:
        Blocks of transcripts, the block and place of each episode, and pictures as data URIs.
    """
    urgent = sorted(entries, key=lambda entry: (entry.record.scored, entry.record.success))
    blocks: list[str] = []
    places: dict[tuple[str, int], tuple[int, int]] = {}
    images: dict[str, str] = {}
    size = 0
    for start in range(0, len(urgent), _BLOCK):
        group = urgent[start : start + _BLOCK]
        lines = list(_read_lines(folder.episodes, group))
        texts = [_transcript(folder.episodes, e.number, line) for e, line in zip(group, lines, strict=True)]
        block = base64.b64encode(zlib.compress(b"[" + b",".join(texts) + b"]", 6)).decode()
        fresh = _load_images(folder, lines, images)
        size += len(block) + sum(map(len, fresh.values()))
        if size > max_bytes:
            break
        places.update({entry.record.key: (len(blocks), number) for number, entry in enumerate(group)})
        blocks.append(block)
        images.update(fresh)
    return blocks, places, images


def _read_lines(path: Path, entries: Sequence[LineIndex]) -> Iterator[bytes]:
    with path.open("rb") as file:
        for entry in entries:
            file.seek(entry.offset)
            yield file.read(entry.length)


def _transcript(path: Path, number: int, line: bytes) -> bytes:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise RecordsInvalid(f"{path}, line {number}: not an episode record (transcript: {error})") from error
    shown = {"error": redact(record["error"]), "started": record["started"], **conceal(record["transcript"])}
    return json.dumps(shown).encode()


def _load_images(folder: RunFolder, lines: Sequence[bytes], known: dict[str, str]) -> dict[str, str]:
    names = {found.decode() for line in lines for found in _IMAGE.findall(line)}
    fresh = {}
    for name in sorted(names):
        path = folder.images / name
        if f"images/{name}" not in known and path.is_file():
            fresh[f"images/{name}"] = "data:image/png;base64," + base64.b64encode(path.read_bytes()).decode()
    return fresh


def _error(entry: LineIndex) -> str:
    return "" if entry.record.error is None else f"{entry.record.error['type']}: {entry.record.error['message'][:200]}"


def page(name: str, parts: dict[str, Any], blocks: Sequence[str], title: str) -> str:
    """A whole page of one kind with its data inside.

    Args:
        name: Kind of page: ``assets`` holds its markup and script under this name; the style is shared.
        parts: What its script reads.
        blocks: Compressed transcripts.
        title: Title of the document.
    """
    (style, allowed), body = stylesheet(), _asset(f"{name}.html")
    script = asset("make.js") + _asset("transcript.js") + _asset(f"{name}.js")
    data = json.dumps(parts).replace("<", "\\u003c")
    stored = "\n".join(f'<script type="text/plain" id="block-{n}">{block}</script>' for n, block in enumerate(blocks))
    policy = f"default-src 'none'; img-src data:; style-src {allowed}; script-src {source_hash(script)}"
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{_escape(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n{body}\n"
        f'<script type="application/json" id="data">{data}</script>\n{stored}\n'
        f"<script>{script}</script>\n</body>\n</html>\n"
    )


def stylesheet() -> tuple[str, str]:
    """The style that all pages share, and the source expression that allows exactly it."""
    style = asset("base.css") + _asset("report.css")
    return style, source_hash(style)


def _asset(name: str) -> str:
    return asset(f"assets/{name}", __package__ or "")


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
