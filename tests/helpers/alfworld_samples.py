"""Official games chosen for their odd facts. Used by several tests."""

from __future__ import annotations

from pathlib import Path

WITNESS_GAMES = tuple((Path(__file__).parent / "alfworld_witness_games.txt").read_text(encoding="utf-8").split())
"""40 small official games of all six families: shared places, objects in two receptacles, cool starts, filled vessels,
wins without a placement, dead ends, knives."""
