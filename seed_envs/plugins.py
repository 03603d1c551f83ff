"""``OpenTable``: a table of rows by name that other packages add to without touching this one.

Environments, suites, agents, annotators, retrievers, analyzers and methods are looked up in one of these. A row is
found under its name among the shipped rows and those that somebody added; under a name that an installed package
declares as a Python entry point of the table's group; or as ``module:name``, which imports the module and takes what it
added under that name, or else its attribute. Nothing of another package is imported before its row is asked for.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar

from seed_envs.errors import NameTaken, close_matches

Row = TypeVar("Row")

_LISTED = 25
"""Longest table that a message lists."""


def _nothing(row: Any) -> None:
    return None


class OpenTable(Mapping[str, Row], Generic[Row]):
    """Rows by name, in order: shipped, added, declared by installed packages.

    Args:
        what: What a row is, for messages ("environment").
        group: Group of the entry points, after ``seed_envs.``.
        kind: Class of every row.
        rows: The shipped rows.
        error: Raised by :meth:`find`.
        on_add: Called with every row that joins the table.
        also: Names that the caller takes beside the table's, for messages.
    """

    def __init__(
        self,
        what: str,
        group: str,
        kind: Any,
        rows: Mapping[str, Row],
        error: type[Exception],
        on_add: Callable[[Row], None] = _nothing,
        also: Sequence[str] = (),
    ) -> None:
        self.what, self.group, self._kind, self._error, self._on_add = what, f"seed_envs.{group}", kind, error, on_add
        self._also = also
        self._rows: dict[str, Row] = {}
        for name, row in rows.items():
            self.add(name, row)

    def add(self, name: str, row: Row) -> None:
        """Add a row; adding an equal one again changes nothing.

        Raises:
            TypeError: When the row is of another kind.
            NameTaken: When the name belongs to another row.
        """
        if not isinstance(row, self._kind):
            raise TypeError(f"{self.what} {name!r} is a {type(row).__name__}; expected {self._kind.__name__}")
        if self._rows.get(name, row) != row:
            raise NameTaken(f"{self.what} {name!r} is registered already, as {self._rows[name]}; choose another name")
        if name not in self._rows:
            self._on_add(row)
            self._rows[name] = row

    def find(self, name: str) -> Row:
        """The row of a name.

        Raises:
            Exception: Of the table's class, for a name that nobody knows (with close matches) or whose package cannot
                be imported.
        """
        if name in self._rows:
            return self._rows[name]
        points = {point.value: point for point in self._points() if point.name == name}
        if len(points) > 1:
            raise self._error(f"{self.what} {name!r} is declared more than once: {', '.join(sorted(points))}")
        module, colon, attribute = name.partition(":")
        if not points and not (colon and module and attribute):
            names = [*self, *self._also]
            known = f"; expected one of {', '.join(names)}" if len(names) <= _LISTED else ""
            raise self._error(f"{self.what} {name!r} is unknown{known}.{close_matches(name, names)}")
        try:
            if points:
                return self._load(next(iter(points.values())), name)
            found = importlib.import_module(module)
        except (ImportError, AttributeError, TypeError) as error:
            raise self._error(
                f"{self.what} {name!r} cannot be imported: {error} (a module is an installed one, or a file of the "
                "current folder without .py)"
            ) from error
        row = self._rows.get(attribute, getattr(found, attribute, None))
        if not isinstance(row, self._kind):
            raise self._error(
                f"{self.what} {name!r}: module {module} neither registers nor holds a {self._kind.__name__} of the "
                f"name {attribute!r}"
            )
        found_row: Row = row
        return found_row

    def _load(self, point: EntryPoint, name: str) -> Row:
        row: Row = point.load()
        self.add(name, row)
        return row

    def _points(self) -> list[EntryPoint]:
        return list(entry_points(group=self.group))

    def __getitem__(self, name: str) -> Row:
        try:
            return self.find(name)
        except self._error as error:
            raise KeyError(name) from error

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*self._rows, *(point.name for point in self._points())]))

    def __len__(self) -> int:
        return len(list(iter(self)))
