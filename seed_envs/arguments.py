"""Checks of the environments' arguments: signatures, names from a list, whole numbers, with errors that say what helps.

What only one environment takes is checked there.
"""

from __future__ import annotations

import functools
import inspect
import numbers
import operator
import os
import types
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, SupportsIndex, Union, get_args, get_origin, get_type_hints

from seed_envs.errors import UnknownOption, close_matches


def check_arguments(maker: type, given: Mapping[str, Any]) -> None:
    """Checks constructor arguments against a class's signature, those that it hands on to its base classes included.

    Args:
        maker: The class.
        given: Keyword arguments. Sequences and mappings are not looked into, and names from a list are left to the
            class (``check_choice``).

    Raises:
        UnknownOption: For an argument that there is not, or a value of another type.
    """
    hints = argument_hints(maker)
    for name, value in given.items():
        if name not in hints:
            known = sorted(hints)
            raise UnknownOption(
                f"{maker.__name__} has no argument {name!r}; it takes {known}.{close_matches(name, known)}"
            )
        kinds = hints[name]
        if kinds and not any(_is(value, kind) for kind in kinds):
            expected = " or ".join(_WORDS[kind] for kind in kinds)
            raise UnknownOption(f"{name}={value!r}: expected {expected}, got {type(value).__name__}")


@functools.cache
def argument_hints(maker: type) -> Mapping[str, tuple[Any, ...]]:
    """Name -> accepted kinds of every constructor argument; no kinds where anything may be accepted."""
    found: dict[str, tuple[Any, ...]] = {}
    for base in maker.__mro__:
        constructor = vars(base).get("__init__")
        if constructor is None:
            continue
        parameters = list(inspect.signature(constructor).parameters.values())[1:]
        hints = _hints(constructor)
        for item in parameters:
            if item.kind in (item.POSITIONAL_OR_KEYWORD, item.KEYWORD_ONLY):
                found.setdefault(item.name, _kinds(hints.get(item.name, Any)))
        if all(item.kind is not item.VAR_KEYWORD for item in parameters):
            break
    return found


def _hints(constructor: Any) -> dict[str, Any]:
    try:
        return get_type_hints(constructor)
    except NameError:  # a name that is imported for the type checker alone
        return {}


def _kinds(hint: Any) -> tuple[Any, ...]:
    """The kinds that a hint accepts, empty when one of them is not among those that are checked."""
    parts = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    kinds = tuple(get_origin(part) or part for part in parts)
    return kinds if all(isinstance(kind, type) and kind in _WORDS for kind in kinds) else ()


def _is(value: object, kind: Any) -> bool:
    """Whether a value is of a kind; NumPy's numbers count as Python's, a list as a tuple, a boolean is no number."""
    if isinstance(value, bool) or type(value).__name__ in ("bool", "bool_"):
        return kind is bool
    if kind in (int, float):
        return isinstance(value, numbers.Integral if kind is int else numbers.Real)
    return isinstance(value, Sequence) and not isinstance(value, str) if kind is tuple else isinstance(value, kind)


_WORDS: Mapping[Any, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
    tuple: "a list",
    Path: "a path",
    os.PathLike: "a path",
    Mapping: "a mapping",
    types.NoneType: "none",
}


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
