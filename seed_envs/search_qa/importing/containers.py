"""Any data file as rows: JSON lines, JSON arrays, one JSON object, tables of tabs or commas, parquet; packed or not.

The content decides, not the suffix, which people change. Rows come one by one, so a file may be larger than memory;
what cannot be read is named by file and line. What a row means is the business of `shapes`.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import json
import re
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

from seed_envs.errors import DataInvalid, require

_BLOCK = 1 << 20
_MAX_ITEM = 256 << 20
"""Longest item of an array, and longest single object, in characters."""
_WRAPPED = re.compile(r'\s*\{\s*"[Dd]ata"\s*:\s*(?=\[)')
"""An object whose first key holds the rows, as TriviaQA is published."""
_UNREAD_COLUMNS = frozenset({"embeddings", "embedding", "vector"})
COLUMN = "column_{}"
"""Key of a field in a table without a header, counted from 1."""


class Row(NamedTuple):
    """One record.

    Attributes:
        place: Where it stands, for messages: file and line.
        number: Its number from 0; for JSON lines that of its line.
        record: The value; an object everywhere but in broken files.
    """

    place: str
    number: int
    record: Any


def read_rows(path: Path, headers: Callable[[list[str]], bool]) -> Iterator[Row]:
    """The rows of a file in order.

    Args:
        path: The file.
        headers: Whether the first fields of a table are its header.

    Raises:
        DataInvalid: The file cannot be read on; the message names file, line and reason.
    """
    with _opened(path) as stream:
        try:
            head = stream.read(1 << 16)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise DataInvalid(f"{path}: a damaged .gz file ({error}); fetch it again") from error
    if head[:4] == b"PAR1" or path.suffix == ".parquet":
        yield from _parquet(path)
        return
    text = head.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace").lstrip()
    read = _reader(path, text)
    try:
        with _opened(path) as stream:
            yield from read(path, stream, headers)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataInvalid(f"{path}: a damaged .gz file ({error}); fetch it again") from error


def _opened(path: Path) -> IO[bytes]:
    with path.open("rb") as stream:
        packed = stream.read(2) == b"\x1f\x8b" or path.suffix == ".gz"
    return cast("IO[bytes]", gzip.open(path, "rb")) if packed else path.open("rb")


_Reader = Callable[[Path, IO[bytes], Callable[[list[str]], bool]], Iterator[Row]]


def _reader(path: Path, text: str) -> _Reader:
    lines = ".jsonl" in path.name.lower() or ".ndjson" in path.name.lower()
    if text.startswith("[") or _WRAPPED.match(text):
        return _array
    if not text.startswith("{") and not lines:
        return _tabbed if "\t" in text.partition("\n")[0] else _commas
    first, newline, _ = text.partition("\n")
    return _lines if lines or not newline or _is_json(first) else _single


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _text_lines(path: Path, stream: IO[bytes]) -> Iterator[tuple[int, str]]:
    """Lines by number, from 0, without a byte order mark."""
    for number, line in enumerate(stream):
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError as error:
            raise DataInvalid(f"{path}, line {number + 1}: not JSON in UTF-8 ({error})") from error
        yield number, text.removeprefix("\ufeff") if number == 0 else text


def _lines(path: Path, stream: IO[bytes], headers: Callable[[list[str]], bool]) -> Iterator[Row]:
    for number, line in _text_lines(path, stream):
        if not line.strip():
            continue
        place = f"{path}, line {number + 1}"
        try:
            yield Row(place, number, json.loads(line))
        except (ValueError, RecursionError) as error:
            raise DataInvalid(f"{place}: not JSON in UTF-8 ({error})") from error


def _single(path: Path, stream: IO[bytes], headers: Callable[[list[str]], bool]) -> Iterator[Row]:
    data = stream.read(_MAX_ITEM)
    try:
        yield Row(f"{path}, line 1", 0, json.loads(data.decode("utf-8-sig")))
    except json.JSONDecodeError as error:
        raise DataInvalid(f"{path}, line {error.lineno}: not JSON ({error.msg})") from error
    except (ValueError, RecursionError) as error:
        raise DataInvalid(f"{path}: not JSON in UTF-8 ({error})") from error


def _array(path: Path, stream: IO[bytes], headers: Callable[[list[str]], bool]) -> Iterator[Row]:
    """The items of an array, decoded one by one from a window of the file."""
    text = _Window(path, codecs.getreader("utf-8-sig")(stream))
    wrapper = _WRAPPED.match(text.held)
    text.skip(wrapper.end() if wrapper else 0)
    text.skip_blanks()
    text.skip(1)
    number = 0
    while text.skip_blanks() != "]":
        line = text.line
        yield Row(f"{path}, line {line}", number, text.value())
        number += 1
        following = text.skip_blanks()
        if following not in ("]", ","):
            raise DataInvalid(f"{path}, line {text.line}: expected , or ] after an item, got {following!r}")
        if following == ",":
            text.skip(1)
    text.skip(1)
    if not wrapper and (behind := text.skip_blanks(at_end="")):
        raise DataInvalid(f"{path}, line {text.line}: expected the end of the file behind the array, got {behind!r}")


class _Window:
    """The part of a text that is not read yet, filled from a stream as it is used up."""

    def __init__(self, path: Path, stream: codecs.StreamReader) -> None:
        self._path, self._stream = path, stream
        self._decoder = json.JSONDecoder()
        self._position, self.line, self.held = 0, 1, ""
        self._fill(_BLOCK)

    def _fill(self, count: int) -> bool:
        try:
            more = self._stream.read(count)
        except UnicodeDecodeError as error:
            raise DataInvalid(f"{self._path}, after line {self.line}: not UTF-8 ({error.reason})") from error
        self.held = self.held[self._position :] + more
        self._position = 0
        return bool(more)

    def skip(self, count: int) -> None:
        """Goes on by so many characters."""
        self.line += self.held.count("\n", self._position, self._position + count)
        self._position += count

    def skip_blanks(self, at_end: str | None = None) -> str:
        """The next character that is no blank, which stays; `at_end`, or an error, at the end of the file."""
        while True:
            while self._position < len(self.held):
                if not self.held[self._position].isspace():
                    return self.held[self._position]
                self.skip(1)
            if not self._fill(_BLOCK):
                if at_end is not None:
                    return at_end
                raise DataInvalid(f"{self._path}, line {self.line}: the array does not end; fetch the file again")

    def value(self) -> Any:
        """The JSON value that begins here."""
        while True:
            try:
                found, end = self._decoder.raw_decode(self.held, self._position)
            except RecursionError as error:
                raise DataInvalid(f"{self._path}, line {self.line}: nested too deeply") from error
            except json.JSONDecodeError as error:
                left, line = len(self.held) - self._position, self.line
                line += self.held.count("\n", self._position, error.pos)
                # Doubling keeps the work linear however long the item is.
                if left > _MAX_ITEM or not self._fill(max(_BLOCK, left)):
                    raise DataInvalid(f"{self._path}, line {line}: not JSON ({error.msg})") from error
            else:
                # A number that ends at the window's edge may go on behind it.
                if end < len(self.held) or not self._fill(_BLOCK):
                    self.skip(end - self._position)
                    return found


def _tabbed(path: Path, stream: IO[bytes], headers: Callable[[list[str]], bool]) -> Iterator[Row]:
    """Line by line: a stray quotation mark must not swallow the lines behind it."""
    lines = ((n, [_unquoted(f) for f in line.rstrip("\r\n").split("\t")]) for n, line in _text_lines(path, stream))
    return _table(path, (found for found in lines if found[1] != [""]), headers)


def _unquoted(field: str) -> str:
    """A field without CSV's quotation marks, if it has well-formed ones."""
    inner = field[1:-1]
    well_formed = len(field) >= 2 and field[0] == field[-1] == '"' and '"' not in inner.replace('""', "")
    return inner.replace('""', '"') if well_formed else field


def _commas(path: Path, stream: IO[bytes], headers: Callable[[list[str]], bool]) -> Iterator[Row]:
    reader = csv.reader(codecs.iterdecode(stream, "utf-8-sig"), strict=True)

    def fields() -> Iterator[tuple[int, list[str]]]:
        while True:
            start = reader.line_num
            try:
                found = next(reader, None)
            except (csv.Error, UnicodeDecodeError) as error:
                raise DataInvalid(f"{path}, line {start + 1}: not a table of commas in UTF-8 ({error})") from error
            if found is None:
                return
            if found:
                yield start, found

    return _table(path, fields(), headers)


def _table(path: Path, lines: Iterator[tuple[int, list[str]]], headers: Callable[[list[str]], bool]) -> Iterator[Row]:
    first = next(lines, None)
    if first is None:
        return
    names, number = [COLUMN.format(n + 1) for n in range(len(first[1]))], 0
    if headers(first[1]):
        names = first[1]
    else:
        yield Row(f"{path}, line {first[0] + 1}", 0, dict(zip(names, first[1], strict=True)))
        number = 1
    for line, fields in lines:
        if len(fields) != len(names):
            raise DataInvalid(f"{path}, line {line + 1}: expected {len(names)} columns {names}, got {len(fields)}")
        yield Row(f"{path}, line {line + 1}", number, dict(zip(names, fields, strict=True)))
        number += 1


def _parquet(path: Path) -> Iterator[Row]:
    require("pyarrow", "search", "reading parquet files")
    import pyarrow
    import pyarrow.parquet as parquet

    number = 0
    try:
        file = parquet.ParquetFile(path)
        columns = [name for name in file.schema_arrow.names if name not in _UNREAD_COLUMNS]
        for batch in file.iter_batches(batch_size=4096, columns=columns):
            for record in batch.to_pylist():
                yield Row(f"{path}, row {number + 1}", number, record)
                number += 1
    except (pyarrow.ArrowException, OSError) as error:
        raise DataInvalid(f"{path}: not a readable parquet file ({error})") from error
