"""What the trainer raises for bad input; the commands turn it into one line on stderr."""

from __future__ import annotations


class UserError(ValueError):
    """Bad input: the message says what came, what was expected and what to run."""
