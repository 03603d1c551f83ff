"""Generated catalogues: as many products and goals as wanted, from a seed, in the original file format.

Every goal can be reached, is told apart from its near twins by each of its constraints, and costs nothing to download.
The texts are simple on purpose; they are no model of a real shop's language.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from random import Random
from typing import Any

from seed_envs.errors import UnknownOption
from seed_envs.webshop.files import RawCatalogue
from seed_envs.webshop.generator import text
from seed_envs.webshop.generator.families import Draft, Registry, draw_family, draw_filler, write_row
from seed_envs.webshop.generator.hostile import hostile_rows

#: Share of families whose target has twins, by difficulty.
DIFFICULTIES = {"easy": 0.0, "standard": 1.0}
_FILLER_SHARE = 0.1
MAX_PRODUCTS = 2_000_000


def generate(n: int = 1000, seed: int = 0, difficulty: str = "standard", hostile: bool = False) -> RawCatalogue:
    """Generates a catalogue.

    Args:
        n: Number of products.
        seed: Any integer; the same seed gives byte-identical data everywhere.
        difficulty: ``standard`` (every target among near twins) or ``easy`` (no twins, so more goals).
        hostile: Whether a few products carry texts that attack a page or its reader; they replace nothing and come
            last, without goals.

    Returns:
        Rows, entries and human instructions. Rows carry two keys that the original ignores: ``title_nouns`` and
        ``reviews``/``rating``. Entries of targets list ``equivalents``, the products that satisfy the goal too.

    Raises:
        UnknownOption: If ``n`` or the difficulty is out of range.
    """
    if not 1 <= n <= MAX_PRODUCTS:
        raise UnknownOption(f"cannot generate {n} products; expected 1 to {MAX_PRODUCTS}")
    if difficulty not in DIFFICULTIES:
        raise UnknownOption(f"unknown difficulty {difficulty!r}; expected one of {sorted(DIFFICULTIES)}")
    families = _families(n, seed, DIFFICULTIES[difficulty])
    rows: list[dict[str, Any]] = []
    entries: dict[str, dict[str, Any]] = {}
    human: dict[str, list[dict[str, Any]]] = {}
    for number, family in enumerate(families):
        rng = Random(f"webshop/{seed}/rows/{number}")
        written = [write_row(rng, draft, len(rows) + place) for place, draft in enumerate(family)]
        rows += written
        _describe(rng, family, written, entries, human)
    Random(f"webshop/{seed}/order").shuffle(rows)
    if hostile:
        extra = hostile_rows(max(n * 3 // 100, 1), Random(f"webshop/{seed}/hostile"), len(rows))
        entries |= {row["asin"]: {"attributes": []} for row in extra}
        rows += extra
    return RawCatalogue(rows, entries, human)


def catalogue_sha256(raw: RawCatalogue) -> str:
    """Hash of a catalogue's content."""
    payload = json.dumps([list(raw.rows), raw.entries, raw.human], ensure_ascii=True, sort_keys=True)
    return hashlib.sha256(payload.encode()).hexdigest()


def _families(n: int, seed: int, twin_share: float) -> list[list[Draft]]:
    """Draws families until ``n`` products are there; the last places are filled with products without goals."""
    registry = Registry()
    families: list[list[Draft]] = []
    count = 0
    while count < n:
        rng = Random(f"webshop/{seed}/family/{len(families)}")
        if rng.random() < _FILLER_SHARE:
            family = [draw_filler(rng, registry)]
        else:
            family = draw_family(rng, registry, rng.random() < twin_share)
            if count + len(family) > n:
                family = [draw_filler(rng, registry)]
        families.append(family)
        count += len(family)
    return families


def _describe(
    rng: Random,
    family: Sequence[Draft],
    rows: Sequence[dict[str, Any]],
    entries: dict[str, dict[str, Any]],
    human: dict[str, list[dict[str, Any]]],
) -> None:
    for draft, row in zip(family, rows, strict=True):
        entries[row["asin"]] = {"attributes": list(draft.attributes)}
    target, asin = family[0], rows[0]["asin"]
    if not target.wanted:
        return
    entries[asin] |= {
        "instruction": text.instruction(target.kind, target.wanted),
        "instruction_attributes": list(target.wanted),
        "equivalents": [row["asin"] for draft, row in zip(family, rows, strict=True) if draft.role == "equivalent"],
    }
    human[asin] = []
    for _ in range(rng.randrange(2, 5)):
        options = [(name, rng.choice(values)) for name, values in target.options.items()]
        human[asin].append(
            {
                "instruction": text.human_instruction(rng, target.kind, target.wanted, options),
                "instruction_attributes": list(target.wanted),
                "instruction_options": [value for _, value in options],
            }
        )
