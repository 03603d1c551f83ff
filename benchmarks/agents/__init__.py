"""Agents: who answers when an environment asks."""
