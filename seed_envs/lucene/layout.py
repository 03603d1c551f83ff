"""What the arrays and notes of a saved index must look like, checked when it is opened.

Types, dimensions and sizes are checked at once; whether a term's postings name passages that exist, when the term is
first asked for (a compiled loop would follow them anywhere). That the values are the right ones only a hash tells.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seed_envs.errors import DataInvalid

FORMAT = "seed-bm25/1"
"""Written into the manifest; an index of another format is built again."""

_KINDS = {
    "documents": "int32",
    "frequencies": "unsigned",
    "impacts": "float32",
    "length_codes": "uint8",
    "positions": "integer",
    "posting_offsets": "int64",
    "term_bytes": "uint8",
    "term_offsets": "int64",
    "id_bytes": "uint8",
    "id_offsets": "int64",
}
"""Element type of each array; "unsigned" and "integer" leave the width open. All have one dimension."""
_NUMBERS = ("k1", "b", "average_length", "n_documents", "n_with_tokens")


def check_layout(where: str, arrays: Mapping[str, NDArray[Any]], notes: Mapping[str, Any]) -> None:
    """Does nothing for an index that fits together.

    Args:
        where: The folder, for messages.
        arrays: The arrays by name.
        notes: The manifest.

    Raises:
        DataInvalid: Otherwise; the message names what does not fit.
    """
    fault = _notes_fault(notes) or _types_fault(arrays) or _sizes_fault(arrays, int(notes["n_documents"]))
    if fault:
        raise DataInvalid(f"{where}: {fault}; this is no whole index, build it again")


def check_postings(documents: NDArray[np.int32], start: int, stop: int, n_documents: int) -> None:
    """Does nothing for postings from `start` to before `stop` that name passages of the index.

    Raises:
        DataInvalid: Otherwise.
    """
    found = documents[start:stop]
    if not 0 <= start < stop <= len(documents) or int(found.min()) < 0 or int(found.max()) >= n_documents:
        raise DataInvalid(f"postings {start} to {stop} name passages that do not exist; build the index again")


def _notes_fault(notes: Mapping[str, Any]) -> str:
    for key in _NUMBERS:
        value = notes.get(key)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or value < 0:
            return f"the manifest's {key} is {value!r}, expected a number"
    return ""


def _types_fault(arrays: Mapping[str, NDArray[Any]]) -> str:
    for name, wanted in _KINDS.items():
        if name not in arrays:
            return f"the array {name!r} is missing"
        kind = arrays[name].dtype
        fits = {"unsigned": kind.kind == "u", "integer": kind.kind in "iu"}.get(wanted, kind.name == wanted)
        if not fits or arrays[name].ndim != 1:
            return f"{name}: expected {wanted} in one dimension, found {kind} in {arrays[name].ndim}"
    return ""


def _sizes_fault(arrays: Mapping[str, NDArray[Any]], n_documents: int) -> str:
    sizes = {name: len(array) for name, array in arrays.items()}
    ends = {name: int(arrays[name][-1]) for name in sizes if name.endswith("_offsets") and sizes[name]}
    expected = {
        "length_codes": n_documents,
        "positions": n_documents,
        "id_offsets": n_documents + 1,
        "id_bytes": ends.get("id_offsets"),
        "term_offsets": sizes["posting_offsets"],
        "term_bytes": ends.get("term_offsets"),
        "documents": ends.get("posting_offsets"),
        "frequencies": sizes["documents"],
        "impacts": sizes["documents"],
    }
    for name, size in expected.items():
        if sizes[name] != size:
            return f"{name}: expected {size} elements, found {sizes[name]}"
    positions = arrays["positions"]
    if n_documents and (int(positions.min()) < 0 or int(positions.max()) >= n_documents):
        return f"positions: expected numbers from 0 to {n_documents - 1}"
    return ""
