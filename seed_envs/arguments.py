"""Checks of the environments' arguments: names from a list and whole numbers, with errors that say what was expected.

What only one environment takes is checked there.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import SupportsIndex

from seed_envs.errors import UnknownOption, close_matches


def check_choice(name: str, value: object, known: Iterable[object]) -> None:
    """Refuses a value that is not in a list.

    Args:
        name: The argument, for the error.
        value: What was passed; it need not be hashable.
        known: The accepted values.

    Raises:
        UnknownOption: With close matches.
    """
    accepted = list(known)
    if value not in accepted:
        hint = close_matches(value, map(str, accepted))
        raise UnknownOption(f"{name}={value!r} is unknown; expected one of {accepted}.{hint}")


def refuse_ignored(because: str, **given: tuple[object, object]) -> None:
    """Refuses arguments that would have no effect.

    Args:
        because: Which other argument makes them meaningless, for the error.
        **given: Value and default of every such argument.

    Raises:
        UnknownOption: For the first that is not its default.
    """
    for name, (value, default) in given.items():
        if value != default:
            raise UnknownOption(f"{name}={value!r} has no effect with {because}; leave one of the two out")


def whole_number(name: str, value: SupportsIndex, least: int | None = None) -> int:
    """A whole number as a plain ``int``; NumPy's integers are welcome, booleans and floats are not.

    Args:
        name: The argument, for the error.
        value: What was passed.
        least: Smallest accepted value, if there is one.

    Raises:
        UnknownOption: If it is no whole number, or too small.
    """
    bound = "" if least is None else f" from {least} up"
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise UnknownOption(f"{name}={value!r}: expected a whole number{bound}") from None
    if least is not None and number < least:
        raise UnknownOption(f"{name}={number}: expected a whole number{bound}")
    return number
