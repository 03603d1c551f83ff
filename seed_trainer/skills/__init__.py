"""Hindsight skills: asking for them, reading them, choosing whose to use."""
