"""Fetches the official games: progress, resume, checksum, and a check of what was unpacked.

The publishers give no checksum.  The archive's SHA-256 is therefore printed
and kept beside the data, enforced when given by the user, and the unpacked
games are held against the checked-in lists.  Only files with the expected
names are unpacked; names from the archive are never used as paths.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import lzma
import re
import sys
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from seed_envs.alfworld.gamefile import MAX_GAME_FILE_BYTES
from seed_envs.alfworld.library import GAME_FILE, OFFICIAL_SPLITS, walk_tree
from seed_envs.alfworld.tasks import manifest
from seed_envs.errors import DataInvalid, DataMissing
from seed_envs.hashing import file_hash

_RELEASES: Final = "https://github.com/alfworld/alfworld/releases/download"
ADDRESSES: Final[dict[str, str]] = {
    "2.1.2": f"{_RELEASES}/0.4.0/json_2.1.2_tw-pddl.zip",
    "2.1.3": f"{_RELEASES}/0.4.2/json_2.1.3_tw-pddl.zip",
}
"""Version of the game data -> the publishers' archive."""

DEFAULT_VERSION: Final = "2.1.2"
CHUNK: Final = 1 << 18
MAX_ARCHIVE_BYTES: Final = 4_000_000_000
MAX_FILES: Final = 20_000
MAX_UNPACKED_BYTES: Final = 4_000_000_000
RECEIPT: Final = "download.json"
_MEMBER: Final = re.compile(rf"(?:.*/)?(train|valid_seen|valid_unseen)/([\w-]+)/(trial_\w+)/{re.escape(GAME_FILE)}")

_UNREADABLE: Final = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, RuntimeError)
"""What ``zipfile`` raises for damaged content, and (``RuntimeError`` and its subclass) for encrypted or unknown one."""

Progress = Callable[[int, int], None]


def download(
    folder: Path, *, url: str = ADDRESSES[DEFAULT_VERSION], sha256: str = "", progress: Progress | None = None
) -> dict[str, int]:
    """Fetch, check and unpack the official games.

    Args:
        folder: where the tree of games is written; an interrupted download in it is resumed.
        url: address of the archive (https, or http on the own machine).
        sha256: expected SHA-256 of the archive; "" accepts any and records it.
        progress: called with (bytes so far, bytes in all or 0).

    Returns:
        Split -> number of games now in the folder.

    Raises:
        DataMissing: when the archive cannot be fetched.
        DataInvalid: when it does not fit its checksum, is no such archive, or lacks listed games.
    """
    if sha256 and not re.fullmatch("[0-9a-fA-F]{64}", sha256):
        raise DataInvalid(f"sha256={sha256!r}: expected 64 hexadecimal digits")
    folder.mkdir(parents=True, exist_ok=True)
    archive = part_path(folder, url)
    fetch(url, archive, progress)
    digest = file_hash(archive)
    if sha256 and digest != sha256.lower():
        archive.unlink()
        raise DataInvalid(f"{url}: expected SHA-256 {sha256.lower()}, got {digest}; the file was removed, run again")
    unpack(archive, folder)
    counts = check_games(folder)
    (folder / RECEIPT).write_text(json.dumps({"url": url, "sha256": digest, "games": counts}) + "\n", encoding="utf-8")
    archive.unlink()
    return counts


def part_path(folder: Path, url: str) -> Path:
    """Where an unfinished download is kept; every address has its own, so that no two archives are mixed.

    Args:
        folder: where the games go.
        url: address of the archive.

    Returns:
        The path.
    """
    return folder / f"games-{hashlib.sha256(url.encode()).hexdigest()[:12]}.zip.part"


def fetch(url: str, target: Path, progress: Progress | None = None) -> None:
    """Fetch a file, going on where an earlier attempt stopped.

    Args:
        url: its address.
        target: where to write it; existing bytes are kept and the rest is asked for.
        progress: called with (bytes so far, bytes in all or 0).

    Raises:
        DataMissing: when the server cannot be reached or refuses; what came so far is kept.
        DataInvalid: for an address that is not https or on the own machine, or a file that is too large.
    """
    _check_address(url)
    have = target.stat().st_size if target.exists() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    try:
        with urllib.request.build_opener(_CheckedRedirects).open(request, timeout=60) as answer:
            resumed = answer.status == 206 and _starts_at(answer.headers.get("Content-Range"), have)
            if answer.status == 206 and not resumed:
                raise DataMissing(f"{url}: the server sent another part than asked for; remove {target} and run again")
            done = have if resumed else 0
            length = answer.headers.get("Content-Length") or ""
            total = done + int(length) if length.isdecimal() else 0
            with target.open("ab" if resumed else "wb") as file:
                while chunk := answer.read(CHUNK):
                    done += len(chunk)
                    if done > MAX_ARCHIVE_BYTES:
                        raise DataInvalid(f"{url}: more than {MAX_ARCHIVE_BYTES:,} bytes")
                    file.write(chunk)
                    if progress is not None:
                        progress(done, total)
    except urllib.error.HTTPError as error:
        if error.code == 416 and have:
            return  # Everything had come already.
        raise DataMissing(f"{url}: the server answered {error.code} {error.reason}; try again later") from error
    except DataMissing:
        raise
    except (OSError, http.client.HTTPException) as error:
        raise DataMissing(f"{url}: {error!r}; run the same command again to go on") from error
    if total and done < total:
        raise DataMissing(f"{url}: {done:,} of {total:,} bytes came; run the same command again to go on")


def _check_address(url: str) -> None:
    try:
        parts = urlsplit(url)
        local = parts.scheme == "http" and parts.hostname in ("127.0.0.1", "localhost")
    except ValueError as error:
        raise DataInvalid(f"{url}: not an address: {error}") from error
    if parts.scheme != "https" and not local:
        raise DataInvalid(f"{url}: expected an https address")


class _CheckedRedirects(urllib.request.HTTPRedirectHandler):
    """Follows a server to another address only if that is as safe as the one before."""

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        """See the base class."""
        _check_address(newurl)
        if urlsplit(req.full_url).scheme == "https" != urlsplit(newurl).scheme:
            raise DataInvalid(f"{req.full_url}: the server leads to {newurl}; expected an https address")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _starts_at(content_range: str | None, position: int) -> bool:
    return content_range is not None and content_range.startswith(f"bytes {position}-")


def unpack(archive: Path, folder: Path) -> int:
    """Write the game files of an archive into a tree ``<split>/<task>/<trial>/game.tw-pddl``.

    Args:
        archive: a zip file.
        folder: root of the tree.

    Returns:
        How many game files were written.

    Raises:
        DataInvalid: when the file is no zip archive, or holds too many or too large files.
    """
    written = unpacked = 0
    try:
        with zipfile.ZipFile(archive) as file:
            for member in file.infolist():
                match = _MEMBER.fullmatch(member.filename)
                if match is None:
                    continue
                written += 1
                if member.file_size > MAX_GAME_FILE_BYTES or written > MAX_FILES:
                    raise DataInvalid(f"{archive}: {member.filename!r} is too large, or there are too many files")
                target = folder.joinpath(*match.groups())
                target.mkdir(parents=True, exist_ok=True)
                with file.open(member) as source:
                    content = source.read(MAX_GAME_FILE_BYTES + 1)
                unpacked += len(content)
                if len(content) > MAX_GAME_FILE_BYTES or unpacked > MAX_UNPACKED_BYTES:
                    raise DataInvalid(f"{archive}: {member.filename!r} unpacks to too many bytes")
                (target / GAME_FILE).write_bytes(content)
    except _UNREADABLE as error:
        raise DataInvalid(f"{archive}: not a zip archive that can be read ({error}); remove it, run again") from error
    return written


def check_games(folder: Path) -> dict[str, int]:
    """Compare the games of a tree with the checked-in lists.

    Args:
        folder: root of the tree.

    Returns:
        Split -> number of games found.

    Raises:
        DataInvalid: when listed games are missing.
    """
    found = {task_id for task_id, _ in walk_tree(folder)}
    counts: dict[str, int] = {}
    for split in OFFICIAL_SPLITS:
        missing = [task_id for task_id in manifest(split) if task_id not in found]
        if missing:
            raise DataInvalid(
                f"{folder}: {len(missing):,} listed games of {split!r} are missing after unpacking, such as "
                f"{missing[0]!r}; the archive is not the official one (or another version of it)"
            )
        counts[split] = len(manifest(split))
    return counts


def progress_line(label: str) -> Progress:
    """A progress display for the terminal.

    Args:
        label: what is being done.

    Returns:
        A function to be called with (done, total); it rewrites one line of standard error.
    """
    shown = -1

    def show(done: int, total: int) -> None:
        nonlocal shown
        step = done * 100 // total if total else done >> 20
        if step == shown:
            return
        shown = step
        share = f"{step:3d} %" if total else f"{step} MiB"
        end = "\n" if total and done >= total else ""
        print(f"\r{label}: {share} ({done:,} of {total:,})", end=end, file=sys.stderr, flush=True)

    return show
