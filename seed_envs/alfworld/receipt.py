"""What an import found, lists, left out and misses: numbers for people and records."""

from __future__ import annotations

from dataclasses import dataclass

from seed_envs.alfworld.library import OFFICIAL_SPLITS, Library
from seed_envs.alfworld.tasks import manifest


@dataclass(frozen=True)
class Receipt:
    """The result of looking through a folder of games.

    Attributes:
        found: games found, those left out included.
        listed: official split -> its games that are here and can be played.
        missing: official split -> listed games that are not.
        own: games that are on no official list and can be played.
        skipped: reason -> games left out, each an id or a message that begins with it.
    """

    found: int
    listed: dict[str, int]
    missing: dict[str, tuple[str, ...]]
    own: int
    skipped: dict[str, tuple[str, ...]]


def make(library: Library) -> Receipt:
    """Count the games of a library whose unplayable ones are known, that is of a compiled cache.

    Args:
        library: the library.

    Returns:
        The receipt.
    """
    here = set(library.ids)
    lists = {split: manifest(split) for split in OFFICIAL_SPLITS}
    missing = {split: tuple(task_id for task_id in listed if task_id not in here) for split, listed in lists.items()}
    counts = {split: len(listed) - len(missing[split]) for split, listed in lists.items()}
    skipped = {reason: tuple(names) for reason, names in library.skipped.items()}
    found = len(here) + sum(map(len, skipped.values()))
    return Receipt(found, counts, missing, len(here) - sum(counts.values()), skipped)


def lines(receipt: Receipt) -> list[str]:
    """Say a receipt in words.

    Args:
        receipt: the receipt.

    Returns:
        Lines: what was found and left out, one per reason with the first example, one per split that is incomplete.
    """
    left_out = sum(map(len, receipt.skipped.values()))
    listed = ", ".join(f"{split} {count:,}" for split, count in receipt.listed.items())
    text = [f"found {receipt.found:,} games; official: {listed}; own: {receipt.own:,}; left out: {left_out:,}"]
    for reason, names in sorted(receipt.skipped.items()):
        text.append(f"  left out, {reason}: {len(names):,}, such as {names[0]}")
    for split, names in receipt.missing.items():
        if names:
            text.append(f"  missing of {split}: {len(names):,} of {len(manifest(split)):,}, such as {names[0]}")
    return text
