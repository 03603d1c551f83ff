"""What tasks are made of: told by every reset, kept by every record.

A score means little without it: real data, invented data and a user's own look alike from the outside.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

Kind = Literal["real", "generated", "own"]
"""Published data known by its content or its list of ids; invented here; or anything else that was brought."""


class DataSource(NamedTuple):
    """Where an environment's tasks come from.

    Attributes:
        kind: Published, invented or brought.
        files: Names (without folders) and SHA-256 of the content of what was read.
        goals: What kind of goals the tasks have, where there are several.
        skipped: Reason and number of what was found and left out.
    """

    kind: Kind
    files: tuple[tuple[str, str], ...] = ()
    goals: str = ""
    skipped: tuple[tuple[str, int], ...] = ()

    def card(self, split: str, split_size: int | None) -> dict[str, Any]:
        """The run card of an episode as plain JSON values.

        Args:
            split: Split the task was drawn from or belongs to; empty where none was named.
            split_size: Number of listed tasks in it; None where it has no list.
        """
        return {
            "kind": self.kind,
            "files": dict(self.files),
            "split": split,
            "split_size": split_size,
            "goals": self.goals,
            "skipped": dict(self.skipped),
        }


GENERATED = DataSource("generated")


def counted(skipped: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    """Numbers of what was left out, in the order of their reasons, without zeros."""
    return tuple((reason, number) for reason, number in sorted(skipped.items()) if number)
