"""Loading passages into a service: in batches, in order, going on where an earlier run stopped."""

from __future__ import annotations

import sys
from collections.abc import Callable

from seed_envs.search_qa.corpus import Corpus
from seed_envs.search_qa.retrievers.base import Hit, RetrieverMismatch


def ingest_in_order(
    corpus: Corpus,
    stored: Callable[[], int],
    write: Callable[[int, list[Hit]], None],
    batch: int,
    progress: bool = False,
) -> int:
    """Writes all passages that a service does not hold yet.

    Batches are written in order and writing a passage twice is harmless, so the number of stored passages says where to
    go on; the batch that was interrupted is written again.

    Args:
        corpus: The passages.
        stored: How many passages the service holds.
        write: Writes a batch: position of its first passage, passages.
        batch: Passages per batch.
        progress: Write a progress line to standard error.

    Returns:
        The number of passages in the service.

    Raises:
        RetrieverMismatch: Afterwards the service holds another number.
    """
    total = len(corpus)
    start = min(stored(), total) // batch * batch
    for first in range(start, total, batch):
        last = min(first + batch, total)
        write(first, [corpus.passage(position) for position in range(first, last)])
        if progress:
            sys.stderr.write(f"\rloading {last:,}/{total:,}" + ("\n" if last == total else ""))
            sys.stderr.flush()
    found = stored()
    if found != total:
        raise RetrieverMismatch(f"the service holds {found} passages after loading {total}; empty it and load again")
    return found
