"""Originals in a user's own clone: files of it are imported as they are, without installing the clone."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from seed_envs.errors import DataMissing

from .rows import Options


def clone_of(options: Options, address: str) -> Path:
    """The clone that the user named.

    Args:
        options: What the command line says.
        address: Where the original is.

    Raises:
        DataMissing: When none was named.
    """
    if options.against is None:
        raise DataMissing(f"no clone; run: git clone {address}, then add --against {address.rpartition('/')[2]}")
    return options.against


def load_file(clone: Path, path: str, stand_ins: Sequence[str] = ()) -> ModuleType:
    """Import one file of a clone.

    Args:
        clone: The folder the user named.
        path: The file, relative to it.
        stand_ins: Modules that the file imports without needing them; an empty one takes the place of each that is
            not installed.

    Raises:
        DataMissing: When the clone has no such file.
    """
    file = clone / path
    if not file.is_file():
        raise DataMissing(f"{clone} has no {path}; --against wants a clone of the original that this check names")
    for name in stand_ins:
        if name not in sys.modules and importlib.util.find_spec(name.partition(".")[0]) is None:
            sys.modules[name] = ModuleType(name)
    spec = importlib.util.spec_from_file_location(f"original_{file.stem}_{len(sys.modules)}", file)
    assert spec is not None and spec.loader is not None  # a .py file always has both
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
