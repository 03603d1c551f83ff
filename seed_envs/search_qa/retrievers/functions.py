"""``python:MODULE:FUNCTION``: a retriever that a function of yours makes."""

from __future__ import annotations

from typing import Any

from seed_envs.errors import UnknownOption
from seed_envs.registration import load_attribute
from seed_envs.search_qa.corpus import Corpus
from seed_envs.search_qa.retrievers.base import Retriever


def open_function(name: str, corpus: Corpus | None, **options: Any) -> Retriever:
    """Calls the function with the passages and the options.

    Args:
        name: ``python:MODULE:FUNCTION``.
        corpus: The passages, or None.
        **options: Handed on.

    Raises:
        UnknownOption: When there is no such function, or it makes no retriever.
    """
    reference = name.partition(":")[2]
    try:
        retriever = load_attribute(reference)(corpus, **options)
    except (ImportError, AttributeError, ValueError) as error:
        raise UnknownOption(f"retriever={name!r} cannot be made: {error}; write python:MODULE:FUNCTION") from error
    if not isinstance(retriever, Retriever):
        raise UnknownOption(f"retriever={name!r} made a {type(retriever).__name__}; expected a Retriever")
    return retriever
