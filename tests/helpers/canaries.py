"""Looks for a secret that must not be there: in files, compressed transcripts and pickles of a folder."""

from __future__ import annotations

import base64
import json
import re
import zlib

CANARY = "cAnArY-5e2d.9"
"""The secret of the tests; long enough to be searched for, and with characters that URLs and JSON write otherwise."""

FORMS = tuple(
    form.encode() for form in (CANARY, base64.b64encode(f"user:{CANARY}".encode()).decode(), json.dumps(CANARY)[1:-1])
)
_BLOCK = re.compile(rb"eJ[A-Za-z0-9+/=]{40,}")


def holds_canary(data):
    """Whether bytes or text hold the canary, plain, in a header, or inside a compressed block of a report."""
    data = data.encode() if isinstance(data, str) else data
    blocks = [zlib.decompressobj().decompress(base64.b64decode(block)) for block in _BLOCK.findall(data)]
    return any(form in part for part in [data, *blocks] for form in FORMS)


def leaks(folder):
    """The files of a folder that hold the canary, in their content or name; fails where there is no file."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert files, f"{folder} is empty"
    return sorted(str(path) for path in files if holds_canary(path.read_bytes()) or CANARY in str(path))
