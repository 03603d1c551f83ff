"""The append-only journal: what counts as a line, what a kill leaves, and who may write."""

from __future__ import annotations

import errno
import os

import pytest

from seed_envs import journal
from seed_envs.errors import RunLocked
from seed_envs.journal import Journal, read_lines, read_records


@pytest.fixture
def path(tmp_path):
    return tmp_path / "journal.jsonl"


def test_lines_are_added_at_the_end_and_read_back_without_their_newline(path):
    assert list(read_lines(path)) == []
    with Journal(path) as first:
        first.append(b"one")
        first.append(b"")
        assert list(read_lines(path)) == [b"one", b""], "also while it is being written"
    with Journal(path) as second:
        assert second.torn_bytes == 0
        second.append(b"two")
    assert path.read_bytes() == b"one\n\ntwo\n"
    assert path.stat().st_mode & 0o777 == 0o644 & ~_umask()


def _umask():
    current = os.umask(0)
    os.umask(current)
    return current


def test_a_line_with_a_newline_is_refused_and_nothing_is_written(path):
    with Journal(path) as lines, pytest.raises(ValueError, match="newline"):
        lines.append(b"a\nb")
    assert path.read_bytes() == b""


@pytest.mark.parametrize("block", [1, 2, 3, 5, 100])
@pytest.mark.parametrize(
    ("content", "kept"),
    [
        (b"", b""), (b"\n", b"\n"), (b"torn", b""), (b"a\n", b"a\n"), (b"a\ntorn", b"a\n"),
        (b"a\nbb\nt", b"a\nbb\n"), (b"a\n\ntorn line", b"a\n\n"),
    ],
)  # fmt: skip
def test_what_a_kill_tore_is_cut_off_wherever_a_block_ends(path, monkeypatch, block, content, kept):
    monkeypatch.setattr(journal, "_BLOCK", block)
    path.write_bytes(content)
    assert list(read_lines(path)) == kept.split(b"\n")[:-1], "a torn line is no line"
    with Journal(path) as lines:
        assert lines.torn_bytes == len(content) - len(kept)
        lines.append(b"next")
    assert path.read_bytes() == kept + b"next\n"


def _free_descriptor():
    """The lowest number that the next opened file will get."""
    number = os.dup(0)
    os.close(number)
    return number


def test_one_writer_at_a_time(path):
    with Journal(path):
        with pytest.raises(RunLocked, match=r"journal\.jsonl is being written by another process"):
            Journal(path)
        before = _free_descriptor()
        for _ in range(3):
            with pytest.raises(RunLocked):
                Journal(path)
        assert _free_descriptor() == before, "a refused writer leaves no open file"
    Journal(path).close()


def test_a_closed_journal_is_on_the_disk_and_closing_again_does_nothing(path, monkeypatch):
    synced = []
    monkeypatch.setattr(journal.os, "fsync", synced.append)
    lines = Journal(path)
    lines.append(b"one")
    lines.close()
    lines.close()
    assert len(synced) == 1
    with pytest.raises(OSError, match="Bad file descriptor"):
        lines.append(b"two")


def test_a_line_that_the_system_takes_in_pieces_is_written_whole(path, monkeypatch):
    write = os.write
    monkeypatch.setattr(journal.os, "write", lambda descriptor, rest: write(descriptor, rest[:2]))
    with Journal(path) as lines:
        lines.append(b"a longer line")
    assert path.read_bytes() == b"a longer line\n"


def test_a_full_disk_names_the_file(path, monkeypatch):
    def full(descriptor, rest):
        raise OSError(errno.ENOSPC, "No space left on device")

    with Journal(path) as lines:
        monkeypatch.setattr(journal.os, "write", full)
        with pytest.raises(OSError, match=r"No space left on device: '.*journal\.jsonl'") as caught:
            lines.append(b"one")
        assert caught.value.errno == errno.ENOSPC


def test_a_shared_journal_lets_others_in_and_ends_what_a_kill_tore(path, monkeypatch):
    synced = []
    monkeypatch.setattr(journal.os, "fsync", synced.append)
    path.write_bytes(b'{"a": 1}\n{"to')
    with Journal(path, shared=True) as first, Journal(path, shared=True) as second:
        assert (first.torn_bytes, second.torn_bytes) == (4, 0)
        first.append_record({"b": "é\n"})
        second.append_record({"c": 3})
    assert path.read_bytes() == '{"a": 1}\n{"to\n{"b": "é\\n"}\n{"c": 3}\n'.encode()
    assert not synced, "a file that is opened for every line does not wait for the disk each time"
    assert [list(record) for record in read_records(path)] == [["a"], ["b"], ["c"]]


def test_secrets_are_concealed_in_records(path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-a-key-of-anyone-1234567890")
    with Journal(path) as lines:
        lines.append_record({"note": "it is sk-not-a-key-of-anyone-1234567890, he said"})
    assert b"sk-not" not in path.read_bytes() and b"he said" in path.read_bytes()


@pytest.mark.parametrize("shared", [False, True])
def test_what_lies_behind_a_length_goes(path, shared):
    path.write_bytes(b"one\ntwo\nthree\n")
    with Journal(path, shared) as lines:
        for length, content in ((99, b"one\ntwo\nthree\n"), (8, b"one\ntwo\n"), (8, b"one\ntwo\n"), (5, b"one\n")):
            lines.shorten(length)
            assert path.read_bytes() == content + (b"t\n" if shared and length == 5 else b"")
        lines.append(b"next")
    assert list(read_lines(path)) == [b"one", *([b"t"] if shared else []), b"next"]


def test_records_of_a_damaged_file(path):
    assert list(read_records(path)) == []
    assert not path.exists()
    path.write_bytes(b'{"a": 1}\n \n{"b": \xff\n7\n{"c": "\xff"}\n{"d"')
    broken: list[int] = []
    assert list(read_records(path, broken.append)) == [{"a": 1}, {"c": "\ufffd"}]
    assert broken == [3, 4, 6]
    assert list(read_lines(path, torn=True))[-1] == b'{"d"'
    for _ in range(2):
        Journal(path, shared=True).close()
        assert path.read_bytes().endswith(b'\n{"d"\n')
    path.write_bytes(b'{"a": 1}')
    assert list(read_records(path)) == [{"a": 1}], "whole but for its line feed"
