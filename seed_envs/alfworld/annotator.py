"""Writes hindsight skills by rule, from a finished trajectory and its outcome only."""

TERSE_TEXTS: tuple[str, ...] = ()
