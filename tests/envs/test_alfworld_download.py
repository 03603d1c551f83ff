"""Fetching the official games from a server: resume, checksum, hostile servers and archives."""

from __future__ import annotations

import hashlib
import http.server
import io
import json
import threading
import urllib.request
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest
from alfworld_files import document

from seed_envs.alfworld import cache, download
from seed_envs.alfworld.__main__ import main
from seed_envs.alfworld.cache import open_library
from seed_envs.errors import DataInvalid, DataMissing


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("SEED_CACHE_DIR", str(tmp_path / "cache"))
    open_library.cache_clear()
    yield
    open_library.cache_clear()


class Server(http.server.BaseHTTPRequestHandler):
    """Serves one archive; can break off, refuse ranges, send a wrong part, or answer with errors."""

    archive: ClassVar[bytes] = b""
    cut: ClassVar[int] = 0
    ranges: ClassVar[bool] = True
    shift: ClassVar[int] = 0
    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        wanted = self.headers.get("Range", "")
        type(self).asked.append(wanted)
        if self.path == "/garbage":
            self.wfile.write(b"SSH-2.0-x\r\n")
            return
        if self.path.startswith("/leads-to/"):
            self.send_response(302)
            self.send_header("Location", self.path.removeprefix("/leads-to/"))
            self.end_headers()
            return
        if not self.path.endswith("games.zip"):
            self.send_error(404)
            return
        start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and self.ranges else 0
        if start >= len(self.archive):
            self.send_error(416)
            return
        body = self.archive[start + self.shift :] if start else self.archive
        self.send_response(206 if start else 200)
        if start:
            size = len(self.archive)
            self.send_header("Content-Range", f"bytes {start + self.shift}-{size - 1}/{size}")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: self.cut or len(body)])

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[str]:
    Server.cut, Server.ranges, Server.shift, Server.asked = 0, True, 0, []
    running = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    thread = threading.Thread(target=running.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{running.server_address[1]}/games.zip"
    running.shutdown()
    running.server_close()


@pytest.fixture
def small_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists of one game each, so that a small archive is complete."""
    monkeypatch.setattr(download, "manifest", lambda split: (f"{split}/task-1/trial_1",))


def archive(*extra: tuple[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    game = json.dumps(document("compact/train/0")).encode()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as file:
        for split in ("train", "valid_seen", "valid_unseen"):
            file.writestr(f"json_2.1.1/{split}/task-1/trial_1/game.tw-pddl", game)
            file.writestr(f"json_2.1.1/{split}/task-1/trial_1/other.json", b"{}")
        for name, content in extra:
            file.writestr(name, content)
    return buffer.getvalue()


@pytest.mark.usefixtures("small_lists")
def test_download_resumes_checks_and_unpacks(server: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Server.archive = archive()
    digest = hashlib.sha256(Server.archive).hexdigest()
    target = tmp_path / "games"
    Server.cut = 5_000
    command = ["download", "--url", server, "--output", str(target), "--sha256", digest]
    assert main(command) == 2
    assert "run the same command again" in capsys.readouterr().err
    assert download.part_path(target, server).stat().st_size == 5_000
    Server.cut = 0
    assert main(command) == 0
    out, err = capsys.readouterr()
    assert Server.asked == ["", "bytes=5000-"]
    assert digest in out and "3 games" in out and "100 %" in err
    assert json.loads((target / "download.json").read_text())["sha256"] == digest
    assert sorted(p.name for p in target.rglob("*") if p.is_file()) == ["download.json", *["game.tw-pddl"] * 3]
    assert isinstance(open_library(target.resolve()), cache.CacheLibrary)


@pytest.mark.usefixtures("small_lists")
def test_a_server_without_ranges_starts_over_and_a_complete_part_is_kept(server: str, tmp_path: Path) -> None:
    Server.archive, Server.ranges = archive(), False
    part = tmp_path / "games.zip.part"
    part.write_bytes(b"old")
    download.fetch(server, part)
    assert part.read_bytes() == Server.archive
    Server.ranges = True
    download.fetch(server, part)
    assert part.read_bytes() == Server.archive


@pytest.mark.usefixtures("small_lists")
def test_a_wrong_checksum_removes_the_file(server: str, tmp_path: Path) -> None:
    Server.archive = archive()
    with pytest.raises(DataInvalid, match="expected SHA-256"):
        download.download(tmp_path, url=server, sha256="0" * 64)
    assert list(tmp_path.iterdir()) == []


def test_a_mistyped_checksum_costs_no_download(server: str, tmp_path: Path) -> None:
    with pytest.raises(DataInvalid, match="64 hexadecimal digits"):
        download.download(tmp_path, url=server, sha256="abc")
    assert Server.asked == []


@pytest.mark.usefixtures("small_lists")
def test_an_archive_is_never_put_together_from_two_addresses(server: str, tmp_path: Path) -> None:
    Server.archive, Server.cut = archive(), 5_000
    with pytest.raises(DataMissing):
        download.download(tmp_path, url=server)
    Server.cut = 0
    download.download(tmp_path, url=server.replace("games.zip", "other/games.zip"))
    assert Server.asked == ["", ""], "the second address starts from nothing"


def test_a_wrong_part_is_not_appended(server: str, tmp_path: Path) -> None:
    Server.archive, Server.shift = archive(), 7
    part = tmp_path / "games.zip.part"
    part.write_bytes(Server.archive[:100])
    with pytest.raises(DataMissing, match="another part than asked for"):
        download.fetch(server, part)
    assert part.read_bytes() == Server.archive[:100]


def test_a_server_that_does_not_speak_http_is_explained(server: str, tmp_path: Path) -> None:
    with pytest.raises(DataMissing, match="run the same command again"):
        download.fetch(server.replace("games.zip", "garbage"), tmp_path / "part")


def test_a_server_leads_only_to_addresses_that_could_be_asked_first(server: str, tmp_path: Path) -> None:
    Server.archive = archive()
    part, door = tmp_path / "part", server.replace("games.zip", "leads-to/")
    download.fetch(door + server, part)
    assert part.read_bytes() == Server.archive
    for hostile in ("http://example.org/games.zip", "ftp://127.0.0.1/games.zip", f"{door}http://example.org/games.zip"):
        with pytest.raises(DataInvalid, match="expected an https address"):
            download.fetch(door + hostile, tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_no_server_leads_from_https_to_this_machine(server: str) -> None:
    asked = urllib.request.Request("https://example.org/games.zip")
    with pytest.raises(DataInvalid, match=f"leads to {server}"):
        download._CheckedRedirects().redirect_request(asked, None, 302, "Found", {}, server)


def damaged_archives() -> dict[str, bytes]:
    """Archives whose list of files can be read, but not their content."""
    good = archive()
    with zipfile.ZipFile(io.BytesIO(good)) as file:
        first = file.infolist()[0]
        start = first.header_offset + 30 + len(first.filename)
    entry = good.index(b"PK\x01\x02")

    def with_bytes(position: int, new: bytes) -> bytes:
        return good[:position] + new + good[position + len(new) :]

    return {
        "checksum": with_bytes(start + 50, b"#"),
        "encrypted": with_bytes(entry + 8, b"\x01"),
        "method": with_bytes(entry + 10, b"\x63"),
        "deflate": with_bytes(entry + 10, b"\x08"),
        "lzma": with_bytes(entry + 10, b"\x0e"),
        "cut": good[: len(good) // 2],
    }


@pytest.mark.parametrize("kind", damaged_archives())
def test_damaged_archives_are_explained(kind: str, tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(damaged_archives()[kind])
    with pytest.raises(DataInvalid, match="not a zip archive that can be read"):
        download.unpack(tmp_path / "a.zip", tmp_path / "games")


def test_an_archive_may_not_unpack_to_any_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.zip").write_bytes(archive())
    monkeypatch.setattr(download, "MAX_UNPACKED_BYTES", 20_000)
    with pytest.raises(DataInvalid, match="too many bytes"):
        download.unpack(tmp_path / "a.zip", tmp_path / "games")


@pytest.mark.usefixtures("small_lists")
def test_names_in_the_archive_never_leave_the_folder(server: str, tmp_path: Path) -> None:
    Server.archive = archive(
        ("../../train/evil/trial_1/game.tw-pddl", b"{}"),
        ("/etc/game.tw-pddl", b"{}"),
        ("json/train/..%2f/trial_1/game.tw-pddl", b"{}"),
        ("json/train/a/../trial_1/game.tw-pddl", b"{}"),
    )
    download.download(tmp_path / "inside", url=server)
    outside = [path for path in tmp_path.rglob("*") if path.is_file() and "inside" not in path.parts]
    assert outside == []
    assert (tmp_path / "inside" / "train" / "evil" / "trial_1" / "game.tw-pddl").is_file()


def test_incomplete_archives_bad_addresses_and_errors_are_explained(server: str, tmp_path: Path) -> None:
    Server.archive = archive()
    with pytest.raises(DataInvalid, match="listed games of 'train' are missing"):
        download.download(tmp_path, url=server)
    with pytest.raises(DataMissing, match="404"):
        download.download(tmp_path / "a", url=server.replace("games.zip", "none"))
    with pytest.raises(DataInvalid, match="https"):
        download.download(tmp_path / "b", url="http://example.org/games.zip")
    for url in ("file:///etc/passwd", "ftp://example.org/games.zip", "http://[", "games.zip"):
        with pytest.raises(DataInvalid, match="address"):
            download.download(tmp_path / "b", url=url)
    (tmp_path / "c.zip").write_bytes(b"no archive")
    with pytest.raises(DataInvalid, match="not a zip archive"):
        download.unpack(tmp_path / "c.zip", tmp_path)
    assert all(address.startswith("https://github.com/alfworld/") for address in download.ADDRESSES.values())
