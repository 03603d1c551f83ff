"""What every page of this project shares: one style (light and dark), elements made from text, colours of gates."""

from __future__ import annotations

import base64
import hashlib
from importlib import resources


def asset(name: str, package: str = __name__) -> str:
    """A text file that lies in a package (``base.css`` and ``make.js`` in this one)."""
    return (resources.files(package) / name).read_text(encoding="utf-8")


def source_hash(text: str) -> str:
    """The expression that allows exactly this style or script in a content security policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def gate_colour(gate: float) -> str:
    """Background of a token: blue above 0.5, orange below, white at 0.5; lightness also tells in grey."""
    strength = min(1.0, abs(gate - 0.5) * 2)
    tone = (27, 108, 168) if gate >= 0.5 else (214, 120, 40)
    mixed = [round(255 - (255 - part) * strength * 0.75) for part in tone]
    return f"rgb({mixed[0]},{mixed[1]},{mixed[2]})"
