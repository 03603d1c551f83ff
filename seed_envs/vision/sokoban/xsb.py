"""Reading and writing level files: the common ``.xsb`` text format, and Boxoban's files, which are a special case.

Every file is treated as untrusted: bytes, levels, rows, columns and boxes are capped, and open, ragged-with-holes or
inconsistent maps are refused with the file and line in the message. Nothing is downloaded.
"""

from __future__ import annotations

import os
from pathlib import Path

from seed_envs.errors import DataInvalid, DataMissing, UnknownTask, close_matches
from seed_envs.vision.sokoban.levels import FLOOR, MAX_SIDE, PLAYER_ON_TARGET, TARGET, WALL, Level

MAX_FILE_BYTES = 16 * 1024 * 1024
MAX_LEVELS = 100_000
SYMBOLS = "#_.*$@+"
"""XSB symbols by cell code; floor is written as a blank, ``_`` and ``-`` are read as floor too."""
_READ = {"#": (WALL, "wall"), " ": (FLOOR, ""), "_": (FLOOR, ""), "-": (FLOOR, ""), ".": (TARGET, ""),
         "$": (FLOOR, "box"), "*": (TARGET, "box"), "@": (FLOOR, "player"), "+": (TARGET, "player")}  # fmt: skip
BOXOBAN_VARIABLE = "SEED_BOXOBAN_DIR"


def parse_level(rows: list[str], where: str) -> Level:
    """Reads one map.

    Args:
        rows: Its lines.
        where: How error messages name it.

    Raises:
        DataInvalid: If it is not a closed, consistent room within the size caps.
    """
    height, width = len(rows), max((len(row) for row in rows), default=0)
    if not (3 <= height <= MAX_SIDE and 3 <= width <= MAX_SIDE):
        raise DataInvalid(f"{where}: size {height}x{width} is outside 3x3 to {MAX_SIDE}x{MAX_SIDE}")
    fixed, boxes, players = bytearray(height * width), [], []
    for index, row in enumerate(rows):
        for column, symbol in enumerate(row.ljust(width)):
            if symbol not in _READ:
                raise DataInvalid(
                    f"{where}, row {index + 1}: unknown symbol {symbol!r}; expected one of # @ + $ * . blank"
                )
            cell = index * width + column
            fixed[cell], thing = _READ[symbol]
            if thing == "box":
                boxes.append(cell)
            elif thing == "player":
                players.append(cell)
    if len(players) != 1:
        raise DataInvalid(f"{where}: expected exactly one player (@ or +), found {len(players)}")
    _wall_up_the_outside(fixed, height, width, players[0], where)
    return Level(height, width, bytes(fixed), tuple(boxes), players[0]).validate(where)


def _wall_up_the_outside(fixed: bytearray, height: int, width: int, player: int, where: str) -> None:
    """Makes every cell the player could never stand on a wall; refuses maps with a hole in the border."""
    seen = {player}
    queue = [player]
    for cell in queue:
        row, column = divmod(cell, width)
        if row in (0, height - 1) or column in (0, width - 1):
            raise DataInvalid(f"{where}: the room is open at row {row + 1}, column {column + 1}; close it with walls")
        for after in (cell - width, cell + width, cell - 1, cell + 1):
            if fixed[after] != WALL and after not in seen:
                seen.add(after)
                queue.append(after)
    for cell, code in enumerate(fixed):
        if code == FLOOR and cell not in seen:
            fixed[cell] = WALL


def parse_levels(text: str, where: str) -> list[Level]:
    """Reads all maps of a file's text; lines starting with ``;``, or of other text, separate maps.

    Raises:
        DataInvalid: On the first faulty map, or if there is none or too many.
    """
    levels: list[Level] = []
    rows: list[str] = []
    for number, line in enumerate([*text.splitlines(), ""], start=1):
        stripped = line.rstrip()
        if "#" in stripped and all(symbol in _READ for symbol in stripped):
            rows.append(stripped)
            continue
        if rows and stripped and not stripped.startswith(";") and stripped.lstrip()[0] in _READ:
            raise DataInvalid(f"{where}, line {number}: a map row holds an unknown symbol: {stripped[:MAX_SIDE]!r}")
        if rows:
            place = f"{where}, level {len(levels)} (ends at line {number - 1})"
            levels.append(parse_level(rows, place).unsolved(place))
            rows = []
        if len(levels) > MAX_LEVELS:
            raise DataInvalid(f"{where}: more than {MAX_LEVELS} levels")
    if not levels:
        raise DataInvalid(f"{where}: holds no level")
    return levels


def load_levels(path: str | os.PathLike[str]) -> list[Level]:
    """Reads a level file.

    Args:
        path: A ``.xsb`` or Boxoban ``.txt`` file.

    Raises:
        DataMissing: If there is no such file.
        DataInvalid: If it is too large, not UTF-8, or holds a faulty map.
    """
    file = Path(path)
    if not file.is_file():
        raise DataMissing(f"no level file {str(file)!r}; pass the path of an .xsb or Boxoban .txt file")
    size = file.stat().st_size
    if size > MAX_FILE_BYTES:
        raise DataInvalid(f"{file}: {size} bytes; at most {MAX_FILE_BYTES} are read")
    try:
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataInvalid(f"{file}: not UTF-8 text ({error.reason} at byte {error.start})") from error
    return parse_levels(text, file.name)


def looks_like_levels(path: Path) -> bool:
    """Whether a text file begins as level files do: with a row of walls among its first lines.

    A clone of Boxoban holds a licence and other texts beside its levels; names do not tell them apart.
    """
    with path.open("rb") as file:
        lines = file.read(4096).decode("utf-8", "replace").splitlines()
    return any(len(line) >= 3 and "##" in line and all(symbol in _READ for symbol in line) for line in lines)


def boxoban_files(root: Path) -> list[str]:
    """The Boxoban level files below a folder, as sorted relative names without ``.txt``."""
    paths = [path for path in root.rglob("*.txt") if path.is_file() and looks_like_levels(path)]
    names = sorted(path.relative_to(root).with_suffix("").as_posix() for path in paths)
    if not names:
        raise DataMissing(
            f"no Boxoban level files (*.txt with maps) below {root} (name an .xsb file by its path); get them with: "
            "git clone https://github.com/google-deepmind/boxoban-levels"
        )
    return names


def load_boxoban(root: Path, name: str) -> list[Level]:
    """Reads one Boxoban file by the relative name :func:`boxoban_files` lists.

    Raises:
        UnknownTask: If the folder has no such file.
    """
    names = boxoban_files(root)
    if name not in names:
        raise UnknownTask(f"no Boxoban file {name!r} below {root}.{close_matches(name, names)}")
    return load_levels(root / f"{name}.txt")


def format_level(level: Level) -> str:
    """Writes a level as an XSB map, one row per line, without a final newline."""
    cells = level.room()
    if level.fixed[level.player] == TARGET:
        cells[level.player] = PLAYER_ON_TARGET
    symbols = SYMBOLS.replace("_", " ")
    text = "".join(symbols[code] for code in cells)
    return "\n".join(text[start : start + level.width].rstrip() for start in range(0, len(text), level.width))
