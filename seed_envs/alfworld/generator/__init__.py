"""Seeded procedural games: whole official rooms, or the small compact room."""
