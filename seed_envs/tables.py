"""Tables and numbers in Markdown, as the commands print them. Needs nothing and computes nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence

_NUMBER = re.compile(r"[-<]?\s?\d|[-?]$|[-?] ")


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table with aligned columns; columns of numbers are right-aligned."""
    cells = [[str(cell).replace("|", "\\|").replace("\n", " ") for cell in row] for row in [header, *rows]]
    columns = list(zip(*cells, strict=True))
    layout = [
        (max(len(cell) for cell in column), bool(rows) and all(_NUMBER.match(cell) for cell in column[1:]))
        for column in columns
    ]
    rule = ["-" * (width - 1) + ":" if right else "-" * width for width, right in layout]
    lines = [
        [cell.rjust(width) if right else cell.ljust(width) for cell, (width, right) in zip(row, layout, strict=True)]
        for row in cells
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in [lines[0], rule, *lines[1:]])


def percent(value: float | None, digits: int = 1) -> str:
    """A share as a percentage, ``-`` for None."""
    return "-" if value is None else f"{100 * value:.{digits}f} %"


def with_interval(value: float | None, interval: Sequence[float] | None, digits: int = 1) -> str:
    """``12.3 % [10.1, 14.6]``."""
    if value is None:
        return "-"
    if interval is None:
        return f"{percent(value, digits)} [-]"
    return f"{percent(value, digits)} [{100 * interval[0]:.{digits}f}, {100 * interval[1]:.{digits}f}]"


def number(value: float | None, digits: int = 3) -> str:
    """A number with so many decimals, ``-`` for None."""
    return "-" if value is None else f"{value:.{digits}f}"


def number_with_interval(value: float | None, interval: Sequence[float] | None) -> str:
    """``1.234 [1.100, 1.300]``."""
    limits = "-" if interval is None else f"{interval[0]:.3f}, {interval[1]:.3f}"
    return "-" if value is None else f"{value:.3f} [{limits}]"
