"""What a parity check is: rows that count comparisons with an original and the differences found.

Every module ``benchmarks/parity/<name>.py`` exposes one function::

    def compare(options: Options) -> list[ParityRow]: ...

``python -m benchmarks.parity <name>`` runs it in a child process of its own and prints the rows as a table and JSON. It
may raise ``seed_envs.errors.DataMissing`` or ``DependencyMissing`` when an original or a recording is not there: the
check is then shown as skipped, with that message. A difference that an environment's page lists is filed under a
:class:`Documented` entry by the code that finds it; any other one makes the command fail.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

#: Undocumented differences that are shown in full.
MOST_SHOWN = 5


@dataclass(frozen=True)
class Options:
    """What the command line may say.

    Attributes:
        against: Folder of a clone of the original, for the checks that need one.
        episodes: Episodes to compare (None: what the check does by default).
    """

    against: Path | None = None
    episodes: int | None = None


@dataclass(frozen=True)
class Documented:
    """A difference that is meant and that a page lists under "Differences from the original".

    Attributes:
        key: Short name, as the table shows it.
        page: The environment whose page lists it.
        words: Words of that page; a test finds them there.
    """

    key: str
    page: str
    words: str


@dataclass
class ParityRow:
    """One comparison with one original.

    Attributes:
        what: What was compared, e.g. ``"replies read, WebShop"``.
        original: What the original is, with its version.
        episodes: Episodes played (0 where the unit is not an episode).
        steps: Steps taken in them, or replies read.
        comparisons: Single values compared.
        documented: How many differences there were, by the entry that explains them.
        undocumented: One line per unexplained difference.
    """

    what: str
    original: str
    episodes: int = 0
    steps: int = 0
    comparisons: int = 0
    documented: Counter[Documented] = field(default_factory=Counter)
    undocumented: list[str] = field(default_factory=list)

    def check(self, where: str, pairs: Mapping[str, tuple[Any, Any]], known: Iterable[Documented] = ()) -> None:
        """Compare values of one place, ours first; every difference is counted.

        Args:
            where: Names the place so that it can be looked at again.
            pairs: By name, our value and the original's.
            known: Documented reasons that apply at this place; the first one takes its differences.
        """
        reason = next(iter(known), None)
        for name, (ours, theirs) in pairs.items():
            self.comparisons += 1
            if ours == theirs:
                continue
            if reason is not None:
                self.documented[reason] += 1
            else:
                self.undocumented.append(f"{where}: {name} is {ours!r:.200}, the original has {theirs!r:.200}")

    @property
    def differences(self) -> int:
        """All of them, documented or not."""
        return self.documented.total() + len(self.undocumented)

    def to_json(self) -> dict[str, Any]:
        """A JSON-ready dictionary."""
        return {
            **{name: getattr(self, name) for name in ("what", "original", "episodes", "steps", "comparisons")},
            "differences": self.differences,
            "documented": {reason.key: count for reason, count in self.documented.items()},
            "undocumented": len(self.undocumented),
            "shown": self.undocumented[:MOST_SHOWN],
        }
