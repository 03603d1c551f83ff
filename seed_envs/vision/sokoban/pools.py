"""Packed level pools: thousands of levels of one shape in one small file, for fast resets and for the batch engine.

A file is a 20-byte header (magic ``SKPOOL1``, a zero byte, rows, columns, boxes, a zero byte, number of levels, CRC-32
of the body; integers little-endian) followed by equally long records: the walls as a bit set (eight cells per byte,
lowest bit first), then one byte each for the player, the boxes and the targets. A 10x10 level with four boxes takes
22 bytes. Rooms have at most 256 cells. Reading checks every level; nothing is unpickled.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from seed_envs.errors import DataInvalid, DataMissing
from seed_envs.vision.sokoban.levels import FLOOR, TARGET, WALL, Level

MAX_CELLS = 256
MAX_FILE_BYTES = 64 * 1024 * 1024
_MAGIC = b"SKPOOL1\0"
_HEADER = struct.Struct("<8sBBBxII")


class Pool(Sequence[Level]):
    """Levels of one shape, unpacked on access.

    Attributes:
        height: Rows of every level.
        width: Columns of every level.
        boxes: Boxes of every level.
    """

    def __init__(self, height: int, width: int, boxes: int, body: bytes, where: str = "pool") -> None:
        """Wraps packed records; use :meth:`pack` or :meth:`load` to get them.

        Raises:
            DataInvalid: If the sizes are impossible or the body is not a whole number of records.
        """
        if not (height >= 3 and width >= 3 and height * width <= MAX_CELLS):
            raise DataInvalid(f"{where}: a pool holds rooms of at most {MAX_CELLS} cells, not {height}x{width}")
        self.height, self.width, self.boxes, self._where = height, width, boxes, where
        self._wall_bytes = -(-height * width // 8)
        self._stride = self._wall_bytes + 1 + 2 * boxes
        if len(body) % self._stride:
            raise DataInvalid(f"{where}: {len(body)} bytes are not a whole number of {self._stride}-byte levels")
        self._body = body

    def __len__(self) -> int:
        return len(self._body) // self._stride

    def __getitem__(self, index: int) -> Level:  # type: ignore[override]
        if not -len(self) <= index < len(self):
            raise IndexError(f"{self._where} holds {len(self)} levels, asked for {index}")
        start = index % len(self) * self._stride
        record = self._body[start : start + self._stride]
        walls = int.from_bytes(record[: self._wall_bytes], "little")
        fixed = bytearray(WALL if walls >> cell & 1 else FLOOR for cell in range(self.height * self.width))
        player, things = record[self._wall_bytes], record[self._wall_bytes + 1 :]
        for target in things[self.boxes :]:
            if target >= len(fixed) or fixed[target] == WALL:
                raise DataInvalid(f"{self._where}, level {index}: a target lies inside a wall")
            fixed[target] = TARGET
        level = Level(self.height, self.width, bytes(fixed), tuple(things[: self.boxes]), player)
        where = f"{self._where}, level {index}"
        return level.validate(where).unsolved(where)

    def __iter__(self) -> Iterator[Level]:
        return (self[index] for index in range(len(self)))

    @classmethod
    def pack(cls, levels: Sequence[Level]) -> Pool:
        """Packs levels of equal shape.

        Raises:
            DataInvalid: If there is none, or they differ in size or number of boxes.
        """
        if not levels:
            raise DataInvalid("a pool needs at least one level")
        shapes = {(level.height, level.width, len(level.boxes)) for level in levels}
        if len(shapes) > 1:
            raise DataInvalid(f"levels of one pool must have one shape, found {sorted(shapes)}")
        height, width, boxes = shapes.pop()
        if height * width > MAX_CELLS:
            raise DataInvalid(f"a pool holds rooms of at most {MAX_CELLS} cells, not {height}x{width}")
        body = bytearray()
        for level in levels:
            walls = sum(1 << cell for cell, code in enumerate(level.fixed) if code == WALL)
            body += walls.to_bytes(-(-height * width // 8), "little")
            body += bytes((level.player, *level.boxes, *level.targets))
        return cls(height, width, boxes, bytes(body))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the pool to a file."""
        header = _HEADER.pack(_MAGIC, self.height, self.width, self.boxes, len(self), zlib.crc32(self._body))
        Path(path).write_bytes(header + self._body)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Pool:
        """Reads a pool file.

        Raises:
            DataMissing: If there is no such file.
            DataInvalid: If it is not a pool, too large, or damaged.
        """
        file = Path(path)
        if not file.is_file():
            raise DataMissing(
                f"no level pool {str(file)!r}; make one with: "
                "python -m seed_envs.vision.sokoban pool --count 1000 --output my.pool"
            )
        if file.stat().st_size > MAX_FILE_BYTES:
            raise DataInvalid(f"{file.name}: {file.stat().st_size} bytes; at most {MAX_FILE_BYTES} are read")
        data = file.read_bytes()
        if len(data) < _HEADER.size or not data.startswith(_MAGIC):
            raise DataInvalid(f"{file.name}: not a level pool (it should begin with {_MAGIC!r})")
        _, height, width, boxes, count, checksum = _HEADER.unpack_from(data)
        body = data[_HEADER.size :]
        pool = cls(height, width, boxes, body, file.name)
        if not count:
            raise DataInvalid(f"{file.name}: holds no level")
        if len(pool) != count or zlib.crc32(body) != checksum:
            raise DataInvalid(f"{file.name}: damaged (header says {count} levels, checksum {checksum:08x})")
        return pool
